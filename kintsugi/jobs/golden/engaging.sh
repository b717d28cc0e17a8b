#!/bin/bash
# Engaging (MIT ORCD): written by `kintsugi job run.toml --site engaging`.
#SBATCH --job-name=kintsugi-first
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
#SBATCH --partition=mit_normal_gpu
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
# It starts the ranks, passes signals on to them, and decides what follows when they have ended.
exec /opt/kintsugi/kintsugi launch run.toml --set 'train.prompts=["it'\''s"]' \
  --with "srun --mpi=pmix --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --gpus-per-node=2" \
  --again "scontrol requeue $SLURM_JOB_ID" \
  --ranks-per-node 2
