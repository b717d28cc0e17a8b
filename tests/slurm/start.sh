#!/usr/bin/env bash
# start.sh FOLDER [NODES [hosts]]: starts a Slurm cluster on this machine, as root and without systemd: munged, slurmctld and
# a slurmd per node (4), all in FOLDER. Prints nothing; FOLDER/env is then to be sourced: it names the cluster to sbatch, srun
# and scontrol. With `hosts`, each node is a set of namespaces with its own address, host name, processes and /dev/shm, which
# host.sh starts and crashes. stop.sh FOLDER ends it. Exit code 77 if Slurm is not installed, this is not root, or (hosts) the
# machine does not allow namespaces.
set -euo pipefail
folder=$(realpath -m "$1") nodes=${2:-4} hosts=${3:-}
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
for program in munged slurmctld slurmd sbatch srun scontrol; do
  PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "skipped: no $program (Debian: slurm-wlm munge)" >&2; exit 77; }
done
((EUID == 0)) || { echo "skipped: slurmd has to be started as root" >&2; exit 77; }
export PATH=$PATH:/usr/sbin
if [[ $hosts == hosts ]] && ! unshare --net --uts --pid --fork --mount --mount-proc true 2>/dev/null; then
  echo "skipped: no namespaces here" >&2; exit 77
fi
mkdir -p "$folder"/{munge,state,spool,log,tmp}
for ((n = 1; n <= nodes; ++n)); do mkdir -p "$folder/tmp/n$n"; done
chmod 700 "$folder/munge"
cd "$folder"

# Ports of this cluster alone, so that two of them may run at the same time.
base=$((20000 + $$ % 20000))
host=$(hostname -s) controller=127.0.0.1
names="NodeName=n[1-$nodes] NodeHostName=$host NodeAddr=127.0.0.1 Port=[$((base + 1))-$((base + nodes))]"
if [[ $hosts == hosts ]]; then
  network=10.$((base / 256 % 200 + 20)).$((base % 250 + 1))
  controller=$network.254
  names="NodeName=n[1-$nodes] NodeAddr=$network.[1-$nodes]"
  ((nodes > 1)) || names="NodeName=n1 NodeAddr=$network.1"
  echo "$network" >network
  ip link add "kb$base" type bridge
  echo "kb$base" >bridge
  ip address add "$controller/24" dev "kb$base"
  ip link set "kb$base" up
fi
dd if=/dev/urandom of=munge/key bs=1024 count=1 status=none
chmod 400 munge/key
munged --force --foreground --num-threads=2 --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/log/munged" --seed-file="$folder/munge/seed" </dev/null >log/munged.out 2>&1 &
echo $! >pids

cat >slurm.conf <<CONF
ClusterName=kintsugi
SlurmctldHost=$host($controller)
SlurmctldPort=$base
AuthType=auth/munge
# A job that is requeued waits until its old credentials have expired.
AuthInfo=socket=$folder/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/state/slurmctld.pid
SlurmdPidFile=$folder/spool/%n.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/%n
TmpFS=$folder/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000
SlurmdParameters=config_overrides
SlurmdTimeout=15
KillWait=10
ReturnToService=2
JobRequeue=1
$names CPUs=2 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=24:00:00 State=UP
CONF
echo "CgroupPlugin=cgroup/v1" >cgroup.conf
cat >"$folder/env" <<ENV
export SLURM_CONF=$folder/slurm.conf PATH=\$PATH:/usr/sbin
ENV

stepd=$(dpkg -L slurmd 2>/dev/null | grep -m 1 '/slurmstepd-wlm$\|/slurmstepd$' || true)
export SLURM_CONF=$folder/slurm.conf
for ((i = 0; i < 50; ++i)); do [[ -S munge/socket ]] && break; sleep 0.1; done
slurmctld -D -i -f slurm.conf </dev/null >log/slurmctld.out 2>&1 &
echo $! >>pids
for ((n = 1; n <= nodes; ++n)); do
  if [[ $hosts == hosts ]]; then
    "$here/host.sh" "$folder" start "$n"
    continue
  fi
  slurmd -D -N "n$n" -c -f "$folder/slurm.conf" ${stepd:+-d "$stepd"} </dev/null >"log/n$n.out" 2>&1 &
  echo $! >>pids
done
for ((i = 0; i < 200; ++i)); do
  idle=$(sinfo -h -t idle -o %D 2>/dev/null || true)
  [[ $idle == "$nodes" ]] && exit 0
  sleep 0.1
done
echo "error: the nodes are not idle after 20 s" >&2
tail -n 5 log/* >&2
exit 1
