#!/usr/bin/env bash
# nvcc.sh OBJECT COMMAND...: compiles OBJECT, and writes to OBJECT.resources what the assembler reports of each kernel:
# its name as linked, the generation, registers, and bytes of shared memory, stack, spills stored and spills loaded.
# All else that is reported is passed on.
set -euo pipefail
object=$1
shift
code=0
"$@" 2>"$object.said" || code=$?
grep -vE "^ptxas info|^ *[0-9]+ bytes stack frame" "$object.said" >&2 || true
if ((code != 0)); then exit "$code"; fi
awk '
  /Compiling entry function/ { split($0, part, "\047"); name = part[2]; generation = part[4]; sub(/a$/, "", generation) }
  /bytes stack frame/ { stack = $1; stored = $5; loaded = $9 }
  /Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
    print name, generation, registers, shared, stack, stored, loaded
  }' "$object.said" >"$object.resources"
rm "$object.said"
