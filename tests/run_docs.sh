#!/usr/bin/env bash
# run_docs.sh KINTSUGI ROOT: runs what the documentation shows. Of each page below, in this order and in one folder, every
# block of ```sh is run as it stands, with `kintsugi` found and kintsugi/, docs/, examples/ and clusters/ in place; it must succeed.
# A block of ```text behind one must be, to the letter, what it printed on both streams; there, the block may fail. A line
# "..." in it stands for any lines, and "..." at the end of a line for the rest of that line. What changes from machine to
# machine (losses, speeds) is there in this way, or in blocks of ```console, which are not compared.
set -euo pipefail
kintsugi=$(realpath "$1")
root=$(realpath "$2")
pages=(README.md docs/tutorial.md docs/tour.md docs/questions.md docs/running-on-clusters.md docs/jobs.md docs/sweep.md docs/prepare.md docs/corpus.md docs/new.md docs/check.md docs/plan.md docs/clusters.md docs/search.md docs/scaling.md docs/bench.md docs/train.md docs/report.md docs/watch.md docs/profile.md docs/scale.md docs/generate.md docs/evaluate.md docs/tasks.md docs/embed.md docs/probe.md docs/serve.md docs/show.md docs/import.md
  docs/export.md docs/finetune.md docs/chat.md docs/experts.md docs/encoders.md docs/compare.md docs/explain.md docs/completion.md docs/recompute.md docs/robustness.md docs/devices.md docs/offload.md docs/results.md)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/blocks" "$work/here"
ln -s "$kintsugi" "$work/bin/kintsugi"
ln -s "$root/kintsugi" "$root/docs" "$root/examples" "$root/clusters" "$work/here"
export PATH=$work/bin:$PATH
cd "$work/here"
# One core, and so one thread: these models are too small for more, and other tests run beside this one.
core=$(taskset -cp $$ 2>/dev/null | sed 's/.*: *//; s/[,-].*//')
on_one_core=()
if [[ -n $core ]]; then on_one_core=(taskset -c "$core"); fi

# Whether a block of a page is what was printed.
same() {
  awk '
    function trimmed(line) { sub(/[[:space:]]*$/, "", line); return line }
    FNR == NR { page[++pages] = trimmed($0); next }
    { printed[++all] = $0 }
    function fits(p, l) {
      if (substr(page[p], length(page[p]) - 2) == "...")
        return substr(printed[l], 1, length(page[p]) - 3) == substr(page[p], 1, length(page[p]) - 3)
      return printed[l] == page[p]
    }
    END {
      line = 1
      for (p = 1; p <= pages; ++p) {
        if (page[p] != "...") { if (line > all || !fits(p, line)) exit 1; ++line; continue }
        if (p == pages) exit 0
        while (line <= all && !fits(p + 1, line)) ++line
      }
      exit line <= all
    }' "$1" "$2"
}

ran=0 compared=0 failures=0
for page in "${pages[@]}"; do
  rm -f "$work"/blocks/*
  # Each block becomes a file: its number, the line that it begins in, its kind.
  awk -v folder="$work/blocks" '
    /^```/ && !inside { inside = 1; kind = substr($0, 4); if (kind == "") kind = "none"
                        file = sprintf("%s/%03d.%d.%s", folder, ++count, NR, kind); printf "" > file; next }
    /^```/ { inside = 0; close(file); next }
    inside { print > file }' "$root/$page"
  blocks=("$work"/blocks/*)
  for ((i = 0; i < ${#blocks[@]}; ++i)); do
    [[ ${blocks[i]} == *.sh ]] || continue
    line=$(basename "${blocks[i]}" | cut -d . -f 2)
    expected=${blocks[i + 1]:-}
    code=0
    "${on_one_core[@]}" bash -euo pipefail "${blocks[i]}" >"$work/output" 2>&1 </dev/null || code=$?
    ran=$((ran + 1))
    if [[ $expected == *.text ]]; then
      compared=$((compared + 1))
      # A line that begins with the time of day tells the progress of what takes long on a slow machine.
      sed -i '/^[0-9][0-9]:[0-9][0-9]:[0-9][0-9] /d; s/[[:space:]]*$//' "$work/output"
      if ! same "$expected" "$work/output"; then
        diff "$expected" "$work/output" | head -n 40 || true
        echo "$page:$line: the page shows < and the command prints >"
        failures=$((failures + 1))
      fi
    elif ((code != 0)); then
      tail -n 20 "$work/output"
      echo "$page:$line: ended with code $code; its output is above"
      failures=$((failures + 1))
    fi
  done
done
echo "$ran blocks of ${#pages[@]} pages run, $compared outputs compared, $failures failures"
((failures == 0 && ran >= ${#pages[@]}))
