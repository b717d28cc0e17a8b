#!/usr/bin/env bash
# busy_threads.sh [STEPS]: tokens/s of models from 64 to 1,024 wide with one thread and with the default number, on idle
# cores and beside a process that keeps one core busy; best of three interleaved runs. On a machine with other work the
# ratios in one row say more than the figures.
set -euo pipefail
kintsugi=$(realpath "$(dirname "$0")/../build/app/kintsugi")
steps=${1:-30}
folder=$(mktemp -d)
busy=
trap 'rm -rf "$folder"; [ -z "$busy" ] || kill "$busy" 2>/dev/null || true' EXIT
cd "$folder"
seq 1 60000 > text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus > /dev/null 2>&1

# tokens/s of a run: those of its last steps, by the median
rate() {  # WIDTH SETTINGS...
  local width=$1
  shift
  rm -rf run
  cat > run.toml <<END
[model]
layers = 2
embed = $width
heads = 4
[data]
train = "corpus/train"
[train]
folder = "run"
steps = $steps
sequence = 64
warmup_steps = 1
END
  "$kintsugi" train run.toml --set checkpoint.every=0 "$@" > /dev/null 2>&1
  grep -o '"tokens_per_second":[0-9.]*' run/metrics.jsonl | cut -d: -f2 | tail -n $((steps / 2)) | sort -n | awk '{v[NR]=$1} END {print v[int((NR + 1) / 2)]}'
}

printf '%6s  %12s %12s %6s   %12s %12s %6s\n' width "idle: one" default ratio "busy: one" default ratio
for width in 64 128 256 512 1024; do
  row=
  for state in idle busy; do
    one=0 all=0
    if [ $state = busy ]; then
      (while :; do :; done) &
      busy=$!
    fi
    for _ in 1 2 3; do
      a=$(rate $width parallel.threads=1) b=$(rate $width)
      one=$(awk -v x="$one" -v y="$a" 'BEGIN {print (x > y ? x : y)}')
      all=$(awk -v x="$all" -v y="$b" 'BEGIN {print (x > y ? x : y)}')
    done
    if [ -n "$busy" ]; then
      kill "$busy"
      wait "$busy" 2>/dev/null || true
      busy=
    fi
    row+=$(printf '  %12.0f %12.0f %6.2f ' "$one" "$all" "$(awk -v x="$all" -v y="$one" 'BEGIN {print x / y}')")
  done
  printf '%6s%s\n' $width "$row"
done
