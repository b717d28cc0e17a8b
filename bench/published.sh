#!/usr/bin/env bash
# published.sh BUILD ROWS.CSV [--trust AB] [--only TEXT] [--jobs N]: simulated step times compared with published ones, with
# the mean, median and worst error per set (bench/published/published.py); without options also the growth of steps with the
# number of devices (bench/published/scaling.py). The exit code is not 0 if a bound is exceeded or a row fails.
set -uo pipefail
here=$(dirname "$0")/published
failed=0
python3 "$here/published.py" "$1/app/kintsugi" "${@:2}" || failed=1
if [ $# -eq 2 ]; then
  echo
  python3 "$here/scaling.py" "$1/app/kintsugi" || failed=1
fi
exit $failed
