#include "kintsugi/kernels/reference/values.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::kernels::reference {
namespace {

// Rounds to odd, so that a second rounding to fewer bits equals a single rounding (Boldo, Melquiond 2008, "Emulation of
// FMA and correctly rounded sums", section 3).
float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || !std::isfinite(nearest)) return nearest;
  if (std::bit_cast<uint32_t>(nearest) & 1u) return nearest;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return std::nextafter(nearest, x > static_cast<double>(nearest) ? kInfinity : -kInfinity);
}

template <typename T>
T rounded(double x) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return static_cast<T>(x);
  } else {
    return T(round_to_odd(x));
  }
}

template <typename T>
double widened(T x) {
  return static_cast<double>(static_cast<tensor::arithmetic_t<T>>(x));
}

}  // namespace

std::vector<double> load(const View& x) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(x.elements()));
  if (x.dtype() == tensor::DType::i8) {
    const std::span<const int8_t> codes = x.as<int8_t>();
    return {codes.begin(), codes.end()};
  }
  tensor::dispatch(x.dtype(), [&]<typename T>(T) {
    for (T element : x.as<T>()) values.push_back(widened(element));
  });
  return values;
}

std::vector<int64_t> load_integers(const View& x) {
  base::require(x.dtype() == tensor::DType::i32, "kernel", "integers are int32, not {}", name_of(x.dtype()));
  const auto elements = x.as<int32_t>();
  return {elements.begin(), elements.end()};
}

double load_scalar(const View& x) {
  base::require(x.elements() == 1, "kernel", "{} is no scalar", to_string(x.shape()));
  return load(x)[0];
}

std::vector<double> load_scaled(const View& x, const View& scale) {
  std::vector<double> values = load(x);
  if (!scale.data) return values;
  const std::vector<double> factors = load(scale);
  const std::vector<int64_t> at = offsets(x.shape(), scale.shape());
  for (size_t i = 0; i < values.size(); ++i) values[i] *= factors[static_cast<size_t>(at[i])];
  return values;
}

Loaded load_columns(const KernelCall& call, const View& x, const Shape& y) {
  if (!call.attributes.has("first")) return {x.shape(), load(x)};
  std::vector<tensor::Dim> dims = x.shape().dims();
  const int64_t first = call.attributes.integer("first"), all = dims.back().size, count = y.size(dims.back().name);
  base::require(first >= 0 && first + count <= all, "reference", "{} columns from {} on of {}", count, first, all);
  dims.back().size = count;
  const std::vector<double> whole = load(x);
  std::vector<double> elements;
  for (int64_t row = 0; row < rows(x.shape()); ++row)
    elements.insert(elements.end(), whole.begin() + row * all + first, whole.begin() + row * all + first + count);
  return {Shape(dims), std::move(elements)};
}

void store(const KernelCall& call, size_t output, std::span<const double> values) {
  const View& y = call.outs[output];
  base::require(static_cast<int64_t>(values.size()) == y.elements(), "kernel", "{} values for output {} of {}",
                values.size(), output, to_string(y.shape()));
  const bool add = call.accumulates(output);
  tensor::dispatch(y.dtype(), [&]<typename T>(T) {
    const std::span<T> elements = y.as<T>();
    for (size_t i = 0; i < values.size(); ++i) {
      elements[i] = rounded<T>(add ? widened(elements[i]) + values[i] : values[i]);
    }
  });
}

std::vector<int64_t> offsets(const Shape& over, const Shape& shape) {
  std::vector<int64_t> table = {0};
  for (const tensor::Dim& dim : over) {
    const int64_t step = stride(shape, dim.name);
    std::vector<int64_t> longer;
    longer.reserve(table.size() * static_cast<size_t>(dim.size));
    for (int64_t begin : table) {
      for (int64_t i = 0; i < dim.size; ++i) longer.push_back(begin + i * step);
    }
    table = std::move(longer);
  }
  return table;
}

int64_t stride(const Shape& shape, std::string_view dim) {
  const int position = shape.find(dim);
  return position < 0 ? 0 : shape.stride(static_cast<size_t>(position));
}

int64_t width(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1].size;
}

int64_t rows(const Shape& shape) {
  return shape.elements() == 0 ? 0 : shape.elements() / width(shape);
}

std::vector<int64_t> global_of_local(const DimIndex& index) {
  std::vector<int64_t> table;
  for (const tensor::Segment& segment : index.segments()) {
    for (int64_t i = 0; i < segment.count; ++i) table.push_back(segment.global < 0 ? -1 : segment.global + i);
  }
  return table;
}

std::vector<int64_t> local_of_global(const DimIndex& index) {
  std::vector<int64_t> table(static_cast<size_t>(index.whole()), -1);
  int64_t local = 0;
  for (int64_t global : global_of_local(index)) {
    if (global >= 0) table.at(static_cast<size_t>(global)) = local;
    ++local;
  }
  return table;
}

std::vector<int64_t> positions_in_whole(const KernelCall& call, const Shape& shape) {
  std::vector<int64_t> table = {0};
  for (const tensor::Dim& dim : shape) {
    const DimIndex& index = call.index(dim.name);
    const std::vector<int64_t> global = global_of_local(index);
    const int64_t first = dim.name == "batch" ? call.numbers.batch_offset : 0;
    std::vector<int64_t> longer;
    longer.reserve(table.size() * global.size());
    for (int64_t begin : table) {
      for (int64_t i : global) longer.push_back(begin < 0 || i < 0 ? -1 : begin * index.whole() + first + i);
    }
    table = std::move(longer);
  }
  return table;
}

DropoutMask::DropoutMask(const KernelCall& call, double p, std::string_view key)
    : key_(random_key(call.numbers.seed, key)), step_(static_cast<uint64_t>(call.numbers.step)), p_(p) {}

double DropoutMask::operator()(int64_t position) const {
  if (p_ == 0) return 1;
  const uint32_t word = random_word(key_, step_, static_cast<uint64_t>(position));
  return word >= dropout_threshold(p_) ? 1 / (1 - p_) : 0;
}

}  // namespace kintsugi::kernels::reference
