#!/usr/bin/env bash
# sanitizers.sh BUILD [--only KIND] [--tests FILTER] [--planted]: runs every test of the kernels of devices on the
# emulated device, with warps of 32 and 64, under the address sanitizer (with that of undefined behaviour) and under the
# thread sanitizer, for which each thread of a block is a thread; says how often each kernel was run, and what was
# reported. Before that, that faults which are planted are reported (planted.cpp). Exit code 1 if anything else was
# reported, or a kernel was not run.
#
# The emulation, the kernels and their tests are compiled for it, into BUILD/sanitizers; what else they need is taken
# from BUILD. KIND: address or thread alone. FILTER: of GoogleTest, such as OnDevice.Norms. --planted: only these. Exit
# code 77 if there is no sanitizer.
set -euo pipefail
usage() {
  echo "usage: sanitizers.sh BUILD [--only address|thread] [--tests FILTER] [--planted]" >&2
  exit 2
}
(($# >= 1)) || usage
build=$(realpath "$1")
shift
root=$(realpath "$(dirname "$0")/../..")
sanitizers=(address thread) filter="*" planted=
while (($# > 0)); do
  case $1 in
    --planted) planted=1; shift; continue ;;
    --only) sanitizers=("${2?}") ;;
    --tests) filter=${2?} ;;
    *) usage ;;
  esac
  shift 2
done
cd "$root"
host=(kintsugi/device/{emulate_limits,emulate_places,open_device,timings}.cpp kintsugi/device/emulated/*.cpp kintsugi/base/*.cpp)  # compiled as one
kernels=(kintsugi/kernels/gpu/*.cpp)
for source in kintsugi/kernels/gpu/*.cuh; do [[ $source == */common.cuh ]] || kernels+=("$source"); done

rules() {  # address or thread, a folder: for ninja, how both programs are made there
  local flags="-std=c++20 -O1 -g1 -w -fno-omit-frame-pointer -fno-strict-aliasing -I$root -DFMT_SHARED"
  local libraries="-lspdlog -lfmt -lxxhash -lpthread -ldl" source tests=()
  flags+=" -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL -DSPDLOG_SHARED_LIB"
  local objects="host.o kintsugi.device.emulate.cpp.o"
  case $1 in
    address) flags+=" -fsanitize=address,undefined -fno-sanitize-recover=undefined" ;;
    thread) flags+=" -fsanitize=thread" ;;
    *) usage ;;
  esac
  cat <<END
rule compile
  command = ${CXX:-g++} $flags \$more -MD -MF \$out.d -xc++ -c \$in -o \$out
  depfile = \$out.d
  deps = gcc
rule link
  command = ${CXX:-g++} $flags \$in \$libraries -o \$out
END
  for source in "${host[@]}"; do [[ $source == *_test.cpp ]] || echo "#include \"$source\""; done >"$2/host.cpp"
  echo "build host.o: compile $2/host.cpp"
  for source in kintsugi/device/emulate.cpp "${kernels[@]}" bench/gpu/planted.cpp; do
    echo "build ${source//\//.}.o: compile $root/$source"
    if [[ $1 == thread && $source == */emulate.cpp ]]; then
      echo "  more = -fno-sanitize=thread -DKINTSUGI_FIBERS_ARE_THREADS"
    fi
  done
  for source in "${kernels[@]}"; do tests+=("${source//\//.}.o"); done
  echo "build planted: link bench.gpu.planted.cpp.o $objects"
  echo "  libraries = $libraries"
  sets="$build/libkernels_gpu.a $build/libkernels_cpu.a $build/libkernels_reference.a $build/libkernels.a"
  echo "build kernels_test: link ${tests[*]} $objects | $sets $build/libtensor.a"
  echo "  libraries = $sets $build/libtensor.a -lgtest_main -lgtest -lhwy -ldnnl -lgomp $libraries"
}

# Where the addresses of a program are drawn, the thread sanitizer of some compilers cannot run.
export ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="halt_on_error=0 report_signal_unsafe=0"
runs() { setarch "$(uname -m)" -R "$@"; }

failures=0
fails() {
  echo "$*"
  failures=$((failures + 1))
}
try_planted() {  # sanitizer, folder
  local fault faults=(memory shared index)
  [[ $1 == thread ]] && faults=(barrier warp_barrier blocks)
  runs "$2/planted" none >"$2/planted.txt" 2>&1 || fails "$1: a kernel without a fault is reported, see $2/planted.txt"
  for fault in "${faults[@]}"; do
    if runs "$2/planted" "$fault" >"$2/planted.txt" 2>&1; then
      fails "$1: the planted fault \"$fault\" is not reported"
    elif ! grep -qE "ERROR: AddressSanitizer|runtime error|WARNING: ThreadSanitizer: data race" "$2/planted.txt"; then
      fails "$1: the planted fault \"$fault\" ends otherwise, see $2/planted.txt"
    fi
  done
  echo "$1: ${#faults[@]} planted faults: ${faults[*]}"
}
# A table of the kernels, and how often each was run.
count() {  # the file of runs
  sort "$1" | uniq -c | awk '
    { runs[$2, $3] = $1; kinds[$2] = 1 }
    END { for (k in kinds) printf "%-20s %8d %8d\n", k, runs[k, 32], runs[k, 64] }' | sort
}
for sanitizer in "${sanitizers[@]}"; do
  work=$build/sanitizers/$sanitizer
  mkdir -p "$work"
  if ! echo "int main() {}" | "${CXX:-g++}" -xc++ -fsanitize="$sanitizer" - -o "$work/empty" 2>/dev/null; then
    echo "${CXX:-g++} has no sanitizer \"$sanitizer\""
    exit 77
  fi
  rules "$sanitizer" "$work" >"$work/build.ninja"
  ninja -C "$work" planted >"$work/build.txt" || { tail -n 30 "$work/build.txt"; exit 1; }
  try_planted "$sanitizer" "$work"
  [[ -z $planted ]] || continue
  ninja -C "$work" kernels_test >"$work/build.txt" || { tail -n 30 "$work/build.txt"; exit 1; }
  rm -f "$work/runs"
  status=0
  KINTSUGI_KERNEL_RUNS=$work/runs runs "$work/kernels_test" --gtest_filter="$filter" >"$work/report.txt" 2>&1 || status=$?
  reports=$(grep -cE "ERROR: AddressSanitizer|runtime error|WARNING: ThreadSanitizer" "$work/report.txt" || true)
  printf '\n%s\n%-20s %8s %8s\n' "$sanitizer" kernel "warp 32" "warp 64"
  count "$work/runs"
  echo "$(count "$work/runs" | wc -l) kernels, $(wc -l <"$work/runs") runs, $(grep -c '^\[       OK' "$work/report.txt") tests," \
    "$reports reports"
  ((status == 0 && reports == 0)) || fails "$sanitizer: the tests end with $status, see $work/report.txt"
  for kind in $(sed -n 's/^    {"\([a-z_0-9]*\)",.*/\1/p' kintsugi/kernels/gpu/kernels.cuh); do
    [[ $filter != "*" ]] || grep -q "^$kind 64$" "$work/runs" || fails "$sanitizer: $kind was not run"
  done
done
((failures == 0))
