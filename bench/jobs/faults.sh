#!/usr/bin/env bash
# faults.sh KINTSUGI [--kinds "kill stop slow flip full hang"] [--each N] [--seed S]: on a Slurm of four hosts of its own, runs in
# each of which one fault is injected into a drawn rank at a drawn step: the rank is killed; stopped; slowed to a fifth; one bit
# of its weights or optimizer states is flipped; the disk of the run's folder becomes full; or that file system hangs for 30 s.
# The log must name the rank, the node and the cause. N (8) of each kind; the last line counts; exit code 1 if one is not named.
set -uo pipefail
usage() { echo "usage: faults.sh KINTSUGI [--kinds KINDS] [--each N] [--seed S]" >&2; exit 2; }
(($# >= 1)) || usage
kintsugi=$(realpath "$1"); shift
kinds="kill stop slow flip full hang" each=8 state=1
while (($# >= 2)); do
  case $1 in
    --kinds) kinds=$2 ;;
    --each) each=$2 ;;
    --seed) state=$2 ;;
    *) usage ;;
  esac
  shift 2
done
work=$(realpath "$(mktemp -d)")
cleanup() {
  fsfreeze --unfreeze "$work/disk" 2>/dev/null
  stop_cluster
  umount "$work/disk" 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT
# Before the hosts start, so that they see it.
truncate -s 256M "$work/image"
mkdir "$work/disk"
if ! mkfs.ext4 -q "$work/image" || ! mount -o loop "$work/image" "$work/disk"; then
  echo "skipped: no loop devices" >&2
  exit 77
fi
# shellcheck source-path=SCRIPTDIR source=cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
mkdir logs

cat >run.toml <<'TOML'
[model]
layers = 2
embed = 128
heads = 2
[data]
train = "corpus/train"
[train]
steps = 100000
global_batch = 8
sequence = 64
event_files = false
[checkpoint]
every = 100
[parallel]
ranks = 4
threads = 1
bind = false
check_replicas_every = 10
[launch]
quiet_seconds = 15
check_seconds = 2
TOML

failures=0 faults=0 summary=""
# Until the log has it, at most that many seconds; a command that runs meanwhile, every 100 ms.
await() {
  local pattern=$1 log=$2 i
  for ((i = 0; i < 10 * $3; ++i)); do
    grep -qsE "$pattern" "$log" && return 0
    ${4:-sleep 0.1}
  done
  return 1
}
slow_down() { kill -STOP "$pid"; sleep 0.4; kill -CONT "$pid"; sleep 0.1; }

one() {
  local kind=$1 number=$2 run=disk/$1$2 quiet=15 log at rank node pattern limit=60 during="" sets="" began
  [[ $kind != hang ]] || quiet=60
  # Enough arithmetic that the ranks, which share cores, do not mostly wait for each other.
  [[ $kind != slow ]] || sets="train.sequence=256 train.global_batch=16"
  # shellcheck disable=SC2086  # words
  "$kintsugi" job run.toml --site slurm --nodes 4 --time 30 --set "train.folder=$run" "launch.quiet_seconds=$quiet" $sets \
    --output job.sh >log 2>&1 || { cat log; exit 1; }
  sed -i "s|^#SBATCH --output=.*|#SBATCH --output=$work/logs/$kind$number.log|" job.sh
  sbatch job.sh >log 2>&1 || { cat log; exit 1; }
  log=logs/$kind$number.log
  draw 60
  at=$((drawn + 5))
  [[ $kind != slow ]] || at=$((drawn / 4 + 5))
  await_steps "$run" "$at"
  draw 4
  rank=$drawn node=n$((drawn + 1))
  pid=$(pid_of_rank "$rank")
  [[ -n $pid ]] || { echo "FAILED $kind: no process of rank $rank"; tail -n 5 "$log"; failures=$((failures + 1)); return; }
  case $kind in
    kill) kill -KILL "$pid"; pattern="a rank was killed \(rank $rank on $node\)" ;;
    stop) kill -STOP "$pid"; pattern="no sign of life from any rank on $node for [0-9]+ s \(rank $rank\)" ;;
    slow) pattern="rank $rank on $node is a straggler" limit=120 during=slow_down ;;
    flip) "$root/bench/jobs/flip.py" "$pid" "$state" >/dev/null; pattern="replicas differ \(rank $rank on $node\)" ;;
    full) dd if=/dev/zero of=disk/filler bs=1M status=none 2>/dev/null; pattern="the disk is full \(rank ([0-9]) on n[0-9]+\): error: \[[a-z]+\] (rank \1:|step|cannot)" ;;
    hang)
      fsfreeze --freeze disk
      sleep 30
      fsfreeze --unfreeze disk
      pattern="rank $rank on $node: the file system of .* did not respond for [0-9]+ s" ;;
  esac
  faults=$((faults + 1)) began=$SECONDS
  if await "$pattern" "$log" "$limit" "$during"; then
    echo "$kind, rank $rank, step $at: named after $((SECONDS - began)) s: $(grep -m 1 -E "$pattern" "$log" | cut -c 1-160)"
    named=$((named + 1))
  else
    echo "FAILED $kind, rank $rank on $node, step $at: not named"
    tail -n 15 "$log"
    failures=$((failures + 1))
  fi
  scancel --me 2>/dev/null
  kill -CONT "$pid" 2>/dev/null
  rm -f disk/filler
  await_idle
  rm -rf "$run"
}
for kind in $kinds; do
  named=0
  for ((k = 1; k <= each; ++k)); do one "$kind" "$k"; done
  summary+="$kind $named of $each, "
done
echo "$faults faults, named with rank, node and cause: ${summary%, }"
((failures == 0))
