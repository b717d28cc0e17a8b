#!/bin/bash
# this machine: written by `kintsugi job run.toml --site local`.
set -euo pipefail
cd '/home/me/my work'
# It starts the ranks, passes signals on to them, and decides what follows when they have ended.
exec /opt/kintsugi/kintsugi launch run.toml --set 'train.prompts=["it'\''s"]' \
  --with "mpirun -n 4" \
  --stop-after 3480 \
  --ranks-per-node 4
