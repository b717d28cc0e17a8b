#!/usr/bin/env bash
# kills.sh KINTSUGI [--ranks N] [--nodes N] [--shells N] [--controllers N] [--steps N] [--seed S]: on a Slurm of four hosts of its own
# (namespaces with addresses, processes and memory of their own), runs that `kintsugi job` submits, in each of which one thing
# is killed at a moment that follows from the seed: a rank (20), a node (10: its network is cut and all its processes end at
# once; it stays down until the run has ended), the batch shell, which is the launcher (5), or slurmctld (5). Every run must
# complete unattended. Its metrics must be those of an undisturbed run, bit for bit; after the loss of a node it continues on
# the three that are left, in another layout, and its last loss must be within 2%. At most one checkpoint interval may be
# repeated. --steps: of each run (400), a tenth of which is the interval. The last lines count, and give the longest time from
# a kill to the next step (a lost node is noticed when Slurm gives it up, after 15 s); exit code 1 if a run did not complete or differs.
set -uo pipefail
usage() { echo "usage: kills.sh KINTSUGI [--ranks N] [--nodes N] [--shells N] [--controllers N] [--steps N] [--seed S]" >&2; exit 2; }
(($# >= 1)) || usage
kintsugi=$(realpath "$1"); shift
ranks=20 nodes=10 shells=5 controllers=5 steps=400 state=1
while (($# >= 2)); do
  case $1 in
    --ranks) ranks=$2 ;;
    --nodes) nodes=$2 ;;
    --shells) shells=$2 ;;
    --controllers) controllers=$2 ;;
    --steps) steps=$2 ;;
    --seed) state=$2 ;;
    *) usage ;;
  esac
  shift 2
done
work=$(realpath "$(mktemp -d)")
cleanup() { stop_cluster; rm -rf "$work"; }
trap cleanup EXIT
# shellcheck source-path=SCRIPTDIR source=cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

numbers() { sed 's/,"tokens_per_second".*//' "$1/metrics.jsonl"; }
last_loss() { tail -n 1 "$1/metrics.jsonl" | sed 's/.*"loss":\([0-9.e-]*\).*/\1/'; }
# Whether a step was completed after the last resumption.
resumed() {
  cat "$1"/job_*.log 2>/dev/null | awk '/resumed at step/ { r = 1; n = 0 } r && /^[0-9:]+ step [0-9]+\// { ++n } END { exit !n }'
}
ended() { grep -qs '"outcome":"finished"\|"given_up":true' "$1/attempts.jsonl"; }

cat >run.toml <<TOML
[model]
layers = 1
embed = 32
heads = 2
[data]
train = "corpus/train"
[train]
folder = "runs/x"
steps = $steps
global_batch = 12
sequence = 32
event_files = false
[checkpoint]
every = $((steps / 10))
[parallel]
ranks = 4
threads = 1
bind = false
[launch]
quiet_seconds = 15
check_seconds = 2
TOML
"$kintsugi" train run.toml --set train.folder=runs/whole >log 2>&1 || { cat log; exit 1; }

failures=0 done_kills=0 slowest=0 summary="" killed_node=
kill_rank() {
  mapfile -t pids < <(pids_of --supervised)
  ((${#pids[@]} > 0)) || return 1
  draw "${#pids[@]}"
  kill -KILL "${pids[drawn]}"
}
kill_node() {
  draw 4
  killed_node=$((drawn + 1))
  host crash "$killed_node"
}
kill_shell() {
  mapfile -t pids < <(pids_of --with)
  ((${#pids[@]} > 0)) || return 1
  kill -KILL "${pids[0]}"
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
  local kind=$1 count=$2 k run seconds began repeated restart killed_at restarts=() good=0
  for ((k = 1; k <= count; ++k)); do
    run=runs/$kind$k
    "$kintsugi" job run.toml --site slurm --nodes 4 --least-nodes 3 --guard --time 30 --set "train.folder=$run" --submit \
      >log 2>&1 || { cat log; exit 1; }
    draw $((steps * 8 / 10))
    local at=$((drawn + steps / 20))
    await_steps "$run" "$at"
    at=$(steps_of "$run")
    "kill_$kind" || { echo "FAILED $run: nothing to kill"; failures=$((failures + 1)); continue; }
    done_kills=$((done_kills + 1))
    began=$SECONDS restart="" killed_at=$EPOCHREALTIME
    for ((i = 0; i < 4800; ++i)); do
      ended "$run" && break
      [[ -n $restart ]] || ! resumed "$run" || restart=$(awk -v a="$killed_at" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
      sleep 0.25
    done
    seconds=$((SECONDS - began))
    ((seconds > slowest)) && slowest=$seconds
    # Steps that were done twice.
    repeated=$(sed -n 's/.*"from":\([0-9]*\).*/\1/p' "$run/attempts.jsonl" | tail -n 1)
    repeated=$((at - repeated))
    (($(grep -c '"began"' "$run/attempts.jsonl") > 1)) || repeated=0
    local bad=
    grep -qs '"outcome":"finished"' "$run/attempts.jsonl" || bad="it did not finish"
    if [[ $kind == node ]]; then
      [[ -n $bad ]] || awk -v a="$(last_loss runs/whole)" -v b="$(last_loss "$run")" 'BEGIN { exit !(b < 1.02 * a + 0.02) }' ||
        bad="loss $(last_loss "$run"), undisturbed $(last_loss runs/whole)"
      [[ $(steps_of "$run") == "$steps" ]] || bad="$(steps_of "$run") of $steps steps"
    elif ! cmp -s <(numbers runs/whole) <(numbers "$run"); then
      bad="$(steps_of "$run") of $steps steps, or other metrics"
    fi
    ((repeated <= steps / 10 + 1)) || bad="$repeated steps repeated"
    if [[ -n $bad ]]; then
      echo "FAILED $run (killed at step $at): $bad"
      cat "$run/attempts.jsonl"; tail -n 25 "$run"/job_*.log
      failures=$((failures + 1))
    else
      good=$((good + 1))
      echo "$run: killed at step $at${killed_node:+ (n$killed_node)}, complete after $seconds s${restart:+, next step after $restart s}; $(grep -c '"began"' "$run/attempts.jsonl") attempts, $((repeated < 0 ? 0 : repeated)) steps repeated"
    fi
    [[ -z $restart ]] || restarts+=("$restart")
    scancel --me 2>/dev/null
    if [[ -n $killed_node ]]; then
      host start "$killed_node"
      killed_node=
    fi
    await_idle
    rm -rf "$run"
  done
  summary+="$kind $good of $count"
  ((${#restarts[@]} == 0)) || summary+=" (next step after $(printf '%s\n' "${restarts[@]}" | sort -n | tail -n 1) s at most)"
  summary+=", "
}
series rank "$ranks"
series controller "$controllers"
series node "$nodes"
series shell "$shells"
echo "$done_kills kills, complete: ${summary%, }; the longest took $slowest s from the kill to the end of the run"
((failures == 0))
