#!/usr/bin/env bash
# kills.sh KINTSUGI [--ranks N] [--nodes N] [--controllers N] [--seed S]: on a Slurm of four nodes of its own, runs that
# `kintsugi job` submits, and in each of which one thing is killed at a moment that follows from the seed: a rank (20), a
# node, that is its slurmd and all it runs (10), or slurmctld (5). Every run must complete by itself with the metrics of one
# that was not disturbed; a node comes back after 40 s (of that kind the one that was tried did not complete). The last line counts; exit code 1 if a run did not complete or differs.
set -uo pipefail
usage() { echo "usage: kills.sh KINTSUGI [--ranks N] [--nodes N] [--controllers N] [--seed S]" >&2; exit 2; }
(($# >= 1)) || usage
kintsugi=$(realpath "$1"); shift
ranks=20 nodes=10 controllers=5 state=1
while (($# >= 2)); do
  case $1 in
    --ranks) ranks=$2 ;;
    --nodes) nodes=$2 ;;
    --controllers) controllers=$2 ;;
    --seed) state=$2 ;;
    *) usage ;;
  esac
  shift 2
done
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
work=$(realpath "$(mktemp -d)")
cleanup() { "$root/tests/slurm/stop.sh" "$work/slurm" 2>/dev/null; rm -rf "$work"; }
trap cleanup EXIT
"$root/tests/slurm/start.sh" "$work/slurm" || exit $?
# shellcheck source=/dev/null
source "$work/slurm/env"
cd "$work" || exit 1

draw() {
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  drawn=$(((state >> 8) % $1))
}
numbers() { sed 's/,"tokens_per_second".*//' "$1/metrics.jsonl"; }
# The ranks that run: the command without --with, under a step of Slurm.
rank_pids() {
  local entry
  for entry in /proc/[0-9]*; do
    [[ $(readlink "$entry/exe" 2>/dev/null) == "$kintsugi" && $(readlink "$entry/cwd" 2>/dev/null) == "$work" ]] || continue
    { tr '\0' '\n' <"$entry/environ" | grep -q '^SLURM_STEP_ID=' && ! tr '\0' ' ' <"$entry/cmdline" | grep -q -e --with; } 2>/dev/null &&
      echo "${entry#/proc/}"
  done
  true
}
steps_of() { { wc -l <"$1/metrics.jsonl"; } 2>/dev/null || echo 0; }

for ((i = 0; i < 400; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >log 2>&1 || { cat log; exit 1; }
cat >run.toml <<'TOML'
[model]
layers = 1
embed = 32
heads = 2
[data]
train = "corpus/train"
[train]
folder = "runs/x"
steps = 400
global_batch = 8
sequence = 32
event_files = false
[checkpoint]
every = 40
[parallel]
ranks = 4
threads = 1
bind = false
TOML
"$kintsugi" train run.toml --set train.folder=runs/whole >log 2>&1 || { cat log; exit 1; }

failures=0 done_kills=0 slowest=0 summary=""
kill_rank() {
  mapfile -t pids < <(rank_pids)
  ((${#pids[@]} > 0)) || return 1
  draw "${#pids[@]}"
  kill -KILL "${pids[drawn]}"
}
# The slurmd of a node that is drawn, its slurmstepds and what they started; back after 40 s.
kill_node() {
  draw 4
  local node=n$((drawn + 1)) pid
  mapfile -t pids < <(pgrep -f -- "slurmd -D -N $node -c -f $work/slurm/slurm.conf")
  for entry in /proc/[0-9]*; do
    { tr '\0' '\n' <"$entry/environ" | grep -qx "SLURMD_NODENAME=$node" && tr '\0' '\n' <"$entry/environ" | grep -qx "SLURM_CONF=$work/slurm/slurm.conf"; } 2>/dev/null &&
      pids+=("${entry#/proc/}")
  done
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  (sleep 40; exec slurmd -D -N "$node" -c -f "$work/slurm/slurm.conf" -d "$(dpkg -L slurmd | grep -m 1 /slurmstepd)" </dev/null >>"slurm/log/$node.out" 2>&1) &
  echo $! >>slurm/pids
}
kill_controller() {
  local pid
  pid=$(cat slurm/state/slurmctld.pid)
  kill -KILL "$pid"
  sleep 2
  slurmctld -D -f "$work/slurm/slurm.conf" </dev/null >>slurm/log/slurmctld.out 2>&1 &
  echo $! >>slurm/pids
}

series() {
  local kind=$1 count=$2 k run job seconds began
  for ((k = 1; k <= count; ++k)); do
    run=runs/$kind$k
    "$kintsugi" job run.toml --site slurm --nodes 4 --time 30 --set "train.folder=$run" --submit >log 2>&1 || { cat log; exit 1; }
    job=$(sed -n 's/^Submitted batch job //p' log)
    draw 330
    local at=$((drawn + 20))
    for ((i = 0; i < 600 && $(steps_of "$run") < at; ++i)); do sleep 0.05; done
    "kill_$kind" || { echo "FAILED $run: nothing to kill"; failures=$((failures + 1)); continue; }
    done_kills=$((done_kills + 1))
    began=$SECONDS
    for ((i = 0; i < 1200; ++i)); do
      [[ -z $(squeue -h -j "$job" 2>/dev/null) ]] && scontrol ping 2>/dev/null | grep -q UP && break
      sleep 0.25
    done
    seconds=$((SECONDS - began))
    ((seconds > slowest)) && slowest=$seconds
    if ! cmp -s <(numbers runs/whole) <(numbers "$run"); then
      echo "FAILED $run (killed at step $at): $(steps_of "$run") of 400 steps, or other metrics"
      cat "$run/attempts.jsonl"; tail -n 15 "$run"/job_*.log
      scancel "$job" 2>/dev/null
      failures=$((failures + 1))
    fi
    rm -rf "$run"
  done
  summary+="$count x $kind, "
}
series rank "$ranks"
series controller "$controllers"
series node "$nodes"
echo "$done_kills kills (${summary%, }), $failures failures; the longest took $slowest s from the kill to the end of the job"
((failures == 0))
