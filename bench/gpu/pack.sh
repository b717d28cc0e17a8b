#!/bin/bash
# pack.sh BUILD FILE.tar.gz [FOLDER...]: the command, the module for CUDA, the tests of its kernels and the libraries
# that they use, for a machine where nothing can be installed; and folders of inputs. Unpack it anywhere and call
# ./kintsugi in it.
set -euo pipefail
build=$1 file=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/lib"
programs=("$build/app/kintsugi" "$build/kintsugi_cuda.so" "$build/device_kernels_test")
for program in "${programs[@]}"; do
  cp "$program" "$folder/"
  strip "$folder/$(basename "$program")"
  # Of the system itself: what every machine has.
  ldd "$program" | awk '$3 ~ /^\// {print $3}' | grep -vE '/lib(c|m|pthread|dl|rt)\.so' | xargs -I{} cp -Ln {} "$folder/lib/"
done
for input in "$@"; do cp -r "$input" "$folder/"; done
tar -C "$folder" -czf "$file" .
ls -l "$file"
