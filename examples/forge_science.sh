#!/usr/bin/env bash
# forge_science.sh PAPERS.jsonl [FOLDER] [--short]: FORGE's pipeline (Yin et al. 2023, "FORGE: Pre-training open foundation models for
# science") on two cores: papers by discipline, filters and duplicates, one tokenizer, a mixture of the disciplines, GPT-NeoX trained
# by LAMB, and the validation loss of each discipline as a picture. PAPERS.jsonl: a paper per line with "text" and "discipline", as
# unarXive has it. FOLDER (forge_science) must not exist yet. --short: a few steps. docs/recipes.md describes it.
set -euo pipefail

folder=forge_science papers= short=no
for argument in "$@"; do
  case $argument in
    --short) short=yes ;;
    -*) echo "error: unknown option \"$argument\"; forge_science.sh PAPERS.jsonl [FOLDER] [--short]" >&2; exit 1 ;;
    *) if [[ -z $papers ]]; then papers=$argument; else folder=$argument; fi ;;
  esac
done
if [[ ! -f $papers ]]; then echo "error: no file \"$papers\"; name papers as JSON lines" >&2; exit 1; fi
if [[ -e $folder ]]; then echo "error: \"$folder\" exists; name another folder" >&2; exit 1; fi
papers=$(realpath "$papers")
mkdir -p "$folder"
cd "$folder"

echo "== disciplines"  # without the identifiers of formulas and citations
sources='' domains=()
while read -r name title; do
  grep -E "\"discipline\": ?\"$title\"" "$papers" | sed 's/{{[^}]*}}//g' > "$name.jsonl" || { rm -f "$name.jsonl"; continue; }
  sources+="[source.$name]"$'\n'"path = \"$name.jsonl\""$'\n'
  domains+=("$name")
done <<'TITLES'
physics Physics
mathematics Mathematics
computing Computer Science
TITLES
if ((${#domains[@]} == 0)); then echo "error: \"$papers\" has no paper of the disciplines" >&2; exit 1; fi

cat > corpus.toml <<END_OF_FILE
${sources}
[filter]
min_bytes = 200
quality = "gopher"
[deduplicate]
near = 0.8
END_OF_FILE
if [[ $short == yes ]]; then steps=3 size="layers = 2
embed = 64
heads = 4" vocabulary=300; else steps=200 size="layers = 3
embed = 96
heads = 6" vocabulary=1024; fi
kintsugi prepare --pipeline corpus.toml --tokenizer "bpe:$vocabulary" --validation 0.2 --seed 3 --output corpora 2> prepare.txt

# Each discipline by its tokens, and its own validation loss.
{
  echo "[model]
family = \"gptneox\"
residual = \"sequential\"
$size
[train]
folder = \"run\"
steps = $steps
global_batch = 16
sequence = $([[ $short == yes ]] && echo 32 || echo 128)
optimizer = \"lamb\"
learning_rate = 0.01
evaluate_every = $((steps / 20 + 1))
[data.train]"
  for name in "${domains[@]}"; do echo "\"corpora/$name/train\" = $(stat -c %s "corpora/$name/train.bin")"; done
  echo "[data.validation]"
  for name in "${domains[@]}"; do echo "$name = \"corpora/$name/validation\""; done
} > run.toml
kintsugi train run.toml > train.log
kintsugi report run --output report.html
