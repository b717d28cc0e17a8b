#!/usr/bin/env bash
# gpu_figures.sh BUILD SOURCE: bench/gpu/all.sh on the emulated device, where its figures mean nothing: that every line of
# it does what it should.
set -euo pipefail
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$build/app/kintsugi" "$build/bench/figures" "$build/kernels_gpu_test" "$source/bench/gpu/torch_gpt2.py" "$folder/"
cp "$source/bench/gpu/all.sh" "$folder/"
mkdir "$folder/text"
cp "$source"/docs/*.md "$folder/text/"
"$folder/all.sh" --device emulated --output "$folder/results" --minutes 4 >"$folder/log" 2>&1 && code=0 || code=$?
if ((code > 1)); then
  cat "$folder/log"
  exit 1
fi
# Each row has a figure, but for PyTorch, which has no card here.
if grep -v PyTorch "$folder/results/figures.txt" | grep "none:"; then
  cat "$folder/results/raw.txt"
  exit 1
fi
for row in "GPT-2 124M, 64 x 1024, bf16 .* tokens/s" "GPT-2 1558M, 64 x 1024, bf16 .* tokens/s" "Llama-3 8B's shapes" "decoding one text, llama3-8b" \
  "tests of kernels .* yes" "layouts of four ranks as one of the processor *12 *12 *yes" "loss beside the processor's.* yes"; do
  grep -q "$row" "$folder/results/figures.txt" || {
    echo "no row \"$row\":"
    cat "$folder/results/figures.txt"
    exit 1
  }
done
