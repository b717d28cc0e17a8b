#!/usr/bin/env bash
# test.sh KINTSUGI ROOT: on a Slurm of four nodes that is started for it, a run is submitted by `kintsugi job`, reaches its
# time limit, saves, requeues itself, goes on, and ends with the metrics of an undisturbed run, bit for bit; and a job that is
# cancelled takes with it the one that guards it. Exit code 77 if Slurm is not installed, this is not root, or no MPI's module
# is built.
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
"$root/tests/slurm/start.sh" "$work/slurm" || exit $?
started=$(date +%s)
# shellcheck source=/dev/null
source "$work/slurm/env"
cd "$work"
fail() {
  echo "FAILED: $*"
  for f in runs/*/job_*.log log; do [[ -f $f ]] && { echo "-- $f"; tail -n 30 "$f"; }; done
  squeue || true
  tail -n 20 slurm/log/slurmctld || true
  exit 1
}
# Without what the clock decides.
numbers() { sed 's/,"tokens_per_second".*//' "$1/metrics.jsonl"; }

for ((i = 0; i < 400; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >log 2>&1 || fail "prepare"
cat >run.toml <<'TOML'
[model]
layers = 1
embed = 32
heads = 2
[data]
train = "corpus/train"
validation = "corpus/validation"
[train]
folder = "runs/limit"
steps = 40
global_batch = 8
sequence = 32
evaluate_every = 0
event_files = false
[parallel]
ranks = 4
threads = 1
bind = false
TOML

# Processes without PMI are no ranks of one run.
code=0
srun -n 4 --mpi=none "$kintsugi" launch run.toml >log 2>&1 || code=$?
grep -q "error: \[launch\] srun started 4 processes that do not find each other" log || fail "four worlds of one: $(cat log)"
((code != 0)) || fail "four worlds of one ended with 0"
[[ ! -e runs ]] || fail "four worlds of one left a folder"

# The pace of the ranks as processes here, and so the number of steps that take some 30 s.
"$kintsugi" job run.toml --site slurm --nodes 4 --time 5 --set train.folder=runs/pace >log 2>&1 || fail "job"
with=$(sed -n 's/.*--with "\(.*\)" \\$/\1/p' runs/pace/job.sh)
# shellcheck disable=SC2086
$with "$kintsugi" launch run.toml --set train.folder=runs/pace >log 2>&1 || fail "the ranks do not train"
grep -q "launch: rank 0 of 4 under srun (PMI" log || fail "no line says where it runs"
steps=$(sed 's/.*"seconds":\([0-9.e-]*\).*/\1/' runs/pace/metrics.jsonl |
  awk '{ s += $1 } END { n = int(30 * NR / s); print n < 60 ? 60 : n }')
sed -i "s/^steps = .*/steps = $steps/" run.toml

extended=
for ((attempt = 1; attempt <= 3; ++attempt)); do
  "$kintsugi" train run.toml --set train.folder=runs/whole >log 2>&1 || fail "the undisturbed run"

  # Slurm looks at limits every 30 s from its start on. The job is to run for some 17 s when it does.
  while (((($(date +%s) - started) % 30) != 12)); do sleep 0.2; done
  "$kintsugi" job run.toml --site slurm --nodes 4 --time 1 --save-seconds 50 --submit >log 2>&1 || fail "submit"
  job=$(sed -n 's/^Submitted batch job //p' log)
  [[ -n $job ]] || fail "no job was submitted"
  for ((i = 0; i < 2500; ++i)); do
    [[ -z $(squeue -h -j "$job" 2>/dev/null) ]] && break
    # Once it has gone through its limit it may take as long as it likes: other tests run beside this one.
    if [[ -z $extended ]] && grep -qs '"outcome":"stopped"' runs/limit/attempts.jsonl; then
      scontrol update JobId="$job" TimeLimit=10 2>/dev/null && extended=1
    fi
    sleep 0.2
  done
  [[ -z $(squeue -h -j "$job" 2>/dev/null) ]] || fail "the job has not ended after 500 s"
  # The ranks had shared the machine with others when their pace was measured, and ended before the limit.
  grep -q '"outcome":"stopped"' runs/limit/attempts.jsonl && break
  rm -rf runs/whole runs/limit
  steps=$((5 * steps))
  sed -i "s/^steps = .*/steps = $steps/" run.toml
done
restarts=$(scontrol show job "$job" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p')
((restarts >= 1)) || fail "the job was not requeued"
grep -q '"outcome":"stopped"' runs/limit/attempts.jsonl || fail "no attempt was stopped: $(cat runs/limit/attempts.jsonl)"
grep -q '"outcome":"finished"' runs/limit/attempts.jsonl || fail "no attempt finished: $(cat runs/limit/attempts.jsonl)"
cmp <(numbers runs/whole) <(numbers runs/limit) || fail "the metrics differ from those of an undisturbed run"
"$kintsugi" status runs/limit >log || fail "status"
grep -q "^state *finished" log || fail "status: $(cat log)"
grep -q "^attempts *$((restarts + 1)), $restarts stopped" log || fail "status: $(cat log)"
stopped=$(sed -n 's/.*"to":\([0-9]*\),"outcome":"stopped".*/\1/p' runs/limit/attempts.jsonl | head -n 1)

# A job that the user cancels takes with it the one that would take over.
"$kintsugi" job run.toml --site slurm --nodes 4 --guard --time 20 --set train.folder=runs/cancelled train.steps=100000 --submit >log 2>&1 ||
  fail "submit with --guard"
job=$(sed -n 's/^Submitted batch job //p' log)
for ((i = 0; i < 600; ++i)); do grep -qs "takes over if this one is killed" runs/cancelled/job_*.log && [[ -s runs/cancelled/metrics.jsonl ]] && break; sleep 0.1; done
[[ $(squeue -h -o %i | wc -l) == 2 ]] || fail "no second job is queued"
scancel "$job"
for ((i = 0; i < 300; ++i)); do [[ -z $(squeue -h -o %i) ]] && break; sleep 0.1; done
[[ -z $(squeue -h -o %i) ]] || fail "a job is left after scancel"
grep -q "the job was cancelled, and no other takes over" runs/cancelled/job_*.log || fail "no line says that the job was cancelled"
(($(grep -c '"began"' runs/cancelled/attempts.jsonl) == 1)) || fail "another job took over"
echo "$steps steps, stopped by the time limit after step $stopped, requeued $restarts time(s), same metrics"
