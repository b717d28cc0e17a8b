#!/bin/bash
# compare_programs.sh OLD NEW [WORDS]: whether two versions of the project compile the same programs, drive a device
# alike, and compute the same bits. OLD and NEW are build folders, in which
#
#   ninja dump_programs dump_device_order dump_bits
#
# has been run, or folders of dumps that `compare_programs.sh --dump BUILD FOLDER` has written. A dump that a version
# lacks is not compared, which is said. WORDS is a sed script that turns old words of programs into new ones;
# renamed_words.sed in the folder of this script if it is not given.
#
# Compared are, of each case of program_cases.h, the program as text (kernels, operands, bytes, offsets, order of
# instructions and calls); of each layout of dump_device_order, the kernels and copies of each rank's stream, which must
# be the same, and the numbers of launches, copies, records and waits of all streams, which may be smaller (records and
# waits vary by a tenth with the timing of ranks that are threads); and the bits of dump_bits. Prints the first
# difference of each case that differs, and a line that sums up. The exit status is 0 if nothing differs.
set -euo pipefail

dump() {  # BUILD FOLDER
  mkdir -p "$2"
  for what in programs device_order bits; do
    if [ ! -x "$1/tests/dump_$what" ]; then continue; fi
    "$1/tests/dump_$what" "$2/$what" > "$2/$what.log"
  done
}

if [ "${1:-}" = --dump ]; then
  dump "${2:?a build folder}" "${3:?a folder for the dumps}"
  exit
fi
old=${1:?a build folder of the old version, or its dumps} new=${2:?a build folder of the new version, or its dumps}
words=${3:-$(dirname "$0")/renamed_words.sed}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -e "$old/CMakeCache.txt" ]; then dump "$old" "$scratch/old"; old=$scratch/old; fi
if [ -e "$new/CMakeCache.txt" ]; then dump "$new" "$scratch/new"; new=$scratch/new; fi
differ=0

# Old versions do not print the channel of a transfer.
without_channels() { sed 's/, channel "[^"]*"//' "$1"; }

compare_programs() {
  local cases more case difference
  cases=$(cd "$old/programs" && find . -name '*.txt' | sort)
  more=$(cd "$new/programs" && find . -name '*.txt' | sort | comm -13 <(echo "$cases") -)
  for case in $cases; do
    if [ ! -e "$new/programs/$case" ]; then
      echo "$case: not in $new"
    elif ! difference=$(diff <(without_channels "$old/programs/$case" | sed -f "$words") \
        <(without_channels "$new/programs/$case")); then
      echo "$case: $(grep -c '^[<>]' <<< "$difference") lines differ, from here on:"
      head -4 <<< "$difference" | cut -c1-300
    else
      continue
    fi
    differ=$((differ + 1))
  done
  if [ -n "$more" ]; then echo "$(wc -w <<< "$more") cases are new"; fi
  count() { (cd "$old/programs" && cat $cases | grep -cE "$1"); }
  echo "$(wc -w <<< "$cases") cases: $(count '^program ') programs," \
    "$(count '^  (compute|collective|copy|wait) ') instructions, $(count '^buffer ') buffers," \
    "$(count '^state ') states, $(count '^  call ') calls compared; $(grep -cvE '^(#|$)' "$words") renamed words"
}

# A layout begins with its name at the beginning of a line.
compare_device_order() {
  if ! diff <(grep -v '^  #' "$old/device_order") <(grep -v '^  #' "$new/device_order") > "$scratch/difference"
  then
    echo "device order: $(grep -c '^[<>]' "$scratch/difference") kernels and copies differ, from here on:"
    head -4 "$scratch/difference" | cut -c1-300
    differ=$((differ + 1))
  fi
  awk '/^[^ ]/ { name = $0 }
       /^  #/ {
         count = $NF; what = $0; sub(/^  # /, "", what); sub(/: [0-9]+$/, "", what)
         if (NR == FNR) { old[name, what] = count; next }
         if (!((name, what) in old)) next
         most = old[name, what]; if (what == "record" || what == "wait") most += int(most / 10)
         if (count > most) { print name ": " count " of \"" what "\", were " old[name, what]; worse = 1 }
         total_old[what] += old[name, what]; total_new[what] += count
       }
       END {
         for (what in total_new) print "device: " what ": " total_new[what] ", were " total_old[what]
         exit worse
       }' "$old/device_order" "$new/device_order" || differ=$((differ + 1))
}

compare_bits() {
  if ! diff <(sed -f "$words" "$old/bits") "$new/bits" > "$scratch/difference"; then
    echo "bits: $(grep -c '^[<>]' "$scratch/difference") lines differ, from here on:"
    head -4 "$scratch/difference"
    differ=$((differ + 1))
  fi
  echo "bits: $(wc -l < "$new/bits") lines compared"
}

for what in programs device_order bits; do
  if [ -e "$old/$what" ] && [ -e "$new/$what" ]; then compare_$what; else echo "$what: not compared"; fi
done
echo "$differ differences"
[ "$differ" = 0 ]
