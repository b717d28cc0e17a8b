#!/usr/bin/env bash
# saves.sh KINTSUGI [SAVES]: for how long a step waits for a checkpoint that is written to the run's folder, and for one that is
# staged first, in memory (/dev/shm) and in a folder on the same disk: the median of SAVES (9) saves of each, in turns. Two
# ranks of a model with 21 MB of weights, gradients excluded, and 42 MB of optimizer states.
set -euo pipefail
kintsugi=$(realpath "$1") saves=${2:-9}
work=$(realpath "$(mktemp -d)")
memory=$(mktemp -d /dev/shm/kintsugi_saves_XXXXXX)
trap 'rm -rf "$work" "$memory"' EXIT
cd "$work"
for ((i = 0; i < 4000; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >/dev/null 2>&1
cat >run.toml <<'TOML'
[model]
layers = 6
embed = 256
[data]
train = "corpus/train"
[train]
steps = 15
warmup_steps = 0
global_batch = 2
sequence = 16
event_files = false
[checkpoint]
every = 4
[parallel]
ranks = 2
threads = 1
bind = false
TOML
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
stages() { sed -n 's/.*"stage_seconds":\([0-9.e-]*\).*/\1/p' "$1/metrics.jsonl"; }
drains() { sed -n 's/.*"drain_seconds":\([0-9.e-]*\).*/\1/p' "$1/metrics.jsonl"; }
mkdir disk
for ((k = 0; 3 * k < saves; ++k)); do
  "$kintsugi" train run.toml --set "train.folder=none$k" >/dev/null 2>&1
  "$kintsugi" train run.toml --set "train.folder=memory$k" "checkpoint.local=$memory" >/dev/null 2>&1
  "$kintsugi" train run.toml --set "train.folder=disk$k" "checkpoint.local=$work/disk" >/dev/null 2>&1
done
of() { local k; for ((k = 0; 3 * k < saves; ++k)); do "$1" "$2$k"; done | median; }
whole=$(of stages none)
echo "the run waits for a checkpoint $(stat -c %s none0/step_*/rank_* | awk '{ s += $1 } END { printf "%.0f MB", s / 1e6 / NR }') per rank: $whole s"
for kind in memory disk; do
  staged=$(of stages $kind)
  awk -v w="$whole" -v s="$staged" -v d="$(of drains $kind)" -v k=$kind \
    'BEGIN { printf "staged in %s: %s s, %.2f of that; then %s s in the background\n", k, s, s / w, d }'
done
