#!/usr/bin/env bash
# start_tree.sh KINTSUGI [NODES [RANKS_PER_NODE]]: how long NODES (10,000) nodes take from the launcher to the first step, by
# simulation. The messages of a start are counted here, on 2 to 16 ranks under Open MPI, and continued to all ranks by a line
# through the two largest (each rank exchanges a number of messages with every other). The launcher's tree is simulated: a node
# starts its ranks, then the launchers of 50 nodes one after the other (Slurm's TreeWidth). Times are assumptions, printed below:
# 5 ms to pass the launch on to a node, 1 s to start the processes of a node, 2 us per message, 10 us per round of messages.
set -euo pipefail
kintsugi=$(realpath "$1") nodes=${2:-10000} per_node=${3:-1}
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >count.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static long messages;
int MPI_Isend(const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r) {
  ++messages;
  return PMPI_Isend(b, n, t, to, tag, c, r);
}
int MPI_Issend(const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r) {
  ++messages;
  return PMPI_Issend(b, n, t, to, tag, c, r);
}
int MPI_Finalize(void) {
  long most = 0;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(&messages, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  FILE* out = rank == 0 ? fopen(getenv("COUNT_FILE"), "a") : NULL;
  if (out) {
    fprintf(out, "%ld\n", most);
    fclose(out);
  }
  return PMPI_Finalize();
}
C
mpicc -shared -fPIC count.c -o count.so
for ((i = 0; i < 4000; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >/dev/null 2>&1
export COUNT_FILE=$work/counts
for n in 2 4 8 16; do
  printf '[model]\nlayers = 1\nembed = 8\nheads = 1\n[data]\ntrain = "corpus/train"\n[train]\nfolder = "r%d"\nsteps = 1\nwarmup_steps = 0\nglobal_batch = %d\nsequence = 8\nevent_files = false\n[parallel]\nranks = %d\nthreads = 1\nbind = false\n' \
    $n $n $n >run.toml
  mpirun --allow-run-as-root --oversubscribe -x LD_PRELOAD="$work/count.so" -x COUNT_FILE -n $n "$kintsugi" train run.toml >log 2>&1 ||
    { tail -n 5 log; exit 1; }
done
mapfile -t counts <counts
echo "most messages that a rank sends on 2, 4, 8 and 16 ranks: ${counts[*]}"
awk -v nodes="$nodes" -v per="$per_node" -v a="${counts[2]}" -v b="${counts[3]}" 'BEGIN {
  width = 50; pass = 0.005; start = 1; message = 2e-6; round = 1e-5; rounds = 60
  # Breadth first: a node passes the launch on to its children one after the other.
  time[0] = 0; last = 0
  for (i = 0; i < nodes; ++i) {
    if (i > 0) { p = int((i - 1) / width); time[i] = time[p] + pass * ((i - 1) % width + 1) }
    if (time[i] + start > last) last = time[i] + start
  }
  ranks = nodes * per
  messages = b + (b - a) / 8 * (ranks - 16)
  exchange = messages * message + rounds * round
  printf "%d nodes, %d ranks: processes after %.1f s, then %.0f messages per rank, %.1f s: %.1f s\n", nodes, ranks, last, messages, exchange, last + exchange
  exit !(last + exchange < 60)
}'
