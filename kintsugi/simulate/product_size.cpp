#include "kintsugi/simulate/product_size.h"

namespace kintsugi::simulate {

using tensor::Shape;

ProductSize product_size(const Shape& a, const Shape& b, const Shape& y) {
  ProductSize size;
  for (const tensor::Dim& d : a) {
    const auto n = static_cast<double>(d.size);
    const bool in_b = b.has(d.name), in_y = y.has(d.name);
    (in_b ? (in_y ? size.times : size.depth) : size.rows) *= n;
  }
  for (const tensor::Dim& d : b)
    if (!a.has(d.name)) size.columns *= static_cast<double>(y.has(d.name) ? y.size(d.name) : d.size);
  return size;
}

std::string product_form(const Shape& a, const Shape& b) {
  const auto last = [](const Shape& of, const Shape& other) {
    return of.rank() > 0 && other.has(of[of.rank() - 1].name);  // in both: the depth
  };
  return std::string(last(a, b) ? "n" : "t") + (last(b, a) ? "t" : "n");
}

}  // namespace kintsugi::simulate
