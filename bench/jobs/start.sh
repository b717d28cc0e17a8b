#!/usr/bin/env bash
# start.sh KINTSUGI [RANKS]: how long RANKS (256) processes take on this machine from mpirun to the end of a run of one step of
# a very small model, on as many cores as there are: start of MPI, agreement on binary, configuration and data, compilation
# and groups. Memory: some 30 MB per rank.
set -euo pipefail
kintsugi=$(realpath "$1") ranks=${2:-256}
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work"
for ((i = 0; i < 4000; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >/dev/null 2>&1
printf '[model]\nlayers = 1\nembed = 8\nheads = 1\n[data]\ntrain = "corpus/train"\n[train]\nsteps = 1\nwarmup_steps = 0\nglobal_batch = %d\nsequence = 8\nevent_files = false\n[parallel]\nranks = %d\nthreads = 1\nbind = false\n' \
  "$ranks" "$ranks" >run.toml
begin=$(date +%s.%N)
mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$kintsugi" train run.toml >log 2>&1 || { tail -n 5 log; exit 1; }
awk -v b="$begin" -v e="$(date +%s.%N)" -v n="$ranks" 'BEGIN { printf "%d ranks: %.1f s from mpirun to the end of one step\n", n, e - b }'
