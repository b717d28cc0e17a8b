#!/usr/bin/env bash
# train.sh [--new] [PATH]: from nothing to a trained language model and a sample of what it writes.
#
# Installs what is missing, builds, learns a tokenizer from the text (PATH: a file or a folder; without it the C++
# headers that came with the compiler) and trains examples/quick.toml on it for about five minutes. Each text has a
# folder of its own in runs/. Called again, it goes on with a run that was stopped; of a finished one it prints another
# sample. --new starts over: the text is read again, and the old run is removed.
#
# KINTSUGI_TRAIN_ARGS: more arguments for `kintsugi train`, such as "--set train.steps=100".
set -euo pipefail

new=no
source=
while (($# > 0)); do
  case $1 in
    --new) new=yes ;;
    -h | --help) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "error: unknown option \"$1\"; train.sh [--new] [PATH]" >&2; exit 1 ;;
    *)
      if [[ -n $source ]]; then echo "error: one text at a time; a folder holds several" >&2; exit 1; fi
      source=$1 ;;
  esac
  shift
done
if [[ -n $source && ! -e $source ]]; then
  echo "error: \"$source\" is neither a file nor a folder" >&2
  exit 1
fi
if [[ -n $source ]]; then source=$(realpath "$source"); fi  # before the folder changes

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
scripts/build.sh kintsugi
kintsugi=build/app/kintsugi

if [[ -z $source ]]; then
  # The newest of the compilers' header folders, as g++ itself names it.
  source=$(dirname "$(echo '#include <vector>' | g++ -x c++ -M - | tr ' ' '\n' | grep '/vector$' | head -n 1)")
  run=runs/cpp_headers
else
  run=runs/$(basename "$source" | tr -c 'A-Za-z0-9._\n' _)_$(cksum <<<"$source" | cut -d ' ' -f 1)
fi
if [[ $new == yes ]]; then rm -rf "$run"; fi

if [[ ! -e $run/text/tokenizer.json || ! -e $run/text/train.json || ! -e $run/text/validation.json ]]; then
  echo "preparing $source in $run/text"
  tokenizer=bpe:2048
  # A short text has too few words to learn so many ids.
  if (($(du -sbL "$source" | cut -f 1) < 200000)); then tokenizer=bytes; fi
  "$kintsugi" prepare "$source" --tokenizer $tokenizer --output "$run/text" --force
else
  echo "prepared already: $source in $run/text"
fi

resume=()
if [[ -e $run/model/config.toml ]]; then resume=(--resume); fi
read -r -a extra <<<"${KINTSUGI_TRAIN_ARGS:-}"
"$kintsugi" train examples/quick.toml "${resume[@]}" \
  --set data.train="$run/text/train" --set data.validation="$run/text/validation" --set train.folder="$run/model" \
  "${extra[@]}" || {
  code=$?
  if ((${#resume[@]} > 0)); then echo "(to start over instead: scripts/train.sh --new, with the same text)" >&2; fi
  exit $code
}

echo
echo "A sample of what it writes:"
echo "----------------------------------------------------------------"
"$kintsugi" generate "$run/model" --length 200 --temperature 0.7 --seed "$(date +%s)"
echo
echo "----------------------------------------------------------------"
echo "The run is in $root/$run/model. More of it:"
echo "  $root/$kintsugi generate $root/$run/model --prompt 'template'"
