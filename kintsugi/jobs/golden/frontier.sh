#!/bin/bash
# Frontier (OLCF): written by `kintsugi job run.toml --site frontier`.
#SBATCH --job-name=kintsugi-first
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
#SBATCH --partition=batch
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
# the default, memhooks, can deadlock with a library's own allocator
export FI_MR_CACHE_MONITOR=kdreg2
# as OLCF advises: many messages at once overflow the default completion queue
export FI_CXI_DEFAULT_CQ_SIZE=131072
# matching falls back to software where the network card's list is full
export FI_CXI_RX_MATCH_MODE=hybrid
# long messages: needs --network=disable_rdzv_get on the step
export FI_CXI_RDZV_PROTO=alt_read
# as OLCF advises for training with RCCL
export FI_CXI_ATS=0
# Lustre: checkpoints are one file per rank. With files of several GiB, spread each over storage targets, once and
# before the first run: lfs setstripe --stripe-count 4 --stripe-size 4M '/home/me/my work/runs/first'
# It starts the ranks, passes signals on to them, and decides what follows when they have ended.
exec /opt/kintsugi/kintsugi launch run.toml --set 'train.prompts=["it'\''s"]' \
  --with "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 --network=disable_rdzv_get --kill-on-bad-exit=1" \
  --again "scontrol requeue $SLURM_JOB_ID" \
  --ranks-per-node 8
