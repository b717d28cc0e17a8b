#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

std::vector<Type> like_first(Types ins, const Attributes&) {
  return {ins[0]};
}

Type scalar() {
  return {Shape{}, DType::f64};
}

double elements(Types types) {
  return types.empty() ? 0.0 : static_cast<double>(types[0].shape.elements());
}

}  // namespace kintsugi::ops
