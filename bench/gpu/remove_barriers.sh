#!/usr/bin/env bash
# remove_barriers.sh BUILD [--tests "TEST..."] [FILE...]: leaves out one barrier, one exchange of lanes or one wait for
# copies of the kernels of devices at a time, and says which of them the tests find. Nothing is compiled for it: the
# emulation itself leaves out what stands at a place (device/emulate.h).
#
# FILE: only places in these files, such as norm.cuh; else all that the tests meet. TEST: only by these tests, such as
# OnDevice.Norms. A place is tried with the tests that meet it, the quickest first, until one fails. Exit code 1 if a
# place was not found, 2 if a test fails as it is.
set -euo pipefail
program=$1/device_kernels_test
shift
tests=
if [[ ${1-} == --tests ]]; then
  tests=$2
  shift 2
fi
[[ -n $tests ]] || tests=$("$program" --gtest_list_tests | sed -n 's/^  \([A-Za-z0-9]*\).*/OnDevice.\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export program work

meet() {  # TEST: how long it takes, and which places it meets
  local begin
  begin=$(date +%s%N)
  KINTSUGI_EMULATE_PLACES=$work/$1.places "$program" --gtest_filter="$1" >/dev/null 2>&1 || exit 255
  echo "$((($(date +%s%N) - begin) / 1000000)) $1" >>"$work/times"
  touch "$work/$1.places"
}
try() {  # PLACE: by which test it is found
  local test
  for test in $(sort -n "$work/times" | cut -d' ' -f2); do
    grep -qx "$1" "$work/$test.places" || continue
    if ! { KINTSUGI_EMULATE_WITHOUT=$1 timeout 300 "$program" --gtest_filter="$test" --gtest_fail_fast >/dev/null; } 2>/dev/null; then
      echo "$1: found by $test"
      return
    fi
  done
  echo "$1: NOT FOUND"
}
export -f meet try
jobs=$(nproc)
if ! xargs -n1 -P"$jobs" bash -c 'meet "$0"' <<<"$tests"; then
  echo "error: a test fails as it is" >&2
  exit 2
fi
places=$(cat "$work"/*.places | LC_ALL=C sort -u -t: -k1,1 -k2n)
if (($# > 0)); then places=$(grep -E "^($(IFS='|'; echo "$*")):" <<<"$places"); fi
xargs -n1 -P"$jobs" bash -c 'try "$0"' <<<"$places" | tee "$work/results"
missed=$(grep -c "NOT FOUND" "$work/results" || true)
echo "$(($(wc -l <"$work/results") - missed)) of $(wc -l <"$work/results") found"
((missed == 0))
