#!/usr/bin/env bash
# tour.sh [FOLDER] [--short]: from text to a tokenizer, pre-training, conversations, rewards for right sums, chat and a report.
# docs/tour.md describes it. FOLDER (tour) must not exist yet. --short: a few steps of each, in seconds.
set -euo pipefail

folder=tour short=no
for argument in "$@"; do
  case $argument in
    --short) short=yes ;;
    -*) echo "error: unknown option \"$argument\"; tour.sh [FOLDER] [--short]" >&2; exit 1 ;;
    *) folder=$argument ;;
  esac
done
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
if [[ -e $folder ]]; then echo "error: \"$folder\" exists; name another folder" >&2; exit 1; fi
mkdir -p "$folder"
cd "$folder"
steps() { if [[ $short == yes ]]; then echo "$2"; else echo "$1"; fi; }

echo "== text"
"$examples/write_text.sh" "$(steps 12000 1500)" | sed 's/ in the year [0-9]*//' > text.txt
# Sums of numbers up to 99 with a result up to 99, of which a twentieth is held out.
awk 'BEGIN {
  state = 2024
  for (a = 0; a < 100; ++a)
    for (b = 0; a + b < 100; ++b) {
      line = sprintf("\"prompt\": \"%02d+%02d=\", \"answer\": \"%02d\"}", a, b, a + b)
      state = (state * 16807) % 2147483647  # the generator of Park and Miller (1988)
      n = state % 20
      print "{" line > (n == 0 ? "held_out.jsonl" : "sums.jsonl")
      if (n > 0) print "{" line > "chats.jsonl"
    }
}'
awk 'BEGIN {
  split("Hello,Who are you,What do you do,Good morning,Thank you", ask, ",")
  split("Hello! Ask me for a sum.,A very small model.,I add numbers: 12+34=46.,Good morning!,You are welcome.", say, ",")
  for (i = 0; i < 200; ++i) printf "{\"prompt\": \"%s\", \"answer\": \"%s\"}\n", ask[i % 5 + 1], say[i % 5 + 1]
}' >> chats.jsonl

echo "== tokenizer"
# Digits and signs of sums are in the text, so that each has a token.
printf '0 1 2 3 4 5 6 7 8 9 + = ! ? :\n' >> text.txt
kintsugi prepare text.txt --tokenizer bpe:512 --output corpus 2> prepare.txt

model='[model]
family = "llama"
layers = 3
embed = 96
heads = 6
context = 128'
data='tokenizer = "corpus/tokenizer.json"
chat_template = "none"'

echo "== pre-training"
cat > text.toml <<END_OF_FILE
$model
[data]
train = "corpus/train"
validation = "corpus/validation"
[train]
folder = "text"
steps = $(steps 600 10)
global_batch = 16
sequence = 64
learning_rate = 3e-3
prompts = ["The old baker"]
END_OF_FILE
kintsugi train text.toml > text.log

echo "== conversations"
cat > chats.toml <<END_OF_FILE
$model
[data]
train = "chats.jsonl"
$data
[train]
folder = "chats"
init_from = "text"
steps = $(steps 400 10)
global_batch = 16
sequence = 64
learning_rate = 4e-3
END_OF_FILE
kintsugi train chats.toml > chats.log

echo "== rewards"
cat > rewards.toml <<END_OF_FILE
$model
[data]
train = "sums.jsonl"
validation = "held_out.jsonl"
$data
[train]
method = "grpo"
folder = "rewards"
init_from = "chats"
steps = $(steps 200 4)
global_batch = $(steps 256 16)
micro_batch = $(steps 64 16)
sequence = 16
learning_rate = 5e-4
weight_decay = 0.0
evaluate_every = $(steps 20 2)
evaluate_batches = 1
[grpo]
group = 8
length = 4
reward = "exact"
END_OF_FILE
kintsugi train rewards.toml > rewards.log

echo "== chat"
printf 'Hello\n12+34=\n27+65=\n' | kintsugi chat rewards --temperature 0 --length 12
echo "== report"
kintsugi report text chats rewards --output report.html
