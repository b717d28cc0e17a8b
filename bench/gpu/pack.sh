#!/bin/bash
# pack.sh BUILD FILE.tar.xz [FOLDER...]: the command, the module for CUDA, the tests of its kernels, the figures of
# all.sh with some text, and the libraries that they use, for a machine where nothing can be installed; and folders of
# inputs. The name of the file says how it is compressed. Unpack it anywhere and call ./kintsugi, or ./all.sh, in it.
# NVIDIA's libraries are not in it: all.sh takes those of PyTorch.
set -euo pipefail
build=$1 file=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/lib" "$folder/system"
programs=("$build/app/kintsugi" "$build/bench/figures" "$build/kernels_gpu_test")
[[ -e $build/kintsugi_cuda.so ]] && programs+=("$build/kintsugi_cuda.so")
for program in "${programs[@]}"; do
  cp "$program" "$folder/"
  strip "$folder/$(basename "$program")"
  # What every machine has, but perhaps too old, goes apart.
  ldd "$program" | awk '$3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' | while read -r library; do
    if [[ $library =~ /(lib(c|m|pthread|dl|rt)|ld-linux[^/]*)\.so ]]; then
      cp -Ln "$library" "$folder/system/"
    else
      cp -Ln "$library" "$folder/lib/"
    fi
  done
done
cp "$here/all.sh" "$here/torch_gpt2.py" "$folder/"
mkdir "$folder/text"
cp "$here"/../../docs/*.md "$folder/text/"
for input in "$@"; do cp -r "$input" "$folder/"; done
XZ_OPT="-3 -T0" tar -C "$folder" -caf "$file" .
bytes=$(stat -c %s "$file")
echo "$file: $((bytes / 1048576)) MiB"
if ((bytes > 60 * 1048576)); then
  echo "error: more than 60 MiB" >&2
  exit 1
fi
