#!/usr/bin/env bash
# searches.sh KINTSUGI [ONLY]: searches of large runs, each with its ten layouts and the CPU seconds that it took. The
# layouts of two programs are compared by comparing the outputs: only the lines that begin with "cpu" may differ.
set -euo pipefail
kintsugi=$(realpath "$1")
clusters=$(realpath "$(dirname "$0")/../../clusters")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# search NAME CLUSTER DEVICES LINES-OF-RUN.TOML
search() {
  if [ -n "${ONLY:-}" ] && [[ $1 != *"$ONLY"* ]]; then return; fi
  printf '%b' "$4" > "$folder/run.toml"
  echo "== $1"
  TIMEFORMAT="cpu %U s, %R s elapsed"
  time "$kintsugi" search "$folder/run.toml" --cluster "$2" --devices "$3" --budget 0 2> /dev/null
}

ONLY=${2:-}
llama='[model]\nname = "llama2-70b"\n[train]\nglobal_batch = 1024\nsequence = 4096\ndtype = "bf16"\n'
search "70B on 512 A100" "$clusters/selene.toml" 512 "$llama"
search "70B on 512 H100" "$clusters/dgx_h100.toml" 512 "$llama"
search "70B on 512 of Frontier" "$clusters/frontier.toml" 512 "$llama"
search "70B on 512 of Perlmutter" "$clusters/perlmutter.toml" 512 "$llama"
sed 's/^nodes = 560 /nodes = 1280 /' "$clusters/selene.toml" > "$folder/large.toml"
search "1T on 10,240 A100" "$folder/large.toml" 10240 \
  '[model]\nname = "megatron-1t"\nvocab = 51200\n[train]\nglobal_batch = 3072\nsequence = 2048\ndtype = "bf16"\n'
