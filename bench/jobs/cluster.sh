# shellcheck shell=bash disable=SC2034,SC2154
# cluster.sh: to be sourced by a script of this folder, after `work` is a folder of its own: starts a Slurm of four hosts in
# $work/slurm (namespaces with addresses, processes and memory of their own), changes to $work, and prepares a corpus there.
# Exits with 77 if this machine cannot. Requires: kintsugi (the command), state (seed of draw).
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
stop_cluster() { "$root/tests/slurm/stop.sh" "$work/slurm" 2>/dev/null; }
host() { "$root/tests/slurm/host.sh" "$work/slurm" "$@"; }
"$root/tests/slurm/start.sh" "$work/slurm" 4 hosts || exit $?
# shellcheck source=/dev/null
source "$work/slurm/env"
cd "$work" || exit 1

# $drawn is from 0 to $1 - 1, the same in every run with the same seed.
draw() {
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  drawn=$(((state >> 8) % $1))
}
# Processes of the program in this folder with that option: ranks (--supervised), or launchers (--with).
pids_of() {
  local pid
  for pid in $(pgrep -f -- "^$kintsugi launch .*$1"); do [[ /proc/$pid/cwd -ef $work ]] && echo "$pid"; done
  true
}
# The process of a rank: the variables of its step name it.
pid_of_rank() {
  local pid
  for pid in $(pids_of --supervised); do
    { tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "SLURM_PROCID=$1"; } 2>/dev/null && { echo "$pid"; return; }
  done
}
steps_of() { { wc -l <"$1/metrics.jsonl"; } 2>/dev/null || echo 0; }
# Until that many steps are done, at most a minute.
await_steps() {
  local i
  for ((i = 0; i < 1200 && $(steps_of "$1") < $2; ++i)); do sleep 0.05; done
}
# Until all four hosts are idle, at most two minutes.
await_idle() {
  local i
  for ((i = 0; i < 240; ++i)); do [[ $(sinfo -h -t idle -o %D 2>/dev/null) == 4 ]] && break; sleep 0.5; done
}

for ((i = 0; i < 400; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >log 2>&1 || { cat log; exit 1; }
