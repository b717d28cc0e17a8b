#!/usr/bin/env bash
# gpu_resources.sh BUILD/cuda TABLE [--write]: what the kernels of devices take, against a table; --write makes the table.
#
# BUILD/cuda/*.resources are left by the build (cmake/nvcc.sh). A row of the table is a kernel: for each generation the
# most registers of a thread of any of its instances, then the most bytes of shared memory whose size is known when it is
# compiled, and of stack. Whatever the table says, nothing may spill. Another version of nvcc may need other registers:
# then only spills, shared memory and stacks are compared.
set -euo pipefail
folder=$1 table=$2 write=${3-}
shopt -s nullglob
files=("$folder"/*.resources)
if ((${#files[@]} == 0)); then
  echo "skipped: no nvcc made $folder/*.resources"
  exit 77
fi
nvcc=$(sed -n 's/^KINTSUGI_NVCC:[A-Z]*=//p' "$folder/../CMakeCache.txt")
version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')

# Rows: kernel, generation, registers, shared, stack, spilled bytes; of all instances of a template, the most.
found=$(for file in "${files[@]}"; do
  name=$(basename "$file" .o.resources)
  sed "s/^/$name /" "$file"
done | c++filt | sed -E 's/\(anonymous namespace\):://g; s/kintsugi::gpu_cuda:://g; s/^([^ ]+) void /\1 /' | awk '
  {
    kernel = $2
    sub(/[<(].*/, "", kernel)
    n = NF  # names hold blanks: numbers are the last six fields
    key = $1 "/" kernel " " $(n - 5)
    for (i = 0; i < 3; ++i) if ($(n - 4 + i) > most[key, i]) most[key, i] = $(n - 4 + i)
    spilled[key] += $(n - 1) + $n
    keys[key] = 1
  }
  END { for (key in keys) print key, most[key, 0] + 0, most[key, 1] + 0, most[key, 2] + 0, spilled[key] }' | LC_ALL=C sort)
generations=$(awk '{ print $2 }' <<<"$found" | sort -u -t_ -k2n | tr '\n' ' ')

if [[ $write == --write ]]; then
  {
    echo "# The most that any instance of a kernel takes, as nvcc $version compiled it (tests/gpu_resources.sh)"
    awk -v generations="$generations" '
      BEGIN { count = split(generations, list, " ") }
      {
        registers[$1, $2] = $3
        if ($4 > shared[$1]) shared[$1] = $4
        if ($5 > stack[$1]) stack[$1] = $5
        if (!($1 in seen)) order[++kernels] = $1
        seen[$1] = 1
      }
      END {
        printf "%-42s", "kernel"
        for (g = 1; g <= count; ++g) printf " %7s", list[g]
        printf " %7s %7s\n", "shared", "stack"
        for (k = 1; k <= kernels; ++k) {
          printf "%-42s", order[k]
          for (g = 1; g <= count; ++g) printf " %7s", registers[order[k], list[g]]
          printf " %7d %7d\n", shared[order[k]], stack[order[k]]
        }
      }' <<<"$found"
  } >"$table.new"
  mv "$table.new" "$table"
  echo "wrote $table"
  exit
fi

if [[ ! -f $table ]]; then
  awk '$6 > 0 { print "error: " $1 " for " $2 " spills " $6 " bytes"; failed = 1 } END { exit failed }' <<<"$found"
  echo "skipped: no $table; none of $(wc -l <<<"$found") kernels and generations spills. Make it: $0 $folder $table --write"
  exit 77
fi
same_nvcc=0
if grep -q "as nvcc $version compiled" "$table"; then same_nvcc=1; fi
awk -v same_nvcc="$same_nvcc" -v table="$table" '
  function fail(text) { print "error: " text; failed = 1 }
  FNR == NR {
    if (/^#/) next
    if ($1 == "kernel") { for (i = 2; i <= NF; ++i) column[$i] = i; columns = NF; next }
    known[$1] = 1
    for (i = 2; i <= columns; ++i) limit[$1, i] = $i
    next
  }
  {
    ++count
    seen[$1] = 1
    if ($6 > 0) fail($1 " for " $2 " spills " $6 " bytes")
    if (!($1 in known)) { fail($1 " is not in " table ", which --write makes"); next }
    if (!($2 in column)) next  # a generation that the table does not have
    if (same_nvcc && $3 > limit[$1, column[$2]] + 0)
      fail($1 " for " $2 " takes " $3 " registers, " limit[$1, column[$2]] + 0 " in " table)
    if ($4 > limit[$1, column["shared"]] + 0) fail($1 " for " $2 " takes " $4 " bytes of shared memory")
    if ($5 > limit[$1, column["stack"]] + 0) fail($1 " for " $2 " has a stack of " $5 " bytes")
  }
  END {
    for (kernel in known) if (!(kernel in seen)) fail(kernel " of " table " was not compiled")
    if (failed) exit 1
    print count " kernels and generations as in the table, none spills" (same_nvcc ? "" : "; of another nvcc: registers not compared")
  }' "$table" <(echo "$found")
