#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/window.h"

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

Shape windowed(const Shape& x, const Attributes& attributes, const tensor::Dim& last) {
  const std::vector<tensor::DimWindow> windows = tensor::windows_of(attributes);
  bool fits = windows.size() + 2 == x.rank();
  for (size_t i = 0; fits && i < windows.size(); ++i) fits = x[i + 1].name == windows[i].dim;
  if (!fits)
    throw base::InternalError("window", "{} has no windows {}", tensor::to_string(x), tensor::to_string(attributes));
  std::vector<tensor::Dim> dims = x.dims();
  dims.back() = last;
  for (size_t i = 0; i < windows.size(); ++i) {
    const tensor::Window& w = windows[i].window;
    tensor::Dim& dim = dims[i + 1];
    const int64_t outputs = w.outputs(dim.size);
    if (outputs < 1)
      throw base::InternalError("window", "{} of {} with padding {} and {} is smaller than a window of {}", dim.name,
                                dim.size, w.low, w.high, w.extent());
    dim.size = outputs;
  }
  return Shape(dims);
}

Type scalar() {
  return {Shape{}, DType::f64};
}

double elements(Types types) {
  return types.size() == 0 ? 0.0 : static_cast<double>(types.begin()->shape.elements());
}

}  // namespace kintsugi::ops
