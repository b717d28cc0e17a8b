#!/usr/bin/env bash
# all.sh [--device cuda|emulated] [--output FOLDER] [--minutes 10]: what must hold on one card, measured from an unpacked
# build (pack.sh) on a machine where nothing can be installed: tests, layouts, losses, speed beside the PyTorch that is
# there, memory, kernels, decoding. Writes FOLDER/figures.txt (a table: what, required, measured, met), FOLDER/raw.txt
# (everything that was printed, by command) and FOLDER/kernels.csv. On the emulated device all is tiny, so that every
# line of this script can be tried without a card; its figures then mean nothing.
#
# What no time is left for is said in the table. Exit code 1 if anything was not met.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
device=cuda output=results minutes=10
while (($# > 0)); do
  case $1 in
    --device) device=$2 ;;
    --output) output=$2 ;;
    --minutes) minutes=$2 ;;
    *)
      echo "error: all.sh [--device cuda|emulated] [--output FOLDER] [--minutes 10]" >&2
      exit 2
      ;;
  esac
  shift 2
done
if ! [[ $minutes =~ ^[1-9][0-9]*$ ]]; then
  echo "error: --minutes $minutes: a whole number of minutes" >&2
  exit 2
fi
begin=$(date +%s)
deadline=$((begin + minutes * 60 - 15))
mkdir -p "$output"
output=$(cd "$output" && pwd -P)
raw=$output/raw.txt table=$output/figures.txt
: >"$raw"
: >"$table"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The programs, with the libraries that were packed (not for PyTorch, whose may be newer) and the system's loader, or
# where that is too old with the one that was packed.
export KINTSUGI_CUDA_MODULE=$here/kintsugi_cuda.so
through=(env "LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
"${through[@]}" "$here/kintsugi" --version >/dev/null 2>&1 || through=("$here/system/ld-linux-x86-64.so.2" --library-path
  "$here/lib:$here/system:/usr/lib/x86_64-linux-gnu:/usr/local/nvidia/lib64:/usr/lib64")
program() { # NAME: as words to be called
  printf '%s\n' "${through[@]}" "$here/$1"
}
mapfile -t kintsugi < <(program kintsugi)
mapfile -t figures < <(program figures)
mapfile -t kernel_tests < <(program kernels_gpu_test)

# NVIDIA's libraries: those of PyTorch's wheels, unless others are named.
if [[ -z ${KINTSUGI_CUDA_LIBRARIES-} ]]; then
  KINTSUGI_CUDA_LIBRARIES=$(python3 -c '
import glob, site, sys
roots = site.getsitepackages() + [p for p in sys.path if p.endswith("-packages")]
print(":".join(dict.fromkeys(f for r in roots for f in sorted(glob.glob(r + "/nvidia/*/lib")))))' 2>/dev/null)
fi
export KINTSUGI_CUDA_LIBRARIES

left() { echo $((deadline - $(date +%s))); }
# NAME SECONDS COMMAND...: runs it, keeps what it says in NAME.txt and raw.txt; not beyond the end of the time.
keep() {
  local name=$1 seconds=$2 code
  shift 2
  (($(left) < seconds)) && seconds=$(left)
  {
    echo "== $name: $*"
    date +%T
  } >>"$raw"
  if ((seconds < 5)); then
    echo "no time left" | tee "$name.txt" >>"$raw"
    return 124
  fi
  timeout -k 5 "$seconds" "$@" >"$name.txt" 2>&1
  code=$?
  ((code == 124 || code == 137)) && echo "ended after $seconds s" >>"$name.txt"
  cat "$name.txt" >>"$raw"
  echo "exit code $code" >>"$raw"
  echo "$name: exit code $code, $(($(date +%s) - begin)) s since the start" >&2
  return "$code"
}
row() { # WHAT REQUIRED MEASURED MET
  printf '%-58s %-22s %-30s %s\n' "$@" | tee -a "$table"
}
# NAME FIELD: the number of a line "FIELD: number unit" in NAME.txt, or nothing.
number() { awk -F': ' -v field="$2" '$1 == field {split($2, word, " "); print word[1]; exit}' "$1.txt"; }
why() { tail -n 1 "$1.txt" | cut -c1-100; }
# WHAT LEAST UNIT VALUE WHY: a figure that must be as large.
at_least() {
  if [[ -z $4 ]]; then row "$1" "at least $2 $3" "none: $5" no; else
    row "$1" "at least $2 $3" "$(printf '%.4g' "$4") $3" "$(awk -v a="$4" -v b="$2" 'BEGIN {print (a >= b) ? "yes" : "no"}')"
  fi
}
at_most() {
  if [[ -z $4 ]]; then row "$1" "at most $2 $3" "none: $5" no; else
    row "$1" "at most $2 $3" "$(printf '%.4g' "$4") $3" "$(awk -v a="$4" -v b="$2" 'BEGIN {print (a <= b) ? "yes" : "no"}')"
  fi
}
larger() { awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN {if (a > 0 || b > 0) print (a > b ? a : b)}'; }
ratio() { awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN {if (b > 0) printf "%.6g", a / b}'; }
run_toml() { # NAME LINES...: a configuration without data
  local name=$1
  shift
  printf '%s\n' "$@" >"$name.toml"
}

on=parallel.device=$device
if [[ $device == emulated ]]; then
  small=(model.layers=1 model.embed=32 model.heads=2 model.kv_heads=2 model.ffn=64 model.vocab=64 model.context=16
    train.sequence=16 train.global_batch=4 train.micro_batch=2)
  tests='OnDevice.Norms' loss_steps=3 layout_steps=1
else
  small=() tests='*' loss_steps=200 layout_steps=3
fi

keep machine 20 bash -c 'nvidia-smi; nvidia-smi -q; lscpu; free -g; cat /etc/os-release; python3 --version'
keep devices 30 "${kintsugi[@]}" devices
keep limits 60 "${figures[@]}" limits "$on" train.dtype=bf16
copy=$(number limits copy)
row "copies within the device's memory" "-" "${copy:-none: $(why limits)} GB/s" -
row "copies of 48 and of 96 MiB, as a norm and its gradient move" - \
  "$(number limits 'copy of 48 MiB') and $(number limits 'copy of 96 MiB') GB/s" -
row "products in bf16, 8192 cubed" "-" "$(number limits 'products in bf16') TFLOP/s" -

# The main figure first: GPT-2 124M beside PyTorch, the better of one pass and two of each, both with a vocabulary of
# 50,304, a multiple of 64, as users of PyTorch have it.
run_toml gpt2 '[model]' 'name = "gpt2"' 'vocab = 50304' '[train]' 'dtype = "bf16"' 'sequence = 1024' 'global_batch = 64' 'micro_batch = 32'
run_toml xl '[model]' 'name = "gpt2-xl"' '[train]' 'dtype = "bf16"' 'sequence = 1024' 'global_batch = 64' 'micro_batch = 16'
run_toml llama '[model]' 'name = "llama3-8b"' 'layers = 8' '[train]' 'dtype = "bf16"' 'sequence = 8192' 'global_batch = 4' 'micro_batch = 1'
steps=20 whole=64
[[ $device == emulated ]] && steps=1 whole=4
# A first start on a machine reads the libraries from its disk and measures which algorithms are fastest.
keep gpt2_first 60 "${figures[@]}" train gpt2.toml 1 "$on" ${small[@]+"${small[@]}"}
keep gpt2 90 "${figures[@]}" train gpt2.toml "$steps" "$on" ${small[@]+"${small[@]}"}
keep gpt2_whole 90 "${figures[@]}" train gpt2.toml "$steps" "$on" ${small[@]+"${small[@]}"} "train.micro_batch=$whole"
ours=$(larger "$(number gpt2 rate)" "$(number gpt2_whole rate)")
row "GPT-2 124M in two passes; in one" - "$(number gpt2 rate); $(number gpt2_whole rate) tokens/s" -
at_least "GPT-2 124M, 64 x 1024, bf16" 480000 tokens/s "$ours" "$(why gpt2)"
at_most "its first step, from the start of the program" 3 s "$(number gpt2 'the first step was done after')" "$(why gpt2)"
row "the same on a machine that has never run it" - "$(number gpt2_first 'the first step was done after') s" -
plan=$(number gpt2 'planned memory') taken=$(number gpt2 'taken when bound, by the driver')
row "memory: planned and taken, bytes" "equal to 2%" "${plan:-none} ${taken:-none}" \
  "$(awk -v a="${plan:-0}" -v b="${taken:-0}" 'BEGIN {d = a - b; if (d < 0) d = -d; print (a > 0 && d <= a / 50 + 4194304) ? "yes" : "no"}')"

if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  keep torch 100 python3 "$here/torch_gpt2.py"
  keep torch_whole 100 python3 "$here/torch_gpt2.py" --micro 64
  keep torch_flash 100 python3 "$here/torch_gpt2.py" --micro 64 --flash
  tokens_of() { grep -oE '[0-9,]+ tokens/s' "$1.txt" | tr -d ', ' | grep -oE '^[0-9]+'; }
  row "PyTorch's in two passes; in one" - "$(tokens_of torch); $(tokens_of torch_whole) tokens/s" -
  theirs=$(larger "$(tokens_of torch)" "$(tokens_of torch_whole)")
  at_least "ours over PyTorch's ($theirs tokens/s), same shape" 1.15 times "$(ratio "$ours" "$theirs")" "$(why torch)"
  theirs=$(tokens_of torch_flash)
  at_least "the same where it is told to take flash attention ($theirs)" 1.15 times "$(ratio "$ours" "$theirs")" "$(why torch_flash)"
else
  row "ours over PyTorch's, same shape" "at least 1.15 times" "none: no PyTorch with a card here" no
fi

keep xl 120 "${figures[@]}" train xl.toml $(((steps + 3) / 4)) "$on" ${small[@]+"${small[@]}"}
at_least "GPT-2 1558M, 64 x 1024, bf16" 50000 tokens/s "$(number xl rate)" "$(why xl)"
keep llama 90 "${figures[@]}" train llama.toml $(((steps + 3) / 4)) "$on" ${small[@]+"${small[@]}"}
arithmetic=$(number llama arithmetic)
at_least "Llama-3 8B's shapes, 4 passes of 8k tokens, of 989 TFLOP/s" 60 % "$(ratio "${arithmetic:+$(ratio "$arithmetic" 0.01)}" 989)" "$(why llama)"

# Kernels that memory bounds, of a step of GPT-2, each many times one behind the other, as copies are timed.
keep bound 60 "${figures[@]}" bound gpt2.toml "$on" ${small[@]+"${small[@]}"}
for operation in layer_norm layer_norm_grad sum_squares adamw; do
  at_least "$operation: of the bandwidth of copies" 85 % "$(ratio "$(ratio "$(number bound $operation)" 0.01)" "$copy")" "$(why bound)"
done
row "layer_norm_grad that also makes a bias's gradient" - "$(number bound 'layer_norm_grad with sums') GB/s" -
row "sums of 32,768 rows of 768, 2304 and 3072 columns" - \
  "$(for n in 1 3 4; do number bound "sum of $n times the columns"; done | paste -sd' ') GB/s" -
# Attention, and the products behind its gradient: one for each of query, key and value, or one for all.
keep attention 60 "${figures[@]}" attention gpt2.toml "$on" ${small[@]+"${small[@]}"}
row "attention and its gradient, a layer and pass" - "$(number attention attention) and $(number attention attention_grad) us" -
row "a product for each of its gradients, or one for all" - \
  "$(number attention 'a product for each') us, or $(number attention 'weights side by side') + $(number attention 'a product for all')" -
row "a gradient for each of their weights, or one for all" - \
  "$(number attention 'a gradient for each') us, or $(number attention 'a gradient for all') + $(number attention 'its columns')" -
# And where a step spends its time, each kernel by itself, with what it takes to time it.
keep profile 90 "${kintsugi[@]}" profile gpt2.toml --steps 3 --csv kernels.csv --set "$on" ${small[@]+"${small[@]}"}
if [[ -s kernels.csv ]]; then cp kernels.csv "$output/"; fi

for model in "gpt2-xl 50" "llama3-8b 70"; do
  name=${model% *}
  run_toml decode "[model]" "name = \"$name\"" '[train]' 'dtype = "bf16"'
  context=model.context=1024
  keep "decode_$name" 90 "${figures[@]}" decode decode.toml 64 "$on" train.sequence=256 "$context" ${small[@]+"${small[@]}"}
  read_rate=$(number "decode_$name" 'weights read')
  at_least "decoding one text, $name: of the bandwidth of copies" "${model#* }" % \
    "$(ratio "${read_rate:+$(ratio "$read_rate" 0.01)}" "$copy")" "$(why "decode_$name")"
  KINTSUGI_LAUNCHES=each keep "decode_each_$name" 90 "${figures[@]}" decode decode.toml 64 "$on" train.sequence=256 "$context" ${small[@]+"${small[@]}"}
  row "the same with a launch for each instruction" - "$(number "decode_each_$name" 'weights read') GB/s, ${read_rate:-none} before" -
done

# Most of their time is the reference's, on the processor: as many at a time as it has cores.
parts=$(nproc)
export KINTSUGI_TEST_DEVICE=$device parts
keep tests 200 bash -c 'for ((i = 0; i < parts; ++i)); do
  GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$i "$@" --gtest_brief=1 >"part_$i.txt" 2>&1 || echo "part $i failed" >>failed.txt &
done; wait; cat part_*.txt failed.txt 2>/dev/null; [[ ! -e failed.txt ]]' tests "${kernel_tests[@]}" --gtest_filter="$tests" && passed=yes || passed=no
row "tests of kernels" "all pass" "$(awk '/^\[  PASSED/ {n += $4} END {print n + 0}' tests.txt) passed" "$passed"

# Four ranks, as threads on the one card, are one rank of the processor.
run_toml tiny '[model]' 'layers = 4' 'embed = 64' 'heads = 4' 'vocab = 128' '[train]' 'sequence = 32' 'global_batch = 16' 'micro_batch = 2'
same=0 all=0
for layout in "data=4" "data=4 zero=1" "data=4 zero=2" "data=4 zero=3" "tensor=4" "tensor=4 sequence_parallel=true" \
  "data=2 tensor=2" "context=4 context_method=ring" "context=2 data=2" "pipe=4" "pipe=2 data=2" "pipe=2 tensor=2"; do
  all=$((all + 1))
  sets=()
  for word in $layout; do sets+=("parallel.$word"); done
  [[ $device == emulated ]] && sets+=(train.global_batch=4 train.micro_batch=1 train.sequence=8 model.embed=32)
  keep "layout_$all" 30 "${kintsugi[@]}" compare tiny.toml --random --steps "$layout_steps" --set "$on" parallel.transport=threads "${sets[@]}" && same=$((same + 1))
done
row "layouts of four ranks as one of the processor" "12" "$same" "$([[ $same == 12 ]] && echo yes || echo no)"

# In bf16, losses of the card beside those of the processor, on text, with a learning rate that rises slowly: on random
# tokens, or from the first step on with all of it, two layouts of the processor come to differ by 0.02 and more.
cat "$here"/text/*.md >text.txt
keep prepare 60 "${kintsugi[@]}" prepare text.txt --tokenizer bytes --output text
run_toml loss '[model]' 'layers = 4' 'embed = 256' 'heads = 4' '[data]' 'train = "text/train"' '[train]' 'dtype = "bf16"' 'sequence = 128' 'global_batch = 8' 'micro_batch = 8' 'learning_rate = 0.0006' 'warmup_steps = 100'
small_text=()
[[ $device == emulated ]] && small_text=(model.layers=1 model.embed=32 model.heads=2 train.sequence=16 train.global_batch=4 train.micro_batch=2)
keep loss 150 "${kintsugi[@]}" compare loss.toml --steps "$loss_steps" --tolerance 1e9 --loss-tolerance 1e9 --set "$on" ${small_text[@]+"${small_text[@]}"}
apart=$(awk '$1 ~ /^[0-9]+$/ && $1 > 0 && NF >= 4 && $2 ~ /^[0-9.]+$/ && $3 ~ /^[0-9.]+$/ {d = $2 - $3; if (d < 0) d = -d; if (d > most) most = d; seen = 1} END {if (seen) print most + 0}' loss.txt)
at_most "loss beside the processor's, $loss_steps steps in bf16" 0.01 "" "$apart" "$(why loss)"

met=$(awk '$NF == "yes"' "$table" | wc -l) missed=$(awk '$NF == "no"' "$table" | wc -l)
echo "$met met, $missed not, $(($(date +%s) - begin)) s" | tee -a "$table"
((missed == 0))
