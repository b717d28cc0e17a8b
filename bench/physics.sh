#!/usr/bin/env bash
# physics.sh BUILD [LAYOUTS] [SEED]: the tests of kintsugi/search/physics_test.cpp over many random layouts (300).
set -euo pipefail
KINTSUGI_LAYOUTS=${2:-300} KINTSUGI_SEED=${3:-2} exec "$1/search_test" --gtest_filter='Physics.*'
