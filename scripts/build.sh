#!/usr/bin/env bash
# build.sh [TARGET...]: installs what is missing and builds in build/, in release mode; all targets if none is named.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$root/build

"$root/scripts/install_packages.sh"

# A build folder copied together with the tree refers to its old path.
if [[ -f $build/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
  rm -rf "$build"
fi
if [[ -f $build/build.ninja || -f $build/Makefile ]]; then
  configure=(cmake -S "$root" -B "$build")
else
  rm -rf "$build"
  configure=(cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release)
fi
if ! log=$("${configure[@]}" 2>&1); then
  printf '%s\n' "$log" >&2
  exit 1
fi

# One compiler process per core, limited by memory: a file takes up to 1 GiB.
cores=$(nproc)
gigabytes=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
jobs=$((gigabytes < 1 ? 1 : gigabytes < cores ? gigabytes : cores))
targets=()
if (($# > 0)); then targets=(--target "$@"); fi
echo "building in $build, $jobs at a time"
cmake --build "$build" --parallel "$jobs" "${targets[@]}"
