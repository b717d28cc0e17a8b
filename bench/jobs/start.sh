#!/usr/bin/env bash
# start.sh KINTSUGI [RANKS [threads|openmpi|mpich]]: how long RANKS (256) ranks take on this machine from the command to the end
# of a run of one step of a very small model, on as many cores as there are: start, agreement on binary, configuration and data,
# compilation and groups. Ranks are threads of one process, or processes of mpirun (some 30 MB each), next to which the time
# of an MPI program that does nothing is printed: MPI_Init, a barrier, MPI_Finalize. Also prints processor seconds, from which
# the time on more cores follows.
set -euo pipefail
kintsugi=$(realpath "$1") ranks=${2:-256} kind=${3:-threads}
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work"
for ((i = 0; i < 4000; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >/dev/null 2>&1
printf '[model]\nlayers = 1\nembed = 8\nheads = 1\n[data]\ntrain = "corpus/train"\n[train]\nsteps = 1\nwarmup_steps = 0\nglobal_batch = %d\nsequence = 8\nevent_files = false\n[parallel]\nranks = %d\nthreads = 1\nbind = false\n' \
  "$ranks" "$ranks" >run.toml
TIMEFORMAT='%R s, %U + %S processor seconds'
timed() {
  local what=$1
  shift
  echo "$what: $({ time "$@" >log 2>&1; } 2>&1 || { tail -n 5 log; echo FAILED; })"
  ! grep -q '^error' log || { tail -n 5 log; exit 1; }
}
if [[ $kind == threads ]]; then
  timed "$ranks ranks as threads, to the end of one step" "$kintsugi" train run.toml
  exit
fi
run=(mpirun.mpich -n "$ranks")
[[ $kind == mpich ]] || run=(mpirun.openmpi --allow-run-as-root --oversubscribe -n "$ranks")
printf '#include <mpi.h>\nint main(int n, char** v) { MPI_Init(&n, &v); MPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize(); }\n' >empty.c
"mpicc.$kind" empty.c -o empty
timed "$ranks processes of $kind that do nothing" "${run[@]}" ./empty
timed "$ranks ranks under $kind, to the end of one step" "${run[@]}" "$kintsugi" train run.toml
