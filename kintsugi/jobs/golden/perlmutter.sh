#!/bin/bash
# Perlmutter (NERSC): written by `kintsugi job run.toml --site perlmutter`.
#SBATCH --job-name=kintsugi-first
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
#SBATCH --constraint=gpu
#SBATCH --qos=regular
# 120 s before the limit the script alone (B:) is sent USR1, and passes it on: the run ends its step and saves.
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
# A lost node does not end the job: the launcher continues on the others.
#SBATCH --no-kill
# A requeued job appends to its log.
#SBATCH --open-mode=append
#SBATCH --output="/home/me/my work/runs/first/job_%j.log"
set -euo pipefail
cd '/home/me/my work'
# the cards are attached to the cores in reverse order
export CUDA_VISIBLE_DEVICES=3,2,1,0
# Lustre: checkpoints are one file per rank. With files of several GiB, spread each over storage targets, once and
# before the first run: lfs setstripe --stripe-count 4 --stripe-size 4M '/home/me/my work/runs/first'
# It starts the ranks, passes signals on to them, and decides what follows when they have ended.
exec /opt/kintsugi/kintsugi launch run.toml --set 'train.prompts=["it'\''s"]' \
  --with "srun --ntasks=8 --ntasks-per-node=4 --cpus-per-task=32 --cpu-bind=cores --kill-on-bad-exit=1 --gpus-per-node=4" \
  --again "scontrol requeue $SLURM_JOB_ID" \
  --ranks-per-node 4
