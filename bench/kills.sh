#!/usr/bin/env bash
# kills.sh KINTSUGI [--kills N] [--seed S] [--rows REGEX]: kills the command N times (100) with SIGKILL, at moments that
# follow from the seed, in each way of working that the table below names; goes on after each kill; and compares what
# comes out in the end, bit for bit, with what a run gives that was never killed. Several ranks: one of them is killed.
# The last line counts; exit code 1 if anything differs, or does not go on. A row is left out where its MPI is not there.
set -uo pipefail
usage() { echo "usage: kills.sh KINTSUGI [--kills N] [--seed S] [--rows REGEX]" >&2; exit 2; }
(($# >= 1)) || usage
kintsugi=$(realpath "$1"); shift
kills=100 seed=1 pattern=.
while (($# >= 2)); do
  case $1 in
    --kills) kills=$2 ;;
    --seed) seed=$2 ;;
    --rows) pattern=$2 ;;
    *) usage ;;
  esac
  shift 2
done
(($# == 0)) || usage

# name | what is done (train, prepare) | launcher | settings over run.toml, or the tokenizer
model='train.steps=24 checkpoint.every=3'
table=(
  "one rank|train||$model"
  "two threads|train||$model parallel.data=2"
  "Open MPI|train|mpirun.openmpi --oversubscribe --allow-run-as-root -n 2|$model parallel.data=2"
  "MPICH|train|mpirun.mpich -n 2|$model parallel.data=2"
  "saves|train||train.steps=8 checkpoint.every=1 model.embed=192 model.layers=4 checkpoint.keep=2"
  "on a device|train||train.steps=6 checkpoint.every=1 parallel.device=emulated"
  "two on a device|train||train.steps=6 checkpoint.every=1 parallel.device=emulated parallel.data=2 parallel.zero=1"
  "two save|train||train.steps=8 checkpoint.every=1 model.embed=192 model.layers=4 parallel.data=2 parallel.zero=1"
  "prepare|prepare||bytes"
)

work=$(mktemp -d)
work=$(realpath "$work")
cleanup() {
  for pid in $(processes); do kill -KILL "$pid" 2>/dev/null; done
  rm -rf "$work"
}
# Of this script's runs: the command, working in a folder below.
processes() {
  local entry name comm=${kintsugi##*/}
  for entry in /proc/[0-9]*; do
    { read -r name <"$entry/comm"; } 2>/dev/null || continue
    [[ $name == "${comm:0:15}" ]] || continue
    [[ $(readlink "$entry/exe" 2>/dev/null) == "$kintsugi" && $(readlink "$entry/cwd" 2>/dev/null) == "$work" ]] &&
      echo "${entry#/proc/}"
  done
  true
}
trap cleanup EXIT
cd "$work" || exit 1

# The same numbers everywhere: $drawn is from 0 to $1 - 1.
state=$seed
draw() {
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  drawn=$(((state >> 8) % $1))
}
now_ms() { echo $((${EPOCHREALTIME//[.,]/} / 1000)); }
seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

failures=0 done_kills=0 compared=0 hung=0 summary=""
fail() {
  echo "FAILED $name: $*"
  tail -n 5 out err 2>/dev/null
  failures=$((failures + 1))
}

# Starts a command and kills one of its processes after $1 ms (0: does not). $code is how it ended, $killed whether it was
# killed.
run() {
  local after=$1 victims deadline
  shift
  killed=0
  "$@" >out 2>err </dev/null &
  local job=$!
  if ((after > 0)); then
    sleep "$(seconds "$after")"
    deadline=$(($(now_ms) + 60000))
    # To look for processes takes longer than a short command where others keep the cores busy.
    victims=()
    [[ -n $launcher ]] || victims=("$job")
    while ((${#victims[@]} == 0)) && kill -0 "$job" 2>/dev/null && (($(now_ms) < deadline)); do
      mapfile -t victims < <(processes)
    done
    if ((${#victims[@]} > 0)); then
      draw "${#victims[@]}"
      kill -KILL "${victims[drawn]}" 2>/dev/null
      killed=1
    fi
  fi
  {
    if ((killed)); then
      deadline=$(($(now_ms) + 60000))
      while kill -0 "$job" 2>/dev/null && (($(now_ms) < deadline)); do sleep 0.02; done
      # A launcher may wait for ever for a rank that was killed while it made itself known; then no rank is left.
      if kill -0 "$job" 2>/dev/null; then
        [[ -z $(processes) ]] || fail "a rank lives on for a minute after another was killed"
        kill -KILL "$job" 2>/dev/null
        hung=$((hung + 1))
      fi
    fi
    wait "$job" 2>/dev/null
    code=$?
  } 2>/dev/null  # where bash would say what was killed
  if ((code == 0)); then killed=0; fi
  deadline=$(($(now_ms) + 30000))
  while [[ -n $(processes) ]] && (($(now_ms) < deadline)); do sleep 0.02; done
  [[ -z $(processes) ]] || fail "a rank lives on after the launcher ended"
}

# What is not the time that it took.
numbers() { sed 's/,"tokens_per_second".*//' "$1/metrics.jsonl"; }
compare_runs() {
  local last pieces
  compared=$((compared + 1))
  cmp -s <(numbers whole) <(numbers killed) || fail "the metrics differ from those of a run that was not killed"
  last=$(cd whole && printf '%s\n' step_* | sort | tail -n 1)
  pieces=$(cd "whole/$last" && printf '%s\n' *.safetensors)
  for piece in $pieces; do
    cmp "whole/$last/$piece" "killed/$last/$piece" >>err 2>&1 || fail "$last/$piece differs"
  done
}

train() {  # kills
  local command=($launcher "$kintsugi" train run.toml) began resume tries=$((20 * $1 + 20))
  began=$(now_ms)
  run 0 "${command[@]}" --set train.folder=whole $sets
  ((code == 0)) || { fail "the run that is not killed ends with $code"; return; }
  local took=$(($(now_ms) - began))
  for ((left = $1; left >= 0; )); do
    resume=
    [[ -f killed/config.toml ]] && resume=--resume
    draw "$took"
    ((left == 0)) && drawn=-1
    run $((drawn + 1)) "${command[@]}" $resume --set train.folder=killed $sets
    if ((killed)); then
      left=$((left - 1)) done_kills=$((done_kills + 1))
    elif ((code != 0)); then
      fail "it ends with $code"
      return
    else
      compare_runs
      rm -rf killed
      ((left == 0)) && return
      ((--tries > 0)) || { fail "it ends before it is killed, each time"; return; }
    fi
  done
}

prepared=(train.bin train.idx train.json validation.bin validation.idx validation.json tokenizer.json)
is_whole() {  # reference: whether killed/ has all its files
  local file
  for file in "${prepared[@]}"; do cmp -s "$1/$file" "killed/$file" || return 1; done
}
prepare() {  # kills
  local began took current=one other=two tries=$((20 * $1 + 20))
  for text in one two; do
    began=$(now_ms)
    run 0 "$kintsugi" prepare $text.txt --tokenizer "$sets" --output $text
    ((code == 0)) || { fail "what is not killed ends with $code"; return; }
    took=$(($(now_ms) - began))
  done
  cp -r one killed
  for ((left = $1; left >= 0; )); do
    draw "$took"
    ((left == 0)) && drawn=-1
    run $((drawn + 1)) "$kintsugi" prepare $other.txt --tokenizer "$sets" --output killed --force
    compared=$((compared + 1))
    if ((killed)); then
      left=$((left - 1)) done_kills=$((done_kills + 1))
      is_whole $current && continue
    elif ((code != 0)); then
      fail "it ends with $code"
      return
    fi
    is_whole $other || { fail "neither the old files nor the new ones are whole"; return; }
    ((killed == 0 && left == 0)) && return
    ((--tries > 0)) || { fail "it ends before it is killed, each time"; return; }
    local swap=$current
    current=$other other=$swap
  done
}

lines() {
  awk -v n="$1" -v m="$2" 'BEGIN { for (i = 0; i < n; ++i) printf "Line %d of a text that a model can learn.\n", i * i % m }'
}
lines 4000 97 >text.txt
lines 20000 101 >one.txt
lines 21000 89 >two.txt
cat >run.toml <<'TOML'
[model]
layers = 2
embed = 32
heads = 4
dropout = 0.1
[data]
train = "corpus/train"
validation = "corpus/validation"
[train]
global_batch = 8
sequence = 16
decay_steps = 100
warmup_steps = 2
evaluate_every = 5
evaluate_batches = 2
[parallel]
threads = 1
bind = false
TOML
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >out 2>err || { name=start fail "prepare"; exit 1; }

rows=()
for row in "${table[@]}"; do
  IFS='|' read -r name kind launcher sets <<<"$row"
  [[ $name =~ $pattern ]] || continue
  if [[ -n $launcher ]] && ! command -v "${launcher%% *}" >/dev/null; then
    echo "left out: $name, there is no ${launcher%% *}"
    continue
  fi
  rows+=("$row")
done
((${#rows[@]} > 0)) || { echo "no row is named like $pattern"; exit 2; }
for i in "${!rows[@]}"; do
  IFS='|' read -r name kind launcher sets <<<"${rows[i]}"
  before=$done_kills failed=$failures
  share=$((kills * (i + 1) / ${#rows[@]} - kills * i / ${#rows[@]}))
  ((share > 0)) && $kind "$share"
  rm -rf whole killed one two
  summary+="${summary:+, }$name $((done_kills - before))"
  echo "$name: $((done_kills - before)) kills, $((failures - failed)) failures"
done
echo "$done_kills kills ($summary), $compared results compared, $failures failures;" \
  "$hung times a launcher hung without ranks; seed $seed"
((failures == 0 && done_kills == kills))
