#!/bin/bash
# compare_programs.sh OLD NEW [WORDS]: whether two versions of the project compile the same programs, by the folders that
# dump_programs of each has written. WORDS: a sed script that makes the old words new ones; renamed_words.sed beside this
# script where none is given. Prints the first difference of each case that differs, and a line that sums up.
set -euo pipefail
old=${1:?the folder of the old version} new=${2:?the folder of the new version}
words=${3:-$(dirname "$0")/renamed_words.sed}

cases=$(cd "$old" && find . -name '*.txt' | sort)
more=$(cd "$new" && find . -name '*.txt' | sort | comm -13 <(echo "$cases") -)
differ=0
for case in $cases; do
  if [ ! -e "$new/$case" ]; then
    echo "$case: not in $new"
  elif ! difference=$(diff <(sed -f "$words" "$old/$case") "$new/$case"); then
    echo "$case: $(grep -c '^[<>]' <<< "$difference") lines differ, from here on:"
    head -4 <<< "$difference" | cut -c1-300
  else
    continue
  fi
  differ=$((differ + 1))
done
for case in $more; do
  echo "$case: not in $old"
  differ=$((differ + 1))
done

count() { (cd "$old" && cat $cases | grep -cE "$1"); }
echo "$(wc -w <<< "$cases") cases: $(count '^program ') programs, $(count '^  (compute|collective|copy|wait) ')" \
  "instructions, $(count '^buffer ') buffers, $(count '^state ') states, $(count '^  call ') calls compared;" \
  "$(grep -cvE '^(#|$)' "$words") renamed words; $differ cases differ"
[ "$differ" = 0 ]
