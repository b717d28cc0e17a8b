#!/bin/bash
# a PBS cluster: written by `kintsugi job run.toml --site pbs`.
#PBS -N kintsugi-first
#PBS -l select=2:mpiprocs=2
#PBS -l walltime=01:00:00
# The job may be run again: after its time limit it asks for that itself (qrerun).
#PBS -r y
#PBS -j oe
#PBS -o "/home/me/my work/runs/first/job_pbs.log"
set -euo pipefail
cd '/home/me/my work'
# It starts the ranks, passes signals on to them, and decides what follows when they have ended.
exec /opt/kintsugi/kintsugi launch run.toml --set 'train.prompts=["it'\''s"]' \
  --with "mpirun -n {ranks} -hostfile $PBS_NODEFILE" \
  --stop-after 3480 \
  --again "qrerun $PBS_JOBID" \
  --ranks-per-node 2
