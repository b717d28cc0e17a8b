#!/usr/bin/env bash
# host.sh FOLDER ACTION N: for node nN of a cluster that start.sh started with `hosts`. ACTION: start; crash (its network is
# cut and all its processes end at the same instant, as when the power fails; it remains down until start); slow RATE (limits
# its network, "20mbit"); pid (prints the process whose end is the end of the host).
set -euo pipefail
folder=$(realpath "$1") action=$2 n=$3
network=$(<"$folder/network") bridge=$(<"$folder/bridge")
space=$bridge-n$n link=${bridge/kb/kl}n$n init=$folder/spool/n$n.init
cd "$folder"
case $action in
  start)
    stepd=$(dpkg -L slurmd 2>/dev/null | grep -m 1 '/slurmstepd-wlm$\|/slurmstepd$' || true)
    ip netns delete "$space" 2>/dev/null || true
    ip link delete "$link" 2>/dev/null || true
    ip netns add "$space"
    ip link add "$link" type veth peer name eth0 netns "$space"
    ip link set "$link" master "$bridge" up
    ip -n "$space" address add "$network.$n/24" dev eth0
    ip -n "$space" link set eth0 up
    ip -n "$space" link set lo up
    # shellcheck disable=SC2016
    nsenter --net="/run/netns/$space" unshare --uts --pid --fork --kill-child --mount --mount-proc bash -c '
      hostname "$1"
      mount -t tmpfs shm /dev/shm
      export SLURM_CONF=$2/slurm.conf PATH=$PATH:/usr/sbin
      slurmd -D -N "$1" -c -f "$2/slurm.conf" ${3:+-d "$3"}
    ' host "n$n" "$folder" "$stepd" </dev/null >>"log/n$n.out" 2>&1 &
    echo $! >"$init"
    echo $! >>pids
    ;;
  crash)
    ip link set "$link" down 2>/dev/null || true
    # The first process of its PID namespace: the kernel ends all others with it.
    pid=$(pgrep -P "$(<"$init")" || true)
    [[ -z $pid ]] || kill -KILL "$pid"
    ;;
  slow) ip netns exec "$space" tc qdisc replace dev eth0 root tbf rate "$4" burst 64kb latency 200ms ;;
  pid) pgrep -P "$(<"$init")" ;;
  remove)
    ip link delete "$link" 2>/dev/null || true
    ip netns delete "$space" 2>/dev/null || true
    ;;
  *) echo "host.sh: unknown action $action" >&2; exit 2 ;;
esac
