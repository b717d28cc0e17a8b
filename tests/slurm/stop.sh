#!/usr/bin/env bash
# stop.sh FOLDER: ends the cluster that start.sh started there, and what is left of its jobs.
set -uo pipefail
folder=$(realpath "$1")
[[ -f $folder/pids ]] || exit 0
# Jobs first: a slurmstepd is no child of its slurmd.
if [[ -f $folder/env ]]; then
  export SLURM_CONF=$folder/slurm.conf
  { timeout 5 scancel --full --signal=KILL --state=RUNNING; timeout 5 scancel --me; } >/dev/null 2>&1
  sleep 0.3
fi
mapfile -t pids < <(tac "$folder/pids")
hosts() {
  [[ -f $folder/bridge ]] || return 0
  local init
  for init in "$folder"/spool/n*.init; do
    "$(dirname "${BASH_SOURCE[0]}")/host.sh" "$folder" remove "$(basename "$init" .init | tr -d n)"
  done
  ip link delete "$(<"$folder/bridge")" 2>/dev/null
}
trap hosts EXIT
kill "${pids[@]}" 2>/dev/null
for ((i = 0; i < 50; ++i)); do
  kill -0 "${pids[@]}" 2>/dev/null || exit 0
  sleep 0.1
done
kill -KILL "${pids[@]}" 2>/dev/null
exit 0
