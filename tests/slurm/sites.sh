#!/usr/bin/env bash
# sites.sh KINTSUGI ROOT: the job scripts of every site with Slurm pass `sbatch --test-only` on a slurmctld that is configured
# with the site's partitions, as many nodes as they give at most, and their devices; one node or minute more than a partition
# allows is refused both by it and by `kintsugi job`. Exit code 77 if Slurm is not installed or this is not root.
set -euo pipefail
kintsugi=$(realpath "$1") root=$(realpath "$2")
export PATH=$PATH:/usr/sbin
for program in munged slurmctld sbatch; do
  command -v $program >/dev/null || { echo "skipped: no $program (Debian: slurm-wlm munge)"; exit 77; }
done
((EUID == 0)) || { echo "skipped: slurmctld has to be started as root"; exit 77; }
work=$(realpath "$(mktemp -d)")
pids=()
cleanup() {
  kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
fail() { echo "FAILED: $*"; cat log; tail -n 5 ctld.log; exit 1; }
mkdir munge
chmod 700 munge
dd if=/dev/urandom of=munge/key bs=1024 count=1 status=none
chmod 400 munge/key
munged --force --foreground --num-threads=2 --key-file="$work/munge/key" --socket="$work/munge/socket" \
  --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" </dev/null >munge.out 2>&1 &
pids+=($!)
for ((i = 0; i < 50; ++i)); do [[ -S munge/socket ]] && break; sleep 0.1; done
for ((i = 0; i < 400; ++i)); do echo "Line $((i * i % 97)) of a text that a model can learn."; done >text.txt
"$kintsugi" prepare text.txt --tokenizer bytes --output corpus >log 2>&1 || fail "prepare"
printf '[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = "corpus/train"\n[train]\nglobal_batch = 4\nsequence = 16\n' >run.toml

port=$((20000 + $$ % 20000)) checked=0
for file in "$root"/sites/*.toml; do
  grep -q '^scheduler = "slurm"' "$file" || continue
  site=$(basename "$file" .toml)
  cores=$(sed -n 's/^cores = \([0-9]*\).*/\1/p' "$file")
  # "NAME NODES HOURS": the most of each.
  mapfile -t partitions < <(sed -n '/^\[partitions\]/,$p' "$file" | awk '
    /= {limits = / {
      name = $1; nodes = hours = 0; line = $0
      while (match(line, /\[[0-9]+, *[0-9.]+\]/)) {
        split(substr(line, RSTART + 1, RLENGTH - 2), pair, /, */)
        if (pair[1] + 0 > nodes) nodes = pair[1] + 0
        if (pair[2] + 0 > hours) hours = pair[2] + 0
        line = substr(line, RSTART + RLENGTH)
      }
      print name, nodes, hours
    }')
  ((${#partitions[@]} > 0)) || partitions=("batch 16 24")
  most=$(printf '%s\n' "${partitions[@]}" | awk '$2 > m { m = $2 } END { print m }')
  devices=$(sed -n 's/^devices = \([0-9][0-9]*\).*/\1/p' "$file" | head -n 1)
  rm -rf state
  mkdir state
  {
    cat <<CONF
ClusterName=site
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$work/state
SlurmctldPidFile=$work/state/pid
SlurmctldLogFile=$work/ctld.log
ProctrackType=proctrack/linuxproc
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
GresTypes=gpu
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=86400
NodeName=n[1-$most] CPUs=$((cores > 0 ? cores : 64)) Gres=gpu:${devices:-8} Feature=gpu State=CLOUD
CONF
    first=YES
    for p in "${partitions[@]}"; do
      read -r name nodes hours <<<"$p"
      echo "PartitionName=$name Nodes=ALL Default=$first MaxNodes=$nodes MaxTime=$(awk -v h="$hours" 'BEGIN { print int(60 * h) }') State=UP"
      first=NO
    done
  } >slurm.conf
  export SLURM_CONF=$work/slurm.conf
  slurmctld -D -i -f slurm.conf </dev/null >ctld.out 2>&1 &
  controller=$!
  pids+=("$controller")
  for ((i = 0; i < 100; ++i)); do scontrol ping 2>/dev/null | grep -q UP && break; sleep 0.1; done
  for p in "${partitions[@]}"; do
    read -r name nodes hours <<<"$p"
    minutes=$(awk -v h="$hours" 'BEGIN { print int(60 * h) }')
    given=(--partition "$name")
    grep -q '^\[partitions\]' "$file" || given=()
    "$kintsugi" job run.toml --site "$site" --nodes 2 --ranks 2 --time 30 "${given[@]}" --output job.sh >log 2>&1 || fail "$site: job"
    sbatch --test-only job.sh >log 2>&1 || fail "$site: sbatch --test-only, partition $name"
    checked=$((checked + 1))
    grep -q '^\[partitions\]' "$file" || continue
    sed "s/^#SBATCH --nodes=.*/#SBATCH --nodes=$((nodes + 1))/" job.sh >more.sh
    ! sbatch --test-only more.sh >log 2>&1 || fail "$site: $((nodes + 1)) nodes are taken by Slurm, partition $name"
    ! "$kintsugi" job run.toml --site "$site" --nodes $((nodes + 1)) --ranks $((nodes + 1)) --set "train.global_batch=$((nodes + 1))" \
      "${given[@]}" --output more.sh >log 2>&1 || fail "$site: $((nodes + 1)) nodes are not refused"
    ! "$kintsugi" job run.toml --site "$site" --time $((minutes + 1)) "${given[@]}" --output more.sh >log 2>&1 ||
      fail "$site: $((minutes + 1)) minutes are not refused"
  done
  kill "$controller"
  wait "$controller" 2>/dev/null || true
done
echo "$checked scripts taken by sbatch --test-only"
