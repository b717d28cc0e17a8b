#!/usr/bin/env bash
# start.sh KINTSUGI [RANKS [threads|mpi]]: how long RANKS (256) ranks take on this machine from the command to the end of a run
# of one step of a very small model, on as many cores as there are: start, agreement on binary, configuration and data,
# compilation and groups. Ranks are threads of one process, or processes of mpirun (some 30 MB each), next to which the time
# of an MPI program that does nothing is printed: MPI_Init, a barrier, MPI_Finalize.
set -euo pipefail
kintsugi=$(realpath "$1") ranks=${2:-256} kind=${3:-threads}
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work"
for ((i = 0; i < 4000; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >/dev/null 2>&1
printf '[model]\nlayers = 1\nembed = 8\nheads = 1\n[data]\ntrain = "corpus/train"\n[train]\nsteps = 1\nwarmup_steps = 0\nglobal_batch = %d\nsequence = 8\nevent_files = false\n[parallel]\nranks = %d\nthreads = 1\nbind = false\n' \
  "$ranks" "$ranks" >run.toml
took() { awk -v b="$1" -v e="$(date +%s.%N)" -v w="$2" 'BEGIN { printf "%s: %.1f s\n", w, e - b }'; }
if [[ $kind == threads ]]; then
  begin=$(date +%s.%N)
  "$kintsugi" train run.toml >log 2>&1 || { tail -n 5 log; exit 1; }
  took "$begin" "$ranks ranks as threads, to the end of one step"
  exit
fi
printf '#include <mpi.h>\nint main(int n, char** v) { MPI_Init(&n, &v); MPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize(); }\n' >empty.c
mpicc empty.c -o empty
begin=$(date +%s.%N)
mpirun --allow-run-as-root --oversubscribe -n "$ranks" ./empty
took "$begin" "$ranks processes of mpirun that do nothing"
begin=$(date +%s.%N)
mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$kintsugi" train run.toml >log 2>&1 || { tail -n 5 log; exit 1; }
took "$begin" "$ranks ranks under mpirun, to the end of one step"
