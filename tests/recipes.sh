#!/usr/bin/env bash
# recipes.sh KINTSUGI ROOT: every recipe of docs/recipes.md. At full size its configuration is checked, and what is planned for it fits
# what the page says; shrunk, with all that is not a size left as it is, it trains for three steps.
set -euo pipefail
kintsugi=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$root/clusters" clusters
export OMP_NUM_THREADS=1
mkdir bin
ln -s "$kintsugi" bin/kintsugi

"$root/examples/write_text.sh" > text.txt
"$kintsugi" prepare text.txt --tokenizer bpe:512 --output corpus > /dev/null
for n in $(seq 40); do
  printf '{"prompt": "%d?", "answer": "%d"}\n' "$n" $((n + 1))
done > chats.jsonl

failures=0
# recipe NAME SETS...: what shrinks it.
recipe() {
  local name=$1 began=$SECONDS
  shift
  if ! "$kintsugi" train "$root/examples/$name.toml" --set "$@" train.folder="runs/$name" train.steps=3 \
    train.evaluate_batches=1 parallel.threads=1 train.event_files=false > "$name.log" 2>&1; then
    echo "$name: does not train"
    tail -n 5 "$name.log"
    failures=$((failures + 1))
  elif [[ $(wc -l < "runs/$name/metrics.jsonl") != 3 ]]; then
    echo "$name: no three steps"
    failures=$((failures + 1))
  fi
  if ((SECONDS - began > 20)); then
    echo "$name: took $((SECONDS - began)) s"
    failures=$((failures + 1))
  fi
}

small="model.layers=2 model.embed=64 model.heads=4 model.kv_heads=4 model.ffn=128 model.vocab=512 model.context=64 train.sequence=64"
# shellcheck disable=SC2086  # words
{
  recipe gpt2_xl_fsdp $small
  recipe gptj_zero3_offload $small model.rotary_dims=8 train.global_batch=4
  recipe mixtral_experts $small model.kv_heads=2 train.global_batch=8
  recipe gpt_22b_3d $small model.heads=8 model.kv_heads=8 parallel.cluster=
  recipe gpt_1t_3d $small parallel.data=2 parallel.tensor=2 parallel.pipe=2 train.global_batch=8 parallel.cluster=
  recipe bert_science $small train.global_batch=8 parallel.data=2 data.mask_token=5 data.first_token=6 data.separator_token=7
}
"$kintsugi" train "$root/examples/quick.toml" --set model.layers=2 model.embed=64 model.heads=4 train.steps=2 train.sequence=64 \
  data.train=corpus/train train.folder=runs/base parallel.threads=1 > /dev/null 2>&1
"$kintsugi" export runs/base base > /dev/null
recipe llama3_8b_lora model.name=base train.init_from=base data.chat_template=none model.context=64 train.sequence=64

# FORGE's pipeline, on papers of three disciplines.
awk 'BEGIN { split("Physics,Mathematics,Computer Science", disciplines, ",") }
  { text = text " " $0 }
  NR % 40 == 0 {
    printf "{\"discipline\": \"%s\", \"text\": \"We have to show that the sentences of a paper go with one another.%s\"}\n",
      disciplines[NR / 40 % 3 + 1], text
    text = ""
    if (++papers == 60) exit
  }' text.txt > papers.jsonl
began=$SECONDS
if ! PATH=$work/bin:$PATH "$root/examples/forge_science.sh" papers.jsonl forge --short > forge.log 2>&1 ||
  ! grep -q '"validation_loss.mathematics"' forge/run/metrics.jsonl || [[ ! -s forge/report.html ]]; then
  echo "forge_science: ended early, or no validation loss of a discipline"
  tail -n 5 forge.log
  failures=$((failures + 1))
fi
if ((SECONDS - began > 20)); then
  echo "forge_science: took $((SECONDS - began)) s"
  failures=$((failures + 1))
fi
((failures == 0)) && echo "all recipes train"
exit $((failures > 0))
