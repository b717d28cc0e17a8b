#!/bin/bash
# Aurora (ALCF): written by `kintsugi job run.toml --site aurora`.
#PBS -N kintsugi-first
#PBS -l walltime=01:00:00
#PBS -q prod
#PBS -l select=2
#PBS -l place=scatter
#PBS -l filesystems=home:flare
# The job may be run again: after its time limit it asks for that itself (qrerun).
#PBS -r y
#PBS -j oe
#PBS -o "/home/me/my work/runs/first/job_pbs.log"
set -euo pipefail
cd '/home/me/my work'
# Lustre: checkpoints are one file per rank. With files of several GiB, spread each over storage targets, once and
# before the first run: lfs setstripe --stripe-count 4 --stripe-size 4M '/home/me/my work/runs/first'
# It starts the ranks, passes signals on to them, and decides what follows when they have ended.
exec /opt/kintsugi/kintsugi launch run.toml --set 'train.prompts=["it'\''s"]' \
  --with "mpiexec --envall -n {ranks} --ppn 12 --depth=8 --cpu-bind depth" \
  --stop-after 3480 \
  --again "qrerun $PBS_JOBID" \
  --ranks-per-node 12
