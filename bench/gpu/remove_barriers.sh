#!/usr/bin/env bash
# remove_barriers.sh BUILD [--tests "TEST..."] [--races] [FILE...]: leaves out one barrier, one exchange of lanes or one
# wait for copies of one kernel of devices at a time, and says which of them the tests find. Nothing is compiled for it:
# the emulation itself leaves out what stands at a place (device/emulate.h).
#
# FILE: only places in these files, such as norm.cuh; else all that the tests meet. TEST: only by these tests, such as
# OnDevice.Norms. A place is tried with the tests that meet it in the kernel, the quickest first, until one fails; with
# --races then under the thread sanitizer too, by the program that sanitizers.sh has made.
#
# The last lines count: by kernel, and all. A place in a function that several kernels use need not be needed in each
# (the first barrier of block_sum where nothing was summed before). Exit code 1 if a place was found in no kernel, or
# stands in a kernel and no test meets it; 2 if a test fails as it is.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
program=$1/kernels_gpu_test racing=
sanitized=$1/sanitizers/thread/kernels_test
shift
tests= all=1
while [[ ${1-} == --* ]]; do
  case $1 in
    --tests) tests=$2 all=; shift ;;
    --races) racing=$sanitized ;;
    *) echo "error: no option $1" >&2; exit 2 ;;
  esac
  shift
done
[[ -n $tests ]] || tests=$("$program" --gtest_list_tests | sed -n 's/^  \([A-Za-z0-9]*\).*/OnDevice.\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export program racing work

# The names of the kernels of a program by their numbers, without namespaces, types and parameters.
names() {
  nm -C --defined-only "$1" | awk '$2 ~ /^[tTwW]$/ && /gpu_emulated/ {
    at = $1; sub(/^0+/, "", at)
    $1 = $2 = ""; name = $0
    sub(/^ +(void )?/, "", name)
    gsub(/\(anonymous namespace\)::/, "", name)
    sub(/[<(].*/, "", name); sub(/.*::/, "", name)
    print at, name }'
}
meet() {  # TEST: how long it takes, and which places of which kernels it meets
  local begin
  begin=$(date +%s%N)
  KINTSUGI_EMULATE_PLACES=$work/$1.met "$program" --gtest_filter="$1" >/dev/null 2>&1 || exit 255
  echo "$((($(date +%s%N) - begin) / 1000000)) $1" >>"$work/times"
  touch "$work/$1.met"
  # place, kernel's name, its numbers
  awk 'NR == FNR { name[$1] = $2; next }
       { key = $1 " " ($2 in name ? name[$2] : $2); numbers[key] = numbers[key] " " $2 }
       END { for (key in numbers) print key numbers[key] }' "$work/names" "$work/$1.met" >"$work/$1.places"
}
try() {  # PLACE KERNEL: by which test it is found
  local test numbers
  for test in $(sort -n "$work/times" | cut -d' ' -f2); do
    numbers=$(sed -n "s/^$1 $2 //p" "$work/$test.places")
    [[ -n $numbers ]] || continue
    if ! { KINTSUGI_EMULATE_WITHOUT="$1 $numbers" timeout 300 "$program" --gtest_filter="$test" --gtest_fail_fast >/dev/null; } 2>/dev/null; then
      echo "$1 $2: found by $test"
      return
    fi
  done
  # The other program has other numbers: there it is left out in all kernels.
  if [[ -n $racing ]]; then
    for test in $(sort -n "$work/times" | cut -d' ' -f2); do
      grep -q "^$1 " "$work/$test.places" || continue
      local code=0
      { KINTSUGI_EMULATE_WITHOUT=$1 TSAN_OPTIONS="halt_on_error=1 exitcode=66" timeout 600 setarch "$(uname -m)" -R \
        "$racing" --gtest_filter="$test" --gtest_fail_fast >/dev/null; } 2>/dev/null || code=$?
      if ((code == 66)); then
        echo "$1 $2: a race in $test"
        return
      fi
    done
  fi
  echo "$1 $2: NOT FOUND"
}
export -f meet try
names "$program" >"$work/names"
jobs=$(nproc)
if ! xargs -n1 -P"$jobs" bash -c 'meet "$0"' <<<"$tests"; then
  echo "error: a test fails as it is" >&2
  exit 2
fi
places=$(cut -d" " -f1,2 "$work"/*.places | LC_ALL=C sort -u | sort -s -t: -k1,1 -k2n)
if (($# > 0)); then places=$(grep -E "^($(IFS='|'; echo "$*")):" <<<"$places"); fi
xargs -L1 -P"$jobs" bash -c 'try "$0" "$1"' <<<"$places" | tee "$work/results"

failures=0
# Of a place in several kernels, one is enough; a place that has none is not needed, or not tested.
while read -r place; do
  grep "^$place " "$work/results" | grep -qv "NOT FOUND" || { echo "$place: found in no kernel"; failures=$((failures + 1)); }
done < <(cut -d' ' -f1 "$work/results" | sort -u)
if [[ -n $all && $# == 0 ]]; then  # what stands in the sources and no test meets
  while IFS=: read -r file line _; do
    grep -q "^${file##*/}:$line " "$work/results" || { echo "${file##*/}:$line: no test meets it"; failures=$((failures + 1)); }
  done < <(cd "$root" && grep -nE '__syncthreads\(\)|shuffle[a-z_]*\(|warp_barrier\(\)|lanes_(equal|sum|max)\(|copy_async_wait<' \
    kintsugi/kernels/gpu/*.cuh kintsugi/kernels/gpu/{attention,norm}_*.h | grep -vE '__device__|^[^:]*_test\.h|:[0-9]+: *//')
fi
echo "by kernel: places, of these found"
awk '{ kernel = $2; sub(/:$/, "", kernel); all[kernel]++; if (!/NOT FOUND/) found[kernel]++ }
  END { for (k in all) printf "  %-28s %3d %3d\n", k, all[k], found[k] }' "$work/results" | sort
echo "$(cut -d' ' -f1 "$work/results" | sort -u | wc -l) places; in $(grep -vc "NOT FOUND" "$work/results" || true) of" \
  "$(wc -l <"$work/results") kernels found, $failures places are not"
((failures == 0))
