#!/usr/bin/env bash
# layouts.sh KINTSUGI [DTYPE]: networks of images in many layouts beside one rank, by `kintsugi compare` on random
# images: loss and every gradient by name. Prints a line for each layout and fails if one differs.
set -uo pipefail
kintsugi=$(realpath "$1")
dtype=${2:-fp64}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
failed=0
compare() {  # NAME "MODEL KEYS" LAYOUT...
  local name=$1 model=$2
  shift 2
  for layout in "$@"; do
    local ranks=1 sets=()
    for word in ${layout//,/ }; do
      sets+=("parallel.$word")
      case $word in data=*|tensor=*|pipe=*|space=*) ranks=$((ranks * ${word#*=})) ;; esac
    done
    printf '[model]\nfamily = "%s"\n' "${name%%-*}" > run.toml
    if "$kintsugi" compare run.toml --random --steps 1 --dtype "$dtype" --ranks $ranks --global-batch 4 \
      --set $model train.micro_batch=1 train.optimizer=sgd "${sets[@]}" > out 2>&1; then
      echo "same   $name $layout"
    else
      echo "FAILED $name $layout: $(grep -m1 -E 'error|first difference' out)"
      failed=1
    fi
  done
}
common="data=2 data=4 data=2,zero=1 data=2,zero=2 data=2,zero=3 tensor=2 pipe=2 space=2 space=3 space=4 space=2,data=2 space=2,tensor=2"
images="model.outputs=10 model.image_channels=3"
compare lenet "$images model.image_height=32 model.image_width=32" $common space=2,pipe=2 space=2,data=2,zero=3
compare resnet18 "$images model.image_height=32 model.image_width=32" $common space=2,pipe=2
compare alexnet "$images model.image_height=64 model.image_width=64" space=2 space=3 data=2,zero=3 tensor=2 pipe=2 space=2,tensor=2
compare unet "model.outputs=3 model.image_channels=1 model.image_height=48 model.image_width=32 model.embed=8" $common space=2,pipe=3
compare unet-deep "model.outputs=3 model.image_channels=1 model.image_height=16 model.image_width=16 model.image_depth=16 model.embed=4" \
  space=2,space_dims=depth space=4,space_dims=depth data=2,zero=2
compare cosmoflow "model.outputs=4 model.image_channels=4 model.image_height=16 model.image_width=16 model.image_depth=16 model.image_dtype=fp32" \
  $common space=2,space_dims=depth space=4,space_dims=depth
exit $failed
