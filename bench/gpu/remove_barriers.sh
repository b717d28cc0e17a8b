#!/usr/bin/env bash
# remove_barriers.sh BUILD [FILE...]: leaves out one barrier, one exchange of lanes or one wait for copies of the kernels
# of devices at a time, and says which of them the tests find. Nothing is compiled for it: the emulation itself leaves
# out what stands at a place (device/emulate.h).
#
# FILE: only places in these files, such as norm.cuh; else all that the tests meet. The tests of a file are those that
# meet one of its places; they are run until the first fails. Exit code 1 if a place was not found.
set -euo pipefail
build=$1
shift
program=$build/device_kernels_test
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=${KINTSUGI_TESTS-$("$program" --gtest_list_tests | sed -n 's/^  \([A-Za-z]*\).*/OnDevice.\1/p')}

# Which test meets which place, the quickest tests first.
for test in $tests; do
  begin=$(date +%s%N)
  KINTSUGI_EMULATE_PLACES=$work/$test "$program" --gtest_filter="$test" >/dev/null 2>&1 || { echo "$test fails as it is"; exit 2; }
  echo "$((($(date +%s%N) - begin) / 1000000)) $test" >>"$work/times"
done
sort -n "$work/times" | awk '{ print $2 }' >"$work/order"
places=$(cat $(sed "s|^|$work/|" "$work/order") 2>/dev/null | sort -u -t: -k1,1 -k2n)

found=0 missed=0
for place in $places; do
  if (($# > 0)); then
    wanted=0
    for file in "$@"; do [[ ${place%%:*} != "$file" ]] || wanted=1; done
    ((wanted)) || continue
  fi
  by=
  while read -r test; do
    grep -qx "$place" "$work/$test" 2>/dev/null || continue
    if ! KINTSUGI_EMULATE_WITHOUT=$place timeout 300 "$program" --gtest_filter="$test" --gtest_fail_fast >/dev/null 2>&1; then
      by=$test
      break
    fi
  done <"$work/order"
  if [[ -n $by ]]; then
    found=$((found + 1))
    echo "$place: found by $by"
  else
    missed=$((missed + 1))
    echo "$place: NOT FOUND"
  fi
done
echo "$found of $((found + missed)) found"
((missed == 0))
