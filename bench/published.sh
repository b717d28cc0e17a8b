#!/usr/bin/env bash
# published.sh BUILD ROWS.CSV [--trust AB] [--only TEXT]: simulated step times beside published ones, and by set the mean,
# the median and the worst difference. See bench/published/published.py.
set -euo pipefail
exec python3 "$(dirname "$0")/published/published.py" "$1/app/kintsugi" "${@:2}"
