#!/usr/bin/env bash
# A Hugging Face folder of the shape of GPT-2 XL: how long `kintsugi import` takes beside cp and sync of what it writes,
# how long its weights take to be read beside cat, and how much memory import and export take. In turns, in one run.
#
#   bench/folders/import.sh [rounds, 5] [bf16 | fp32 | fp16] [layers, 48]
#
# Import and cp find their source in the page cache, both write to $TMPDIR (/tmp), and neither ends before all is on the
# disk. The weights are read, as init_from reads them into fp32, from the disk, the ranks dividing the cores: their file
# is taken out of the page cache before, as it is for cat, and for a plain read of the file by one thread of a process
# that has touched the same memory. (In a virtual machine a page of the cache that the host has yet to provide costs
# more than the disk: cat alone may find pages that the host has given already, what holds the weights cannot.)
# KINTSUGI and READ_FOLDER name other programs than those of build/. Needs python3, GNU time, and place for the folder
# and twice what is imported: 10 GB for bf16.
set -euo pipefail
cd "$(dirname "$0")/../.."
cores=$(nproc) rounds=${1:-5} dtype=${2:-bf16} layers=${3:-48}
kintsugi=${KINTSUGI:-build/app/kintsugi} read_folder=${READ_FOLDER:-build/bench/read_folder}
for program in "$kintsugi" "$read_folder"; do
  [ -x "$program" ] || { echo "no $program: build first (./scripts/test.sh)" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 bench/folders/make_gpt2.py "$work/folder" "$dtype" "$layers"
weights=$work/folder/model.safetensors
sync

# seconds NAME COMMAND...: runs it and adds its time to the list NAME, and its peak memory to NAME.peak.
seconds() {
  local name=$1; shift
  /usr/bin/time -f "%e %M" -o "$work/time" "$@" >/dev/null
  cut -d' ' -f1 "$work/time" >>"$work/$name"
  cut -d' ' -f2 "$work/time" >>"$work/$name.peak"
}
# What was removed is given back to the disk in the meantime.
remove() { rm -rf "$@"; sync; sleep 2; }
evict() { dd if="$weights" iflag=nocache count=0 status=none; }

for ((round = 0; round < rounds; ++round)); do
  cat "$weights" >/dev/null
  seconds import "$kintsugi" import "$work/folder" "$work/run"
  cat "$work"/run/*/* >/dev/null
  seconds cp sh -c "cp -r '$work/run' '$work/copy' && sync"
  remove "$work/run" "$work/copy"
  evict
  seconds cat cat "$weights"
  evict
  "$read_folder" "$work/folder" plain 1 1 | cut -d' ' -f2 >>"$work/plain"
  for ranks in 1 2; do
    evict
    "$read_folder" "$work/folder" fp32 "$ranks" $((cores / ranks > 0 ? cores / ranks : 1)) >"$work/time"
    cut -d' ' -f1 "$work/time" >>"$work/touch$ranks"
    cut -d' ' -f2 "$work/time" >>"$work/read$ranks"
  done
done
seconds export "$kintsugi" export "$work/folder" "$work/exported"

median() { sort -n "$work/$1" | sed -n "$(((rounds + 1) / 2))p"; }
ratio() { echo "scale=2; $(median "$1") / $(median "$2")" | bc; }
line() { printf '%-44s %s s (%s)\n' "$1" "$(median "$2")" "$(paste -sd' ' "$work/$2")"; }
line "import" import
line "cp and sync of what it wrote" cp
line "cat from the disk" cat
line "plain read from the disk, memory as below" plain
line "first touch of the memory for the weights" touch1
line "all weights into fp32 from the disk, 1 rank" read1
line "all weights into fp32 from the disk, 2 ranks" read2
echo "import / cp and sync: $(ratio import cp); reading / plain read: $(ratio read1 plain) on 1 rank, $(ratio read2 plain) on 2;" \
  "reading / cat: $(ratio read1 cat), $(ratio read2 cat)"
echo "peak memory: import $(($(sort -n "$work/import.peak" | tail -n 1) / 1024)) MiB," \
  "export $(($(cat "$work/export.peak") / 1024)) MiB"
