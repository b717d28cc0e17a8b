#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OutTypes like_first(Types ins, const Attributes&) {
  return {ins[0]};
}

Type scalar() {
  return {Shape{}, DType::f64};
}

double elements(Types types) {
  return types.size() == 0 ? 0.0 : static_cast<double>(types.begin()->shape.elements());
}

}  // namespace kintsugi::ops
