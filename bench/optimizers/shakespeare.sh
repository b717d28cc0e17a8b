#!/usr/bin/env bash
# shakespeare.sh [TEXT]: trains examples/shakespeare_char.toml with AdamW and with Muon, at equal tokens, and prints the
# validation loss of both over the steps. TEXT as of bench/shakespeare.sh.
#
# Runs go to runs/optimizers/; those of an earlier call are replaced. KINTSUGI: the binary, if not that of build/.
# RATES: learning rates of both, "1e-3 2e-3"; the best at the end is shown. SETS: further values for --set, for a
# smaller run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
text=$(realpath -m "${1:-$root/../shared/data/tinyshakespeare/input.txt}")
cd "$root"
if [[ ! -r $text ]]; then
  echo "error: there is no text \"$text\"; bench/optimizers/shakespeare.sh TEXT" >&2
  exit 1
fi
if [[ -z ${KINTSUGI:-} ]]; then scripts/build.sh kintsugi; fi
kintsugi=${KINTSUGI:-build/app/kintsugi}
runs=runs/optimizers

"$kintsugi" prepare "$text" --tokenizer chars --output $runs/text --force
for optimizer in adamw muon; do
  for rate in ${RATES:-1e-3}; do
    rm -rf "$runs/${optimizer}_$rate"
    "$kintsugi" train examples/shakespeare_char.toml --set train.optimizer=$optimizer train.learning_rate="$rate" \
      data.train=$runs/text/train data.validation=$runs/text/validation train.evaluate_batches=100 \
      train.folder="$runs/${optimizer}_$rate" ${SETS:-} > /dev/null
  done
done
python3 - $runs <<'END'
import json, pathlib, sys
best = {}
for run in sorted(pathlib.Path(sys.argv[1]).glob("*_*")):
    name, rate = run.name.split("_")
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = {s["step"]: s["validation_loss"] for s in steps if "validation_loss" in s}
    seconds = sum(s["seconds"] for s in steps)
    last = losses[max(losses)]
    print(f"{name} at {rate}: {last:.4f}, {seconds:.0f} s")
    if name not in best or last < best[name][0]:
        best[name] = (last, rate, losses)
names = ["adamw", "muon"]
print("\n| step | " + " | ".join(f"{n}, {best[n][1]}" for n in names) + " |\n|---" * 1 + "|---" * len(names) + "|")
for step in best["adamw"][2]:
    print(f"| {step:,} | " + " | ".join(f"{best[n][2][step]:.4f}" for n in names) + " |")
END
