#include "kintsugi/config/catalog.h"

#include <algorithm>

namespace kintsugi::config {
namespace {

template <typename Row>
const Row* named(std::span<const Row> rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

int64_t FfnWidth::of(int64_t embed) const {
  const int64_t step = per * multiple;
  return (embed * times + step - 1) / step * multiple;
}

const Family* Catalog::family(std::string_view name) const {
  return named(families, name);
}

const NamedSize* Catalog::size(std::string_view name) const {
  return named(sizes, name);
}

const Optimizer* Catalog::optimizer(std::string_view name) const {
  return named(optimizers, name);
}

}  // namespace kintsugi::config
