#!/usr/bin/env bash
# sanitizers.sh [BUILD]: 10,000 damaged requests to the service, and its other tests, under AddressSanitizer and
# UndefinedBehaviorSanitizer, in a build folder of its own (build-sanitize). Takes long to build, once.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
build=${1:-$root/build-sanitize}
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKINTSUGI_CUDA=OFF \
  -DCMAKE_CXX_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -Wno-maybe-uninitialized -Wno-uninitialized -DHWY_COMPILE_ONLY_STATIC" >/dev/null
ninja -C "$build" serve_test
ASAN_OPTIONS=detect_leaks=1 "$build/serve_test"
