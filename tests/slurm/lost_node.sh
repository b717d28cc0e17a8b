#!/usr/bin/env bash
# lost_node.sh KINTSUGI ROOT: on a Slurm of four hosts of its own, a host crashes under a run while its first checkpoint is
# still copied from the hosts' memory to the run's folder: the launcher learns it from Slurm, excludes the node, and the run
# continues on the three that are left, at the same global batch, to its end: from that checkpoint, of which the neighbour of
# the lost host has kept the part. Exit code
# 77 if Slurm is not installed, this is not root, namespaces are not allowed, or no MPI's module is built.
set -euo pipefail
kintsugi=$(realpath "$1") root=$(realpath "$2")
[[ -f $(dirname "$kintsugi")/../kintsugi_mpi_openmpi.so || -f $(dirname "$kintsugi")/../kintsugi_mpi_mpich.so ]] ||
  { echo "skipped: this build has no MPI"; exit 77; }
work=$(realpath "$(mktemp -d)")
cleanup() {
  "$root/tests/slurm/stop.sh" "$work/slurm" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
"$root/tests/slurm/start.sh" "$work/slurm" 4 hosts || exit $?
# shellcheck source=/dev/null
source "$work/slurm/env"
cd "$work"
fail() {
  echo "FAILED: $*"
  for f in runs/*/job_*.log runs/*/attempts.jsonl log; do [[ -f $f ]] && { echo "-- $f"; tail -n 40 "$f"; }; done
  squeue || true
  exit 1
}
steps() { { wc -l <runs/lost/metrics.jsonl; } 2>/dev/null || echo 0; }

for ((i = 0; i < 400; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >log 2>&1 || fail "prepare"
cat >run.toml <<'TOML'
[model]
layers = 1
embed = 32
heads = 2
[data]
train = "corpus/train"
[train]
folder = "runs/lost"
steps = 300
global_batch = 12
sequence = 32
event_files = false
[checkpoint]
every = 100
local = "/dev/shm/kintsugi"
drain_megabytes = 0.01
[parallel]
ranks = 4
threads = 1
bind = false
[launch]
quiet_seconds = 15
check_seconds = 2
TOML
"$kintsugi" job run.toml --site slurm --nodes 4 --least-nodes 3 --time 20 --submit >log 2>&1 || fail "submit"
# The copies that hosts keep of the parts of others; each host has a /dev/shm of its own.
copies() {
  local n
  for n in 1 2 3 4; do
    ls "/proc/$("$root/tests/slurm/host.sh" slurm pid "$n")/root/dev/shm/kintsugi/"kintsugi_*_copy_*.json 2>/dev/null
  done | wc -l
}
for ((i = 0; i < 1200 && $(copies) < 4; ++i)); do sleep 0.1; done
(($(copies) == 4)) || fail "$(copies) of 4 parts have a copy on another host"
[[ ! -e runs/lost/step_00000100 ]] || fail "the checkpoint was in the run's folder before its copies"
"$root/tests/slurm/host.sh" slurm crash 3
for ((i = 0; i < 1200; ++i)); do
  grep -qs '"outcome":"finished"\|"given_up":true' runs/lost/attempts.jsonl && break
  sleep 0.2
done
log=$(echo runs/lost/job_*.log)
grep -q '"outcome":"finished"' runs/lost/attempts.jsonl || fail "the run did not finish"
[[ $(steps) == 300 ]] || fail "$(steps) of 300 steps"
grep -q "n3 is excluded for " "$log" || fail "no line says that n3 is excluded"
grep -q "3 nodes of 4 are left: 3 ranks instead of 4, data 3" "$log" || fail "no line says how it continues"
grep -q '"node":"n3"' runs/lost/suspects.jsonl || fail "n3 is not remembered"
grep -q "checks: 4 ranks in " "$log" || fail "the nodes were not checked"
grep -q "step 100 was completed from the nodes' own disks" "$log" || fail "the first checkpoint was lost with the node"
grep -q "resumed at step 100 " "$log" || fail "the run did not continue from its first checkpoint"
"$kintsugi" status runs/lost >log || fail "status"
grep -q "^excluded *n3" log || fail "status: $(cat log)"
echo "lost after step 100, complete: $(grep -h -o '"why":"[^"]*"' runs/lost/attempts.jsonl | head -n 1)"
