#!/bin/bash
# make.sh BINARY FOLDER: makes the files of this folder again, by a `kintsugi` and in another folder. See README.md.
set -euo pipefail
kintsugi=$(realpath "$1") here=$(realpath "$(dirname "$0")")
mkdir -p "$2/expected"
cd "$2"
cp "$here"/*.toml "$here"/text.jsonl .
"$kintsugi" prepare text.jsonl --field text --tokenizer bpe:280 --output corpus
"$kintsugi" prepare text.jsonl --field text --tokenizer chars --output letters
for run in one zero stages; do
  temperature=$([ $run = one ] && echo 0 || echo 1)  # what is drawn from bytes is no text
  "$kintsugi" train $run.toml
  cp -r $run more
  "$kintsugi" train $run.toml --resume --set train.steps=6
  grep -E 'rank_[0-9]+\.safetensors":\{"bytes"' $run/step_00000006/index.json > expected/$run.files
  mv $run/metrics.jsonl expected/$run.jsonl
  rm -rf $run && mv more $run && rm $run/.lock
  "$kintsugi" evaluate $run | sed -nE 's/^loss +//p' > expected/$run.loss
  "$kintsugi" generate $run --prompt 'two and' --length 24 --temperature $temperature --seed 3 > expected/$run.text
done
"$kintsugi" train one.toml --set train.init_from=one train.folder=from_one train.steps=2
mv from_one/metrics.jsonl expected/from_one.jsonl
rm -rf from_one
