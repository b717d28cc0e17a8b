#!/usr/bin/env bash
# sweep.sh KINTSUGI: a sweep of 24 very small runs on 4 ranks, three of which are killed on the way: the table must be complete
# and equal to that of an undisturbed sweep. Then successive halving over the same 24 draws: it may train at most a third of
# those steps, and must end with their best or second.
set -euo pipefail
kintsugi=$(realpath "$1")
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; tail -n 30 log; exit 1; }
for ((i = 0; i < 400; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >log 2>&1 || fail "prepare"
printf '[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = "corpus/train"\nvalidation = "corpus/validation"\n[train]\nsteps = 135\nglobal_batch = 4\nsequence = 32\nevent_files = false\nevaluate_every = 0\nevaluate_batches = 4\n[checkpoint]\nevery = 15\n[parallel]\nthreads = 1\nbind = false\n' >run.toml
sweep() {
  printf '[sweep]\nfolder = "%s"\nmethod = "%s"\ntrials = 24\nranks = 4\nrestarts = 9\n[search]\ntrain.learning_rate = {from = 1e-5, to = 3e-2, scale = "log"}\nmodel.embed = [16, 32]\n' \
    "$1" "$2" >"$1.toml"
}
column() { tail -n +2 "$1/sweep.csv" | cut -d, -f"$2"; }

sweep undisturbed random
"$kintsugi" sweep undisturbed.toml >log 2>&1 || fail "the undisturbed sweep"
sweep killed random
"$kintsugi" sweep killed.toml >log 2>&1 &
pid=$! killed=0
while ((killed < 3)) && kill -0 $pid 2>/dev/null; do
  for p in $(pgrep -f -- "^$kintsugi train .*--resume auto"); do
    [[ /proc/$p/cwd -ef $work ]] || continue
    kill -KILL "$p" 2>/dev/null && killed=$((killed + 1)) && break
  done
  sleep 1
done
wait $pid || fail "the sweep with kills"
((killed == 3)) || fail "$killed of 3 were killed"
[[ $(column killed 1 | wc -l) == 24 ]] || fail "the table has $(column killed 1 | wc -l) of 24 runs"
# Place, run, values, steps and result; the sixth column counts failures.
cmp <(cut -d, -f1-6 undisturbed/sweep.csv) <(cut -d, -f1-6 killed/sweep.csv) || fail "the table differs from that of the undisturbed sweep"
echo "24 runs, 3 killed: table complete and equal, $(column killed 7 | awk '{ s += $1 } END { print s }') failures noted"

sweep halving halving
"$kintsugi" sweep halving.toml >log 2>&1 || fail "halving"
best=$(column halving 2 | head -n 1)
place=$(column undisturbed 2 | grep -n -x "$best" | cut -d: -f1)
steps=$(sed -n 's/^\([0-9,]*\) steps in .*/\1/p' log | tr -d ,)
awk -v s="$steps" -v p="$place" -v b="$best" 'BEGIN {
  printf "halving: %d steps of %d (%.0f%%); its best, %s, is number %d of all 24\n", s, 24 * 135, 100 * s / (24 * 135), b, p
  exit !(3 * s <= 24 * 135 && p <= 2)
}' || fail "more than a third, or neither the best nor the second"
