#!/usr/bin/env bash
# layouts.sh KINTSUGI [--dtype fp64|fp32] [--tolerance T] [NETWORK ...]: networks of images in 40 layouts each, compared
# with one rank by `kintsugi compare` on random images: the loss, and every gradient by name, within 1e-9 in fp64 and
# 1e-5 in fp32 unless a tolerance is given. Networks: lenet, resnet18 (32 pixels), alexnet (64 pixels), unet, unet-deep
# (volumes), cosmoflow (16 x 16 x 16). In fp32 a ReLU whose input is within rounding of zero changes gradients: a layout
# that differs is compared with two more seeds, and is the same if both are, which its line says; a wrong layout differs
# with every seed. Prints a line per layout, and fails if one differs.
set -uo pipefail
kintsugi=$(realpath "$1")
shift
dtype=fp64
tolerance=()
networks=()
while (($# > 0)); do
  case $1 in
    --dtype) dtype=$2; shift ;;
    --tolerance) tolerance=(--tolerance "$2"); shift ;;
    *) networks+=("$1") ;;
  esac
  shift
done
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"

# Keys of [parallel] by a comma. wide, deep: the dim that space splits, instead of the height; tiles: height and width.
common="data=2 data=4 data=2,zero=1 data=2,zero=2 data=2,zero=3 data=4,zero=3
  tensor=2 tensor=2,data=2 tensor=2,data=2,zero=1 tensor=2,data=2,zero=3
  pipe=2 pipe=2,schedule=gpipe pipe=2,schedule=zero_bubble pipe=3 pipe=2,data=2,zero=1 pipe=2,data=2,zero=2 pipe=2,tensor=2
  space=2 space=3 space=4 space=2,data=2 space=2,data=2,zero=1 space=2,data=2,zero=2 space=2,data=2,zero=3 space=3,data=2
  space=2,tensor=2 space=3,tensor=2 space=2,pipe=2 space=2,pipe=3 space=2,data=2,tensor=2 space=2,data=2,pipe=2
  space=2,tensor=2,pipe=2 space=2,recompute=full pipe=2,recompute=full"
flat="space=2,wide space=3,wide space=4,tiles space=2,wide,data=2,zero=3 space=2,wide,tensor=2 space=4,tiles,data=2"
volume="space=2,deep space=3,deep space=4,deep space=2,wide space=2,deep,data=2,zero=3 space=2,deep,tensor=2,pipe=2"
failed=0

compare() {  # NETWORK "KEYS" LAYOUT...
  local name=$1 model=$2
  shift 2
  local same=0
  for layout in "$@"; do
    local ranks=1 sets=()
    for word in ${layout//,/ }; do
      case $word in
        wide) sets+=(parallel.space_dims="width") ;;
        deep) sets+=(parallel.space_dims="depth") ;;
        tiles) sets+=('parallel.rules=["height -> space.0, padded", "width -> space.1, padded"]') ;;
        *) sets+=("parallel.$word") ;;
      esac
      case $word in data=*|tensor=*|pipe=*|space=*) ranks=$((ranks * ${word#*=})) ;; esac
    done
    printf '[model]\nfamily = "%s"\n' "${name%%-*}" > run.toml
    local first= differs=
    for seed in 1 2 3; do
      if "$kintsugi" compare run.toml --random --steps 1 --dtype "$dtype" "${tolerance[@]}" --ranks $ranks \
        --global-batch 4 --set $model train.micro_batch=1 train.optimizer=sgd train.seed=$seed "${sets[@]}" > out 2>&1; then
        [[ -z $first ]] && break
      elif [[ $seed == 1 && $dtype == fp32 ]] && grep -q '^first difference' out; then
        first=$(grep -m1 '^first difference' out)
      else
        differs=$(grep -m1 -E '^error|first difference' out)
        break
      fi
    done
    if [[ -z $differs ]]; then
      echo "same   $name $layout${first:+ (seeds 2 and 3; seed 1: $first)}"
      same=$((same + 1))
    else
      echo "FAILED $name $layout: $differs"
      failed=1
    fi
  done
  echo "$name, $dtype: $same of $# layouts are the same as one rank"
}

size() {  # HEIGHT WIDTH [DEPTH]
  echo "model.image_height=$1 model.image_width=$2${3:+ model.image_depth=$3}"
}
color="model.outputs=10 model.image_channels=3"
for network in "${networks[@]:-lenet unet unet-deep cosmoflow alexnet resnet18}"; do
  for name in $network; do
    case $name in
      lenet) compare $name "$color $(size 32 32)" $common $flat ;;
      resnet18) compare $name "$color $(size 32 32)" $common $flat ;;
      alexnet)  # the last layers have 3 positions, fewer than some layouts have ranks
        compare $name "$color $(size 64 64) parallel.allow_repeat=true" $common $flat ;;
      unet) compare $name "model.outputs=3 model.image_channels=1 $(size 64 48) model.embed=4" $common $flat ;;
      unet-deep) compare $name "model.outputs=3 model.image_channels=1 $(size 64 32 64) model.embed=2" $common $volume ;;
      cosmoflow)  # its last layers have fewer positions than ranks
        compare $name "model.outputs=4 model.image_channels=4 $(size 16 16 16) model.image_dtype=fp32
          parallel.allow_repeat=true" $common $volume ;;
      *) echo "layouts.sh: no network $name" >&2; exit 2 ;;
    esac
  done
done
exit $failed
