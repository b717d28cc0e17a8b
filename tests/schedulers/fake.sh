#!/usr/bin/env bash
# Plays qsub, qrerun, qdel, flux and mpirun, by the name under which it is called: it checks every option, of the command line
# and of the script's directives, against those that the manual pages of OpenPBS and Flux document, and runs the script at
# once, on this machine. A job that asks to be run again is. FAKE_LOG receives a line per command. Exit code 2 with a message
# for what the page does not have.
set -euo pipefail
name=$(basename "$0")
say() { echo "$name $*" >>"$FAKE_LOG"; }
refuse() { echo "$name: $*" >&2; exit 2; }
say "$@"

# Options of qsub(1B), OpenPBS; those of a script's #PBS lines are the same.
check_pbs() {
  while (($# > 0)); do
    case $1 in
      -N) [[ $2 =~ ^[A-Za-z][A-Za-z0-9._-]{0,235}$ ]] || refuse "-N $2 is not a name of a job"; shift 2 ;;
      -l)
        [[ $2 =~ ^(select=[0-9]+(:[a-z]+=[A-Za-z0-9]+)*|walltime=[0-9]+:[0-9]{2}:[0-9]{2}|place=[a-z]+|filesystems=[a-z:]+)$ ]] ||
          refuse "-l $2 is not a resource"
        shift 2 ;;
      -q | -A | -o | -e) [[ -n $2 ]] || refuse "$1 has no value"; shift 2 ;;
      -r) [[ $2 == y || $2 == n ]] || refuse "-r $2 is neither y nor n"; shift 2 ;;
      -j) [[ $2 == oe || $2 == eo || $2 == n ]] || refuse "-j $2"; shift 2 ;;
      -W) [[ $2 =~ ^depend=(after|afterok|afternotok|afterany):[0-9A-Za-z.]+$ ]] || refuse "-W $2"; shift 2 ;;
      *) refuse "unknown option $1" ;;
    esac
  done
}
# Options of flux-batch(1).
check_flux_batch() {
  while (($# > 0)); do
    case $1 in
      --job-name=?* | --queue=?* | --bank=?* | --output=?*) shift ;;
      --time-limit=*) [[ ${1#*=} =~ ^[0-9]+[smhd]?$ ]] || refuse "$1"; shift ;;
      --dependency=*) [[ ${1#*=} =~ ^(after|afterany|afterok|afternotok):.+$ ]] || refuse "$1"; shift ;;
      -N | -n | -c | -g) [[ $2 =~ ^[0-9]+$ ]] || refuse "$1 $2"; shift 2 ;;
      *) refuse "unknown option $1" ;;
    esac
  done
}
# The directives of a script, one argument per word, quotes removed.
directives() {
  local line prefix=$1
  while read -r line; do
    eval "set -- ${line#"$prefix"}"
    printf '%s\0' "$@"
  done < <(grep "^$prefix " "$2")
}

case $name in
  qsub)
    options=()
    while (($# > 1)); do options+=("$1"); shift; done
    check_pbs "${options[@]}"
    [[ -f $1 ]] || refuse "no script $1"
    mapfile -d '' -t words < <(directives '#PBS' "$1")
    check_pbs "${words[@]}"
    id=$((RANDOM + 1)).fake
    echo "$id"
    [[ " ${options[*]} " != *afternotok* ]] || exit 0  # the job before it ends well
    PBS_NODEFILE=$(mktemp)
    hostname >"$PBS_NODEFILE"
    export PBS_NODEFILE PBS_JOBID=$id PBS_RUN_COUNT=1
    : >"$FAKE_LOG.$id"
    while :; do
      bash "$1" >>"$FAKE_LOG.out" 2>&1 || exit 1
      [[ -s $FAKE_LOG.$id ]] || break
      : >"$FAKE_LOG.$id"
      PBS_RUN_COUNT=$((PBS_RUN_COUNT + 1))
    done ;;
  qrerun)
    [[ $# == 1 && $1 =~ ^[0-9]+\.fake$ ]] || refuse "takes the id of a job"
    echo again >"$FAKE_LOG.$1" ;;
  qdel) (($# == 1)) || refuse "takes the id of a job" ;;
  mpirun)
    while [[ $1 == -* ]]; do
      case $1 in
        -n) [[ $2 == 1 ]] || refuse "-n $2"; shift 2 ;;
        -hostfile) [[ -s $2 ]] || refuse "-hostfile $2: no such file"; shift 2 ;;
        *) refuse "unknown option $1" ;;
      esac
    done
    exec "$@" ;;
  flux)
    [[ $1 != --parent ]] || shift
    command=$1
    shift
    case $command in
      batch)
        options=()
        while (($# > 1)); do options+=("$1"); shift; done
        check_flux_batch "${options[@]}"
        mapfile -d '' -t words < <(directives '#flux:' "$1")
        check_flux_batch "${words[@]}"
        id=f$((RANDOM + 1))
        echo "$id"
        if [[ -n ${FLUX_JOB_ID:-} ]]; then  # of a job: it runs afterwards
          echo "$1" >"$FAKE_LOG.next"
          exit 0
        fi
        script=$1
        while :; do
          rm -f "$FAKE_LOG.next"
          FLUX_JOB_ID=$id FLUX_JOB_NNODES=1 bash "$script" >>"$FAKE_LOG.out" 2>&1 || exit 1
          [[ -s $FAKE_LOG.next ]] || break
          script=$(<"$FAKE_LOG.next")
        done ;;
      run)
        while [[ $1 == -* ]]; do
          case $1 in
            -N | -n | -c | -g) [[ $2 =~ ^[0-9]+$ ]] || refuse "run $1 $2"; shift 2 ;;
            --requires=host:?*) shift ;;
            *) refuse "run: unknown option $1" ;;
          esac
        done
        exec "$@" ;;
      getattr) [[ $1 == jobid ]] || refuse "getattr $1"; echo "${FLUX_JOB_ID:-none}" ;;
      hostlist) [[ $1 == avail ]] || refuse "hostlist $1"; hostname ;;
      cancel) (($# == 1)) || refuse "cancel takes the id of a job" ;;
      *) refuse "unknown command $command" ;;
    esac ;;
  *) refuse "is not played" ;;
esac
