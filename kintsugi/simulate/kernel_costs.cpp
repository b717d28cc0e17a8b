#include "kintsugi/simulate/kernel_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"
#include "kintsugi/simulate/kernel_kind.h"

namespace kintsugi::simulate {

using program::Instruction;
using program::Program;
using tensor::DType;
using tensor::Shape;

double KernelCosts::bytes(double bytes) const {
  const Device& d = cluster_.device;
  return bytes == 0 ? 0 : d.kernel_start + bytes / (d.memory_bandwidth * d.memory_share);
}

double KernelCosts::product(const ProductSize& size, DType dtype, double units) const {
  return tiled(size, cluster_.peak(dtype) * cluster_.products.share, static_cast<double>(tensor::size_of(dtype)),
               units);
}

double KernelCosts::product_fp8(const ProductSize& size, double units) const {
  if (cluster_.device.peak_fp8 == 0)
    throw base::UserError("cluster", "{}: peak.fp8 is missing, and {} computes products in fp8", cluster_.path,
                          software_.name);
  const Products& products = cluster_.products;
  const double share = products.share_fp8 > 0 ? products.share_fp8 : products.share;
  return tiled(size, cluster_.device.peak_fp8 * share, 1, units);
}

// rate: FLOP/s of all multiprocessors. element: bytes per operand element; results have at least two.
double KernelCosts::tiled(const ProductSize& size, double rate, double element, double units) const {
  const Products& products = cluster_.products;
  const Device& d = cluster_.device;
  const double by_unit = rate / d.units;
  double best = std::numeric_limits<double>::max();
  for (const Tile& tile : products.tiles) {
    const auto rows = static_cast<double>(tile.rows), columns = static_cast<double>(tile.columns);
    const double tiles = std::ceil(size.rows / rows) * std::ceil(size.columns / columns) * size.times;
    const double waves = std::ceil(tiles / (d.units - units));
    // A tile reads (rows + columns) elements from the cache per step of depth.
    const double read = d.cache_bandwidth / d.units * 2 * rows * columns / ((rows + columns) * element);
    const double reached = d.cache_bandwidth == 0 ? by_unit : std::min(by_unit, read);
    best = std::min(best, waves * 2 * rows * columns * (size.depth + products.depth) / reached);
  }
  // Operands and result are transferred at least once.
  const double moved = size.times * ((size.rows + size.columns) * size.depth * element +
                                     size.rows * size.columns * std::max(element, 2.0));
  return products.start + std::max(best, moved / (d.memory_bandwidth * d.memory_share));
}

double KernelCosts::contract(const Program& p, const Arranged& arranged) const {
  const Instruction& i = arranged.first != nullptr ? *arranged.first : *arranged.instruction;
  const tensor::Type &a = p.buffer(i.ins[0]).type, &b = p.buffer(i.ins[1]).type;
  const ProductSize size =
      arranged.product ? *arranged.product : product_size(a.shape, b.shape, p.buffer(i.outs[0]).type.shape);
  // A separate addition reads two gradients and writes one, in the type of the weights.
  const double added =
      software_.adds_gradients && i.accumulate != 0
          ? bytes(3.0 * size.rows * size.columns * size.times * static_cast<double>(tensor::size_of(a.dtype)))
          : 0;
  if (arranged.fp8) return product_fp8(size, arranged.units) + bytes(arranged.cast_bytes) + added;
  return product(size, a.dtype, arranged.units) + added;
}

// Of the software's attention kernels, as far as the cluster's file has them.
double KernelCosts::share_of_attention(bool backward) const {
  const Attention& a = cluster_.attention;
  double share = 0;
  if (software_.attention == AttentionKernels::triton) share = backward ? a.triton_backward : a.triton_forward;
  if (software_.attention == AttentionKernels::flash2) share = backward ? a.flash2_backward : a.flash2_forward;
  if (share > 0) return share;
  return backward ? a.backward : a.forward;
}

// Without fused attention: matmuls per head, between them a softmax that reads and writes each score once, and dropout
// with a mask of one byte.
double KernelCosts::attention(const Program& p, const Instruction& i, bool backward) const {
  const tensor::Type &q = p.buffer(i.ins[0]).type, &k = p.buffer(i.ins[1]).type;
  if (software_.fused_attention) {
    return cluster_.products.start + i.cost.flops / (cluster_.peak(q.dtype) * share_of_attention(backward));
  }
  const auto depth = static_cast<double>(q.shape.size("head_dim"));
  const auto rows = static_cast<double>(q.shape.size("seq")), columns = static_cast<double>(k.shape.size("key_seq"));
  const double heads = static_cast<double>(q.shape.elements()) / (depth * rows);
  const double scores = heads * rows * columns, size = static_cast<double>(tensor::size_of(q.dtype));
  // If the size of a head is not a multiple of 16 bytes, cuBLAS does not use tensor cores (NVIDIA, "Matrix
  // Multiplication Background", 2022, requirements to use Tensor Cores): BLOOM's heads of 108.
  const DType multiplied = size < 4 && std::fmod(depth * size, 16) != 0 ? DType::f32 : q.dtype;
  const double of_scores = product({.rows = rows, .columns = columns, .depth = depth, .times = heads}, multiplied);
  const double of_values = product({.rows = rows, .columns = depth, .depth = columns, .times = heads}, multiplied);
  const bool drops = i.attributes.number_or("dropout", 0) > 0;
  const double dropout = drops ? bytes(scores * (2 * size + 1)) : 0;
  // One copy transposes heads and sequence of the result; another joins the gradients of query, key and value.
  const double result = static_cast<double>(q.shape.elements()) * size;
  if (!backward) return of_scores + of_values + bytes(scores * 2 * size) + dropout + bytes(2 * result);
  return of_scores + 3 * of_values + bytes(scores * 3 * size) + dropout + bytes(2 * result) + bytes(6 * result);
}

// The logits are computed once or twice, and used for one or two gradients.
double KernelCosts::head(const Program& p, const Instruction& i) const {
  const tensor::Type &x = p.buffer(i.ins[0]).type, &table = p.buffer(i.ins[1]).type;
  const auto depth = static_cast<double>(x.shape.size("embed"));
  const ProductSize logits = {.rows = static_cast<double>(x.shape.elements()) / depth,
                              .columns = static_cast<double>(table.shape.size("vocab")),
                              .depth = depth};
  double seconds = 0;
  const double products = std::round(i.cost.flops / logits.flops());
  const ProductSize forms[] = {logits,
                               {.rows = logits.rows, .columns = logits.depth, .depth = logits.columns},
                               {.rows = logits.columns, .columns = logits.depth, .depth = logits.rows}};
  const KernelKind kind = kind_of(i);
  const int first = kind == KernelKind::head_grad && products < 3 ? 1 : 0;
  for (int n = 0; n < static_cast<int>(products); ++n) seconds += product(forms[(first + n) % 3], x.dtype);
  // Passes over logits: a blocked kernel reads and writes each twice; otherwise each step from the cast to fp32 to the
  // gradient is a kernel.
  const double elements = logits.rows * logits.columns;
  const double share = kind == KernelKind::head_with_grad ? 1 : 0.5;
  const double passes =
      software_.fused_loss ? 4.0 * static_cast<double>(tensor::size_of(x.dtype)) : software_.logit_bytes;
  return seconds + bytes(share * passes * elements);
}

// A matmul per expert, with its mean number of tokens as rows.
double KernelCosts::grouped(const Program& p, const Instruction& i) const {
  const Shape &a = p.buffer(i.ins[0]).type.shape, &b = p.buffer(i.ins[1]).type.shape,
              &y = p.buffer(i.outs[0]).type.shape;
  const bool of_weights = !y.has("slot");
  const auto last = [](const Shape& shape) { return static_cast<double>(shape.dims().back().size); };
  const double experts = static_cast<double>(a.size("expert")), depth = last(a), columns = last(of_weights ? b : y);
  const double rows = i.cost.flops / (2.0 * depth * columns * experts);
  const ProductSize size = of_weights ? ProductSize{.rows = depth, .columns = columns, .depth = rows, .times = experts}
                                      : ProductSize{.rows = rows, .columns = columns, .depth = depth, .times = experts};
  return product(size, p.buffer(i.ins[0]).type.dtype);
}

// Convolutions: their operations at the rate of matmuls, and at least their bytes.
double KernelCosts::other_product(const Program& p, const Instruction& i) const {
  const Device& d = cluster_.device;
  const double rate = cluster_.peak(p.buffer(i.ins[0]).type.dtype) * cluster_.products.share;
  const double moved = i.cost.memory_bytes / (d.memory_bandwidth * d.memory_share);
  return cluster_.products.start + std::max(i.cost.flops / rate, moved);
}

Class KernelCosts::class_of(const Arranged& a) {
  return a.product ? Class::product : a.instruction->cost.cost_class;
}

KernelTime KernelCosts::of(const Program& p, const Arranged& a) const {
  KernelTime time = alone(p, a);
  if (a.instruction->launch != 0 || !software_.groups_launches) return time;
  const double start = time.of == Class::other ? cluster_.device.kernel_start : cluster_.products.start;
  time.seconds = std::max(0.0, time.seconds - start);
  return time;
}

KernelTime KernelCosts::alone(const Program& p, const Arranged& a) const {
  const Instruction& i = *a.instruction;
  if (a.elsewhere) return {};
  if (!a.product && a.more_bytes == 0 && !cluster_.measured.kernels.empty())
    if (const auto seconds = cluster_.measured.kernel_seconds(key_of(p, i))) return {class_of(a), *seconds};
  if (a.product) return {Class::product, contract(p, a)};
  double more = a.more_bytes;
  switch (kind_of(i)) {
    case KernelKind::contract:
      return {Class::product, contract(p, a)};
    case KernelKind::grouped:
      return {Class::product, grouped(p, i)};
    case KernelKind::attention:
      return {Class::attention, attention(p, i, false)};
    case KernelKind::attention_grad:
      return {Class::attention, attention(p, i, true)};
    case KernelKind::head:
    case KernelKind::head_grad:
    case KernelKind::head_with_grad:
      return {Class::product, head(p, i)};
    case KernelKind::adamw:
      more += software_.update_bytes * static_cast<double>(p.buffer(i.ins[0]).type.shape.elements());
      break;
    default:
      break;
  }
  if (i.cost.cost_class == Class::product) return {Class::product, other_product(p, i)};
  return {Class::other, bytes(i.cost.memory_bytes + more)};
}

}  // namespace kintsugi::simulate
