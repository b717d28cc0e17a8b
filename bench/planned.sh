#!/usr/bin/env bash
# planned.sh KINTSUGI [CLUSTER]: simulated steps beside measured ones on this machine, on 2 ranks in eight layouts, in ROUNDS
# (3). CLUSTER is what `kintsugi bench machine` has written; without it, each round makes one, since the speed of a machine
# that is shared changes. The kernels of the first layouts are then measured (`bench products`): those of the others are
# estimated from them. Each round is printed, then the median of each layout. With RANKS=4, layouts of 4 ranks.
set -euo pipefail
kintsugi=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ranks=${RANKS:-2}
dtype=${DTYPE:-fp32}
cat > "$work/run.toml" <<END
[model]
layers = ${LAYERS:-4}
embed = ${EMBED:-384}
heads = 6
vocab = 8192
[train]
sequence = 256
global_batch = ${BATCH:-16}
micro_batch = ${MICRO_BATCH:-4}
dtype = "$dtype"
folder = "$work/run"
[parallel]
threads = 1
END
if ((ranks == 2)); then
  layouts=("data=2" "tensor=2" "context=2" "data=2 zero=1" "data=2 zero=3" "tensor=2 sequence_parallel=true" "pipe=2"
    "pipe=2 schedule=interleaved chunks=2")
else
  layouts=("data=4" "tensor=2 data=2" "context=2 data=2" "data=4 zero=1" "data=4 zero=3" "tensor=4 sequence_parallel=true"
    "pipe=2 data=2" "pipe=4")
fi
sets() { for word in $1; do case $word in schedule=*) echo "parallel.schedule=\"${word#*=}\"" ;; *) echo "parallel.$word" ;; esac; done; }

# Lines "layout,planned seconds,measured milliseconds" of all layouts.
round() {
  local cluster=$work/machine.toml layout planned measured
  if (($# > 0)); then cp "$1" "$cluster"; else "$kintsugi" bench machine --ranks "$ranks" --into "$cluster" > /dev/null 2>&1; fi
  for layout in "${layouts[@]:0:${CALIBRATED:-3}}"; do
    mapfile -t s < <(sets "$layout")
    "$kintsugi" bench products "$work/run.toml" --into "$cluster" --set "${s[@]}" > /dev/null 2>&1
  done
  for layout in "${layouts[@]}"; do
    mapfile -t s < <(sets "$layout")
    "$kintsugi" plan "$work/run.toml" --cluster "$cluster" --times "$work/times.csv" --set "${s[@]}" > "$work/plan" 2> /dev/null
    planned=$(awk -F, 'NR == 2 { print $2 }' "$work/times.csv")
    # The better of two, since other programs on the machine only make it slower.
    measured=$(for turn in ${TURNS:-1 2}; do
      "$kintsugi" profile "$work/run.toml" --steps 5 --warm-up 1 --set "${s[@]}" 2> /dev/null | sed -n 's/.*samples: \([0-9.]*\) ms a step.*/\1/p'
    done | sort -g | head -n 1)
    echo "$layout,$planned,$measured"
  done
}

for ((i = 1; i <= ${ROUNDS:-3}; ++i)); do round "${@:2}"; done | tee "${RAW:-/dev/null}" | awk -F, '
  function row(what, planned, measured, error) {
    printf "%-40s planned %9.1f ms  measured %9.1f ms  %+6.1f%%\n", what, planned, measured, error
  }
  function error_of(planned, measured) { return 100 * (planned / measured - 1) }
  function sort(list, n,    i, j, t) {
    for (i = 1; i <= n; ++i)
      for (j = i + 1; j <= n; ++j) if (list[j] < list[i]) { t = list[i]; list[i] = list[j]; list[j] = t }
  }
  function median(list, n) { sort(list, n); return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2 }
  {
    if (!($1 in count)) names[++layouts] = $1
    planned[$1, ++count[$1]] = $2 * 1000; measured[$1, count[$1]] = $3
    row($1, $2 * 1000, $3, error_of($2 * 1000, $3))
  }
  END {
    print "medians:"
    for (l = 1; l <= layouts; ++l) {
      n = count[names[l]]
      for (i = 1; i <= n; ++i) { p[i] = planned[names[l], i]; m[i] = measured[names[l], i]; e[i] = error_of(p[i], m[i]) }
      error = median(e, n)
      row(names[l], median(p, n), median(m, n), error)
      a[l] = error < 0 ? -error : error
    }
    printf "median %.1f%%, worst %.1f%%\n", median(a, layouts), a[layouts]
  }'
