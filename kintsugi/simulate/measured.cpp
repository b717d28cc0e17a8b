#include "kintsugi/simulate/measured.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "kintsugi/simulate/kernel_kind.h"

namespace kintsugi::simulate {
namespace {

constexpr size_t kNeighbours = 4;  // measured matmuls from which an unknown size is estimated

// FLOPs per byte above which a kernel is bound by arithmetic.
constexpr double kArithmetic = 8;

double work_of(const KernelKey& key, bool arithmetic) {
  return arithmetic ? key.flops : key.bytes;
}

bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-3 * std::max(std::abs(a), std::abs(b));
}

bool is_same(const KernelKey& a, const KernelKey& b) {
  if (a.kernel != b.kernel || a.type != b.type || a.form != b.form || a.size.has_value() != b.size.has_value())
    return false;
  if (a.size && *a.size != *b.size) return false;
  return is_near(a.flops, b.flops) && is_near(a.bytes, b.bytes);
}

// The distance between two matmuls, in factors of e along each of their sizes.
double distance(const KernelKey& a, const KernelKey& b) {
  const ProductSize &x = *a.size, &y = *b.size;
  double sum = a.form == b.form ? 0 : 0.25;
  for (const auto& [p, q] : {std::pair(x.rows, y.rows), {x.columns, y.columns}, {x.depth, y.depth}, {x.times, y.times}})
    sum += std::pow(std::log(p / q), 2);
  return std::sqrt(sum);
}

// The mean rate of the nearest, weighted by proximity.
double by_rate(std::vector<std::pair<double, double>>& rates, double flops) {
  const size_t n = std::min(kNeighbours, rates.size());
  std::ranges::partial_sort(rates, rates.begin() + static_cast<std::ptrdiff_t>(n));
  double sum = 0, weights = 0;
  for (const auto& [far, rate] : std::span(rates).first(n)) {
    const double weight = 1 / (far * far + 1e-3);
    sum += weight * std::log(rate), weights += weight;
  }
  return flops / std::exp(sum / weights);
}

// Log-log interpolation between neighbors; beyond them at their rate, but no less than `least`.
double between(std::vector<std::pair<double, double>>& points, double at, double least) {
  std::ranges::sort(points);
  if (at <= points.front().first) return std::max(least, points.front().second * at / points.front().first);
  if (at >= points.back().first) return points.back().second * at / points.back().first;
  const auto above = std::ranges::upper_bound(points, at, {}, &std::pair<double, double>::first);
  const auto [x0, y0] = *(above - 1);
  const auto [x1, y1] = *above;
  const double share = std::log(at / x0) / std::log(x1 / x0);
  return std::exp((1 - share) * std::log(y0) + share * std::log(y1));
}

}  // namespace

KernelKey key_of(const program::Program& p, const program::Instruction& i) {
  const tensor::Type& first = p.buffer(i.ins.empty() ? i.outs[0] : i.ins[0]).type;
  KernelKey key = {.kernel = i.kernel, .type = first.dtype, .flops = i.cost.flops, .bytes = i.cost.memory_bytes};
  if (kind_of(i) != KernelKind::contract) return key;
  const tensor::Shape &a = first.shape, &b = p.buffer(i.ins[1]).type.shape;
  key.size = product_size(a, b, p.buffer(i.outs[0]).type.shape);
  key.form = product_form(a, b);
  return key;
}

const MeasuredKernel* Measured::find(const KernelKey& key) const {
  const auto found = std::ranges::find_if(kernels, [&](const MeasuredKernel& m) { return is_same(m.key, key); });
  return found == kernels.end() ? nullptr : &*found;
}

std::optional<double> Measured::kernel_seconds(const KernelKey& key) const {
  if (const MeasuredKernel* found = find(key)) return found->seconds;
  const bool arithmetic = key.flops > kArithmetic * key.bytes;
  double least = std::numeric_limits<double>::max();  // of any kernel
  for (const MeasuredKernel& m : kernels) least = std::min(least, m.seconds);
  std::vector<std::pair<double, double>> like;  // by distance, rates of matmuls; by work, times of others
  for (const MeasuredKernel& m : kernels) {
    if (m.key.kernel != key.kernel || m.key.type != key.type || m.key.size.has_value() != key.size.has_value())
      continue;
    if (key.size) {
      like.emplace_back(distance(m.key, key), m.key.flops / m.seconds);
    } else if (work_of(m.key, arithmetic) > 0) {
      like.emplace_back(work_of(m.key, arithmetic), m.seconds);
    }
  }
  if (like.empty()) return std::nullopt;
  return key.size ? by_rate(like, key.flops) : between(like, std::max(1.0, work_of(key, arithmetic)), least);
}

std::optional<double> Measured::transfer_seconds(program::Collective collective, int ranks, double bytes) const {
  std::vector<std::pair<double, double>> points;
  for (const MeasuredTransfer& m : transfers)
    if (m.collective == collective && m.ranks == ranks) points.emplace_back(m.bytes, m.seconds);
  if (points.empty()) return std::nullopt;
  // Lower bound: the time of the fewest bytes.
  const double least = std::ranges::min_element(points)->second;
  return between(points, std::max(1.0, bytes), least);
}

void Measured::add(const MeasuredKernel& kernel) {
  const auto found = std::ranges::find_if(kernels, [&](const MeasuredKernel& m) { return is_same(m.key, kernel.key); });
  found == kernels.end() ? kernels.push_back(kernel) : void(*found = kernel);
}

void Measured::add(const MeasuredTransfer& t) {
  const auto found = std::ranges::find_if(transfers, [&](const MeasuredTransfer& m) {
    return m.collective == t.collective && m.ranks == t.ranks && is_near(m.bytes, t.bytes);
  });
  found == transfers.end() ? transfers.push_back(t) : void(*found = t);
}

}  // namespace kintsugi::simulate
