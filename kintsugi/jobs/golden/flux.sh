#!/bin/bash
# a Flux instance: written by `kintsugi job run.toml --site flux`.
#flux: --job-name=kintsugi-first
#flux: -N 2
#flux: -n 4
#flux: --time-limit=3600s
#flux: --output="/home/me/my work/runs/first/job_{{id}}.log"
set -euo pipefail
cd '/home/me/my work'
# It starts the ranks, passes signals on to them, and decides what follows when they have ended.
exec /opt/kintsugi/kintsugi launch run.toml --set 'train.prompts=["it'\''s"]' \
  --with "flux run -N {nodes} -n {ranks}" \
  --stop-after 3480 \
  --again "flux --parent batch --dependency=afterany:$(flux getattr jobid) '/home/me/my work/runs/first/job.sh'" \
  --ranks-per-node 2
