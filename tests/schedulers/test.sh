#!/usr/bin/env bash
# test.sh KINTSUGI ROOT: jobs for PBS and Flux, whose commands fake.sh plays, as they are not packaged for Debian: a run is
# submitted, told to stop by its launcher before the time limit, run again, and ends with the metrics of an undisturbed one;
# every option of its script is one that the manual pages document. The same check for the scripts of the sites with PBS.
set -euo pipefail
kintsugi=$(realpath "$1") root=$(realpath "$2")
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
for name in qsub qrerun qdel flux mpirun; do cp "$root/tests/schedulers/fake.sh" "bin/$name"; done
export PATH=$work/bin:$PATH FAKE_LOG=$work/commands
fail() { echo "FAILED: $*"; cat log commands commands.out 2>/dev/null | tail -n 40; exit 1; }
numbers() { sed 's/,"tokens_per_second".*//' "$1/metrics.jsonl"; }

for ((i = 0; i < 400; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >log 2>&1 || fail "prepare"
cat >run.toml <<'TOML'
[model]
layers = 1
embed = 16
heads = 2
[data]
train = "corpus/train"
[train]
folder = "runs/x"
steps = 1500
global_batch = 4
sequence = 16
event_files = false
[parallel]
threads = 1
TOML
"$kintsugi" train run.toml --set train.folder=runs/whole >log 2>&1 || fail "the undisturbed run"
for site in pbs flux; do
  # Each attempt stops soon, as if the limit were near.
  "$kintsugi" job run.toml --site $site --guard --set "train.folder=runs/$site" train.stop_after_minutes=0.002 >log 2>&1 ||
    fail "job"
  submit=$(sed -n 's/^submit it with: //p' log)
  $submit >log 2>&1 || fail "$site: $submit"
  cmp <(numbers runs/whole) <(numbers "runs/$site") || fail "$site: other metrics"
  grep -q '"outcome":"finished"' "runs/$site/attempts.jsonl" || fail "$site: no attempt finished"
  (($(grep -c '"began"' "runs/$site/attempts.jsonl") > 1)) || fail "$site: it was not run again"
done
# Directives alone.
sed -i 's/^threads/ranks = 40\nthreads/; s/global_batch = 4/global_batch = 40/' run.toml
for site in polaris aurora; do
  "$kintsugi" job run.toml --site $site --nodes 10 --time 1h --account project --output "$site.sh" >log 2>&1 || fail "job $site"
  sed -i '/^set -euo/,$d' "$site.sh"
  qsub "$site.sh" >log 2>&1 || fail "$site: $(cat log)"
done
qsub -Z nothing polaris.sh >log 2>&1 && fail "an unknown option was taken"
grep -q "^qrerun " commands || fail "no qrerun"
grep -q "^flux --parent batch --dependency=afterany:" commands || fail "no dependency"
echo "2 runs continued, $(wc -l <commands) commands checked"
