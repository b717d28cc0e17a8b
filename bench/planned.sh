#!/usr/bin/env bash
# planned.sh KINTSUGI [CLUSTER]: simulated steps beside measured ones on this machine, on 2 ranks in eight layouts. CLUSTER is
# what `kintsugi bench machine` has written; without it, one is made. The kernels of the first layouts are then measured
# (`bench products`): those of the others are estimated from them. With RANKS=4, layouts of 4 ranks.
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
cluster=$work/machine.toml
if (($# > 1)); then cp "$2" "$cluster"; else "$kintsugi" bench machine --ranks "$ranks" --into "$cluster" > /dev/null 2>&1; fi

if ((ranks == 2)); then
  layouts=("data=2" "tensor=2" "context=2" "data=2 zero=1" "data=2 zero=3" "tensor=2 sequence_parallel=true" "pipe=2"
    "pipe=2 schedule=interleaved chunks=2")
else
  layouts=("data=4" "tensor=2 data=2" "context=2 data=2" "data=4 zero=1" "data=4 zero=3" "tensor=4 sequence_parallel=true"
    "pipe=2 data=2" "pipe=4")
fi
sets() { for word in $1; do case $word in schedule=*) echo "parallel.schedule=\"${word#*=}\"" ;; *) echo "parallel.$word" ;; esac; done; }
for layout in "${layouts[@]:0:${CALIBRATED:-3}}"; do
  mapfile -t s < <(sets "$layout")
  "$kintsugi" bench products "$work/run.toml" --into "$cluster" --set "${s[@]}" > /dev/null 2>&1
done
for layout in "${layouts[@]}"; do
  mapfile -t s < <(sets "$layout")
  "$kintsugi" plan "$work/run.toml" --cluster "$cluster" --times "$work/times.csv" --set "${s[@]}" > "$work/plan" 2> /dev/null
  planned=$(awk -F, 'NR == 2 { print $2 }' "$work/times.csv")
  # The better of two, since other programs on the machine only make it slower.
  for turn in ${TURNS:-1 2}; do
    "$kintsugi" profile "$work/run.toml" --steps 5 --warm-up 1 --set "${s[@]}" 2> /dev/null | sed -n 's/.*samples: \([0-9.]*\) ms a step.*/\1/p'
  done | sort -g | head -n 1 > "$work/measured"
  echo "$layout,$planned,$(cat "$work/measured")"
done | tee "${RAW:-/dev/null}" | awk -F, '
  { e = 100 * ($2 * 1000 / $3 - 1); a[NR] = e < 0 ? -e : e
    printf "%-40s planned %9.1f ms  measured %9.1f ms  %+6.1f%%\n", $1, $2 * 1000, $3, e }
  END { for (i = 1; i <= NR; ++i) for (j = i + 1; j <= NR; ++j) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
        printf "median %.1f%%, worst %.1f%%\n", (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2, a[NR] }'
