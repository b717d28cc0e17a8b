#!/usr/bin/env bash
# remove_waits.sh BUILD [LAYOUT...]: leaves out one wait for an event at a time, of two training steps on the emulated
# device, in each of seven layouts or in those given ("data=2 zero=3"). By layout it counts the waits, those that were for
# what the waiting stream knew already, and those without which two accesses had no order, which are reported by the
# device. Without any of the others all accesses are in order and the loss is the same, or the exit code is 1. Twenty of
# each layout are a test (tests/device_order_test.cpp).
set -euo pipefail
(($# >= 1)) || { echo "usage: remove_waits.sh BUILD [LAYOUT...]" >&2; exit 2; }
program=$(realpath "$1/tests/whole_test")
shift
cd "$(dirname "$0")/../.."
list=$("$program" --gtest_list_tests --gtest_filter='*DeviceOrder*')
filter= found=0
while read -r name _ _ layout; do  # "AWaitThatIsLeftOutIsSeen/3  # GetParam() = "context=2 method=ring""
  [[ $name == *AWait* ]] || continue
  layout=${layout#= } layout=${layout//\"/}
  for wanted in "${@-$layout}"; do
    [[ $wanted == "$layout" ]] || continue
    filter+=":*DeviceOrder.$name" found=$((found + 1))
  done
done <<<"$list"
((found == ($# > 0 ? $# : found) && found > 0)) || { echo "error: a layout is none of these:"; echo "$list"; exit 2; }
KINTSUGI_ALL_WAITS=1 "$program" --gtest_filter="${filter#:}" | grep -v '^\['
exit "${PIPESTATUS[0]}"
