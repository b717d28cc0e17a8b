#!/usr/bin/env bash
# Builds everything and runs every test. The last line is "N passed, N failed, N skipped"; exit code 1 if one failed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$root/build

"$root/scripts/build.sh"
# A test compiles kernels for AMD's devices, which older clangs cannot.
command -v clang-{16..22} >/dev/null || "$root/scripts/install_packages.sh" clang-16
# A test starts a Slurm of its own.
(PATH=$PATH:/usr/sbin && command -v slurmctld >/dev/null) || "$root/scripts/install_packages.sh" slurm-wlm munge

results=$build/test_results.xml
rm -f "$results"
code=0
# One more at a time than there are cores, since some tests wait.
ctest --test-dir "$build" --parallel "$(($(nproc) + 1))" --timeout 300 --output-on-failure --no-tests=error \
  --output-junit "$results" || code=$?

# A line <testcase ... status="..."> for each test: run, fail, disabled, or notrun, which is also what a test that says
# it skips itself gets; one that could not be started at all has failed.
read -r passed failed skipped < <(awk '
  /<testcase / {
    status = $0; sub(/.* status="/, "", status); sub(/".*/, "", status)
    if (status == "run") ++passed; else if (status == "disabled") ++skipped; else if (status == "notrun") ++notrun; else ++failed
  }
  /<skipped message="SKIP_/ { ++skipped; --notrun }
  END { print passed + 0, failed + notrun, skipped + 0 }' "$results")
if ((code != 0 && failed == 0)); then
  echo "error: ctest ended with code $code" >&2
  failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
