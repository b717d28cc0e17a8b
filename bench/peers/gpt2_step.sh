#!/usr/bin/env bash
# The training step of GPT-2 (124M), batch 4 x 256: Kintsugi and PyTorch (eager) in turns, on the same threads, in
# one run. Prints each one's best and median tokens per second, and the ratio of the medians.
#
#   bench/peers/gpt2_step.sh [rounds, 3] [steps per round, 4] [fp32 | bf16]
#
# PyTorch's bf16 is autocast, with weights in fp32. KINTSUGI and PYTHON name other programs than the usual ones.
#
# Installs, where python3 has no torch: PyTorch from PyPI into build/peers (a virtual environment), about 1 GB.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-3} steps=${2:-4} dtype=${3:-fp32} threads=$(nproc) batch=4 sequence=256
kintsugi=${KINTSUGI:-build/app/kintsugi}
[ -x "$kintsugi" ] || { echo "no $kintsugi: build first (./scripts/test.sh), or name it in KINTSUGI" >&2; exit 1; }

python=${PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
  python=build/peers/bin/python3
  if ! [ -x "$python" ] || ! "$python" -c 'import torch' 2>/dev/null; then
    echo "installing PyTorch into build/peers" >&2
    python3 -m venv build/peers
    build/peers/bin/pip install --quiet torch numpy
  fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$kintsugi" prepare docs --tokenizer bytes --output "$work/corpus" >/dev/null 2>&1
cat >"$work/run.toml" <<TOML
[model]
name = "gpt2"
vocab = 50257
[data]
train = "$work/corpus/train"
[train]
global_batch = $batch
micro_batch = $batch
sequence = $sequence
steps = $steps
learning_rate = 1e-4
dtype = "$dtype"
[parallel]
threads = $threads
TOML

for round in $(seq "$rounds"); do
  "$kintsugi" train "$work/run.toml" --set "train.folder=$work/run$round" >/dev/null 2>&1
  # The first step of each touches its memory for the first time.
  tail -n +2 "$work/run$round/metrics.jsonl" | sed 's/.*"tokens_per_second":\([0-9.]*\).*/\1/' >>"$work/ours"
  rm -rf "$work/run$round"
  "$python" bench/peers/gpt2_torch.py "$threads" "$steps" "$batch" "$sequence" "$dtype" | tail -n +2 | cut -d' ' -f1 >>"$work/theirs"
done
median() { sort -n "$1" | awk '{a[NR] = $1} END {print (NR % 2) ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2}'; }
best() { sort -n "$1" | tail -1; }
echo "GPT-2 124M, $dtype, batch $batch x $sequence, $threads threads, $("$python" -c 'import torch; print("PyTorch", torch.__version__)')"
echo "kintsugi  median $(median "$work/ours") best $(best "$work/ours") tokens/s"
echo "pytorch   median $(median "$work/theirs") best $(best "$work/theirs") tokens/s"
awk -v a="$(median "$work/ours")" -v b="$(median "$work/theirs")" 'BEGIN {printf "ratio     %.2f\n", a / b}'
