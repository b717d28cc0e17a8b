#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OutTypes like_first(Types ins, const Attributes&) {
  return {ins[0]};
}

Shape without(const Shape& shape, std::string_view dim) {
  std::vector<tensor::Dim> dims;
  for (const tensor::Dim& d : shape)
    if (d.name != dim) dims.push_back(d);
  return Shape(dims);
}

Type scalar() {
  return {Shape{}, DType::f64};
}

double elements(Types types) {
  return types.size() == 0 ? 0.0 : static_cast<double>(types.begin()->shape.elements());
}

}  // namespace kintsugi::ops
