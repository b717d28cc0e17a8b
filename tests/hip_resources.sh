#!/usr/bin/env bash
# hip_resources.sh TABLE [--write] [--only NAME,NAME]: compiles the kernels of devices for gfx90a (MI200) with a clang that
# can, without ROCm, to objects, and compares what each takes with a table; --write makes the table of all kernels.
#
# A row is a kernel: of any of its instances the most vector registers (accumulation registers among them) and scalar
# registers, bytes of shared memory whose size is known when it is compiled, and bytes of stack. None may spill to
# memory. Another version of clang may need other registers: then only spills and shared memory are compared.
set -euo pipefail
cd "$(dirname "$0")/.."
table=$1 write='' only=''
shift
while (($# > 0)); do
  case $1 in
    --write) write=1 ;;
    --only) only=$2; shift ;;
  esac
  shift
done

clang=''
for name in clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang; do
  command -v "$name" >/dev/null || continue
  version=$("$name" -dumpversion)
  ((${version%%.*} >= 16)) && clang=$name && break
done
if [[ -z $clang ]] || ! "$clang" -print-targets 2>/dev/null | grep -q amdgcn; then
  echo "skipped: no clang of version 16 or newer that knows AMD's devices"
  exit 77
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export clang out
compile() {
  local name
  name=$(basename "$1" .cuh)
  "$clang" -x hip --offload-arch=gfx90a --cuda-device-only -nogpulib -nogpuinc -std=c++20 -O2 -fno-strict-aliasing -I. \
    -Werror -Wno-pass-failed -S "$1" -o "$out/$name.s" &&
    "$clang" -target amdgcn-amd-amdhsa -mcpu=gfx90a -c "$out/$name.s" -o "$out/$name.o"
}
export -f compile
sources=$(ls kintsugi/*/gpu/*.cuh | grep -v /common.cuh)
if [[ -n $only ]]; then sources=$(grep -E "/(${only//,/|})\.cuh$" <<<"$sources"); fi
xargs -P "${KINTSUGI_JOBS:-$(nproc)}" -I{} bash -c 'compile {}' <<<"$sources"

# Rows: kernel, vector registers, scalar registers, shared, stack, spilled vector registers.
found=$(for file in "$out"/*.s; do
  awk -v file="$(basename "$file" .s)" '
    /^_Z[^ ]*:.*; @/ { sub(/:.*/, "", $1); body = $1 }
    # A value that goes to an accumulation register is in no memory.
    /Folded Spill/ && !/accvgpr/ { ++spilled[body] }
    /^ +\.(name|agpr_count|vgpr_count|sgpr_count|vgpr_spill_count|group_segment_fixed_size|private_segment_fixed_size):/ {
      value[$1] = $2
      if ($1 == ".vgpr_spill_count:")
        print file, value[".name:"], value[".vgpr_count:"], value[".sgpr_count:"], value[".group_segment_fixed_size:"],
          value[".private_segment_fixed_size:"], spilled[value[".name:"]] + 0
    }' "$file"
done | c++filt | sed -E 's/\(anonymous namespace\):://g; s/kintsugi::gpu_hip:://g; s/^([^ ]+) void /\1 /' | awk '
  {
    kernel = $2
    sub(/[<(].*/, "", kernel)
    key = $1 "/" kernel
    n = NF  # names hold blanks: numbers are the last five fields
    for (i = 0; i < 4; ++i) if ($(n - 4 + i) > most[key, i]) most[key, i] = $(n - 4 + i)
    spilled[key] += $n
  }
  END { for (key in spilled) print key, most[key, 0] + 0, most[key, 1] + 0, most[key, 2] + 0, most[key, 3] + 0, spilled[key] }' |
  LC_ALL=C sort)

if [[ -n $write ]]; then
  {
    echo "# The most that any instance of a kernel takes on gfx90a, as clang ${version%%.*} compiled it (tests/hip_resources.sh)"
    { echo "kernel vector scalar shared stack"; cut -d' ' -f1-5 <<<"$found"; } |
      awk '{ printf "%-42s %7s %7s %7s %7s\n", $1, $2, $3, $4, $5 }'
  } >"$table"
  awk '$6 > 0 { print "spills: " $0 }' <<<"$found"
  echo "wrote $table"
  exit
fi
same=0
if grep -q "as clang ${version%%.*} compiled" "$table"; then same=1; fi
awk -v same="$same" -v only="$only" -v table="$table" '
  function fail(text) { print "error: " text; failed = 1 }
  FNR == NR { if ($1 != "#" && $1 != "kernel") for (i = 2; i <= 5; ++i) limit[$1, i] = $i; known[$1] = 1; next }
  {
    ++count
    seen[$1] = 1
    if ($6 > 0) fail($1 " spills " $6 " times")
    if (!($1 in known)) { fail($1 " is not in " table ", which --write makes"); next }
    if (same && $2 > limit[$1, 2] + 0) fail($1 " takes " $2 " vector registers, " limit[$1, 2] " in " table)
    if (same && $5 > limit[$1, 5] + 0) fail($1 " has a stack of " $5 " bytes, " limit[$1, 5] " in " table)
    if ($4 > limit[$1, 4] + 0) fail($1 " takes " $4 " bytes of shared memory, " limit[$1, 4] " in " table)
  }
  END {
    if (only == "") for (kernel in known) if (kernel ~ /\// && !(kernel in seen)) fail(kernel " of " table " was not compiled")
    if (failed) exit 1
    print count " kernels as in the table, none spills" (same ? "" : "; of another clang: registers not compared")
  }' "$table" <(echo "$found")
