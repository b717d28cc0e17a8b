#!/usr/bin/env bash
# busy_tests.sh BUILD [--rounds N] [--loops L] [--parallel P] [--tests REGEX]: runs the tests of a build that wait, kill
# and have time limits, N times (30), P of them at a time (one more than there are cores, as scripts/test.sh does), while L
# endless loops (4) take the processor from them. Prints what failed, how long each round took, and counts.
set -uo pipefail
usage() { echo "usage: busy_tests.sh BUILD [--rounds N] [--loops L] [--parallel P] [--tests REGEX]" >&2; exit 2; }
(($# >= 1)) || usage
build=$1; shift
rounds=30 loops=4 parallel=$(($(nproc) + 1))
tests='Mpi|MPI|Kill|kills|Crash|Patience|Thread|ThatAreProcesses|UnderOneMpi|Timeout|Stop|Watch|InTime|WhileARun|Resume'
while (($# >= 2)); do
  case $1 in
    --rounds) rounds=$2 ;;
    --loops) loops=$2 ;;
    --parallel) parallel=$2 ;;
    --tests) tests=$2 ;;
    *) usage ;;
  esac
  shift 2
done
(($# == 0)) || usage

running=()
trap '((${#running[@]} > 0)) && kill "${running[@]}" 2>/dev/null; rm -f "$log"' EXIT
log=$(mktemp)
for ((i = 0; i < loops; ++i)); do
  (while :; do :; done) &
  running+=($!)
done

passed=0 failed=0 bad_rounds=0
for ((round = 1; round <= rounds; ++round)); do
  began=$SECONDS
  ctest --test-dir "$build" -R "$tests" --parallel "$parallel" --output-on-failure --no-tests=error --timeout 600 \
    >"$log" 2>&1 || {
    bad_rounds=$((bad_rounds + 1))
    echo "round $round:"
    grep -v -E '(Passed|\(Skipped\)|Skipped) ' "$log" | grep -v -E '^ *Start ' | head -n 200
  }
  p=$(grep -c -E ' Passed +[0-9.]+ sec' "$log") f=$(grep -c -E '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log")
  passed=$((passed + p)) failed=$((failed + f))
  echo "round $round of $rounds: $p passed, $f failed, $((SECONDS - began)) s"
done
echo "$rounds rounds beside $loops loops: $passed passed, $failed failed, in $bad_rounds rounds"
((bad_rounds == 0))
