// One operation alone, by its reference kernel in fp64: the claims of its row about splits and sums, on which the
// partitioner relies. Each function returns the problem, "" if there is none.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/kernels/kernel_test_harness.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/mesh/layout.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::tests {

using kernels::test::Tensor;
using tensor::Segment;
using tensor::Shape;
using tensor::Type;

struct RowTrial {
  graph::OpRow row;  // a copy, which tests may alter
  std::string kernel;
  tensor::Attributes attributes;
  std::vector<Type> ins, outs;
  std::vector<std::string> names;  // of the inputs
  tensor::Absent absent = {};

  std::string text() const {
    std::string t = std::string(row.kind) + "(";
    for (const Type& in : ins) t += to_string(in.shape);
    t += ") -> ";
    for (const Type& out : outs) t += to_string(out.shape);
    return t + (attributes.empty() ? "" : "  " + to_string(attributes));
  }
};

// A split of a dim over ranks: the global positions of each.
using Cut = std::vector<std::vector<Segment>>;

inline Cut halves(int64_t n) {
  return {{{0, (n + 1) / 2}}, {{(n + 1) / 2, n / 2}}};
}
// As in causal balance: the ends here, the middle there.
inline Cut zigzag(int64_t n) {
  return {{{0, 1}, {n - 1, 1}}, {{1, n - 2}}};
}
// Two blocks of equal size, more than half each.
inline Cut padded(int64_t n) {
  const int64_t block = n / 2 + 1;
  return {{{0, block}}, {{block, n - block}, {-1, 2 * block - n}}};
}

inline int64_t count(const std::vector<Segment>& segments) {
  return tensor::DimIndex(segments, 0).local();
}

inline Shape resized(const Shape& shape, std::string_view dim, int64_t size) {
  std::vector<tensor::Dim> dims = shape.dims();
  for (tensor::Dim& d : dims)
    if (d.name == dim) d.size = size;
  return Shape(dims);
}

// Calls f(position in the part, position in the whole or -1) for every element of the part of a value.
template <typename F>
void for_each_of_part(const Shape& whole, std::string_view dim, const std::vector<Segment>& segments, F&& f) {
  const auto axis = static_cast<size_t>(whole.find(dim));
  const tensor::DimIndex index(segments, whole[axis].size);
  const int64_t local = index.local(), stride = whole.stride(axis),
                above = whole.elements() / (stride * whole[axis].size);
  for (int64_t a = 0; a < above; ++a)
    for (int64_t i = 0; i < local; ++i)
      for (int64_t b = 0; b < stride; ++b)
        f((a * local + i) * stride + b, index[i] < 0 ? -1 : (a * whole[axis].size + index[i]) * stride + b);
}

// The part of a value along a dim, zero at padding; the value itself if it lacks the dim.
inline Tensor part_of(const Tensor& whole, std::string_view dim, const std::vector<Segment>& segments) {
  if (!whole.type().shape.has(dim)) return whole;
  Tensor part(resized(whole.type().shape, dim, count(segments)), whole.type().dtype);
  for_each_of_part(whole.type().shape, dim, segments,
                   [&](int64_t to, int64_t from) { part.set(to, from < 0 ? 0.0 : whole.get(from)); });
  return part;
}

// Valid operands for the kernel: ids within their vocabulary, nonnegative values under a root.
inline std::vector<Tensor> draw(const RowTrial& t, uint64_t seed, int64_t vocab) {
  std::vector<Tensor> ins;
  for (size_t i = 0; i < t.ins.size(); ++i) {
    const Type& type = t.ins[i];
    const bool flag = type.shape.rank() == 0 && t.row.family == "optimizer";  // factor, finite, updates
    const std::string_view operand = t.row.ins.at(i, t.absent.ins).name;
    if (type.dtype == tensor::DType::i32 && t.attributes.has("capacity") && operand == "slots") {
      // Different slots per sample, some tokens without one.
      const int64_t slots = t.attributes.integer("experts") * t.attributes.integer("capacity"),
                    each = type.shape.elements() / std::max<int64_t>(type.shape[0].size, 1);
      Tensor drawn(type);
      for (int64_t j = 0; j < drawn.elements(); ++j) {
        const int64_t at = j % each;
        drawn.set(j,
                  at % 5 == 4 || at >= slots ? -1.0 : static_cast<double>((at + static_cast<int64_t>(seed)) % slots));
      }
      ins.push_back(std::move(drawn));
    } else if (type.dtype == tensor::DType::i32 && (operand == "text" || operand == "rows" || operand == "at")) {
      ins.push_back(kernels::test::random_integers(type.shape, seed + 100 * i, -1, operand == "at" ? 8 : 2));
    } else if (type.dtype == tensor::DType::i32 && operand == "counts") {
      ins.push_back(kernels::test::random_integers(type.shape, seed + 100 * i, 0, 3));
    } else if (type.dtype == tensor::DType::i32 && operand == "experts") {  // of a token different ones
      Tensor drawn = kernels::test::random_integers(type.shape, seed + 100 * i, 0, 3);
      for (int64_t j = 1; j < drawn.elements(); j += 2) drawn.set(j, static_cast<int64_t>(drawn.get(j - 1) + 1) % 4);
      ins.push_back(std::move(drawn));
    } else if (type.dtype == tensor::DType::i32) {
      const bool classes = t.names[i] == "classes", labels = t.names[i] == "labels";
      const int64_t low = labels || classes ? -1 : 0, high = t.names[i].ends_with("starts") ? 3 : classes ? 2 : vocab;
      ins.push_back(kernels::test::random_integers(type.shape, seed + 100 * i, low, high));
    } else if (flag) {
      ins.push_back(kernels::test::filled(type.shape, type.dtype, 1.0));
    } else {
      ins.push_back(kernels::test::random_tensor(type.shape, type.dtype, seed + 100 * i, 0.1, 1.1));
    }
  }
  return ins;
}

inline kernels::Numbers numbers_of(const RowTrial& t) {
  const bool long_enough = !t.ins.empty() && t.ins[0].shape.has("seq") && t.ins[0].shape.size("seq") > 2;
  return {.seed = 3, .step = 5, .batch_offset = 4, .last = long_enough ? 1 : 0, .learning_rate = 0.01};
}

inline std::vector<Tensor*> by_position(std::vector<Tensor>& there, uint32_t absent) {
  std::vector<Tensor*> pointers;
  for (Tensor& x : there) pointers.push_back(&x);
  return tensor::by_position(std::span<Tensor* const>(pointers), absent, static_cast<Tensor*>(nullptr));
}

// The outputs of one call. `before`: their previous contents, for calls that accumulate; `accumulate` is by position.
struct RowCall {
  std::vector<kernels::NamedIndex> indices = {};
  uint32_t accumulate = 0;
  double before = 0.0;
};

inline std::vector<Tensor> run_row_on(const kernels::KernelSet& set, const RowTrial& t, std::vector<Tensor> ins,
                                      const std::vector<Type>& outs, const RowCall& call = {}) {
  std::vector<Tensor> made;
  for (const Type& type : outs) {
    made.emplace_back(type);
    if (call.accumulate) made.back().fill(call.before);
  }
  const std::vector<Tensor*> in_pointers = by_position(ins, t.absent.ins),
                             out_pointers = by_position(made, t.absent.outs);
  kernels::test::run_kernel(set,
                            {.kind = t.kernel,
                             .attributes = t.attributes,
                             .indices = call.indices,
                             .accumulate = call.accumulate,
                             .numbers = numbers_of(t)},
                            in_pointers, out_pointers);
  return made;
}

inline std::vector<Tensor> run_row(const RowTrial& t, std::vector<Tensor> ins, const std::vector<Type>& outs,
                                   RowCall call = {}) {
  static const auto reference = kernels::reference_kernels();
  return run_row_on(*reference, t, std::move(ins), outs, call);
}

inline std::string difference(const Tensor& got, const Tensor& want, double tolerance = 1e-10) {
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.get(i), w = want.get(i);
    if (g == w || std::abs(g - w) <= tolerance * (0.01 + std::abs(w))) continue;
    return fmt::format("element {} is {}, not {}", i, g, w);
  }
  return "";
}

inline void add_to(Tensor& sum, const Tensor& x, graph::Combiner how) {
  for (int64_t i = 0; i < sum.elements(); ++i) {
    const double a = sum.get(i), b = x.get(i), most = std::max(a, b);
    sum.set(i, how == graph::Combiner::sum   ? a + b
               : how == graph::Combiner::max ? most
                                             : most + std::log(std::exp(a - most) + std::exp(b - most)));
  }
}

// The dim that follows the split of `dim`, if the operation has it.
inline std::optional<tensor::Dim> follower(const RowTrial& t, std::string_view dim) {
  for (const auto& [follows, followed] : t.row.alias)
    for (const auto* list : {&t.ins, &t.outs})
      for (const Type& type : *list)
        if (followed == dim && type.shape.has(follows))
          return tensor::Dim{std::string(follows), type.shape.size(follows)};
  return std::nullopt;
}

// The dims of any operand that the row allows to split.
inline std::set<std::string> splittable(const RowTrial& t) {
  std::set<std::string> dims;
  for (const auto* list : {&t.ins, &t.outs})
    for (const Type& type : *list)
      for (const tensor::Dim& d : type.shape)
        if (d.size > 1) dims.insert(d.name);
  for (std::string_view d : t.row.whole) dims.erase(std::string(d));
  for (const auto& [follows, followed] : t.row.alias) dims.erase(std::string(follows));
  if (!t.row.windowed.empty())
    for (const tensor::DimWindow& w : tensor::windows_of(t.attributes)) dims.erase(tensor::kernel_dim(w.dim));
  for (const std::string& d : tensor::words(t.attributes.text_or("whole", ""))) dims.erase(d);
  return dims;
}

// Whether an operand or output is indexed by input position.
inline bool is_windowed_in(const RowTrial& t, size_t i) {
  return t.row.is_windowed(t.row.ins.at(i, t.absent.ins).name);
}
inline bool is_windowed_out(const RowTrial& t, size_t i) {
  return t.row.is_windowed(t.row.outs.at(i, t.absent.outs).name);
}

// The window of a dim, if the operation has one.
inline std::optional<tensor::Window> window_of(const RowTrial& t, std::string_view dim) {
  if (!t.row.windowed.empty())
    for (const tensor::DimWindow& w : tensor::windows_of(t.attributes))
      if (w.dim == dim) return w.window;
  return std::nullopt;
}

// The number of output positions of a dim with a window.
inline int64_t size_of_dim(const RowTrial& t, const std::string& dim) {
  const bool window = window_of(t, dim).has_value();
  for (size_t i = 0; i < t.ins.size(); ++i)
    if (t.ins[i].shape.has(dim) && !(window && is_windowed_in(t, i))) return t.ins[i].shape.size(dim);
  for (size_t i = 0; i < t.outs.size(); ++i)
    if (t.outs[i].shape.has(dim) && !(window && is_windowed_out(t, i))) return t.outs[i].shape.size(dim);
  return 0;
}

// The same split of a dim of another size; none if it is not at multiples of these.
inline std::optional<Cut> scaled(const Cut& cut, int64_t size, int64_t other) {
  Cut made = cut;
  for (std::vector<Segment>& segments : made)
    for (Segment& s : segments) {
      if (s.global < 0 || s.global * other % size != 0 || s.count * other % size != 0) return std::nullopt;
      s = {s.global * other / size, s.count * other / size};
    }
  return made;
}

// Runs the operation on each part and combines its outputs according to the row: concatenated along the dim, or
// reduced. A dim that follows it is split alike; cuts within its positions are not checked.
inline std::string check_split(const RowTrial& t, const std::string& dim, const Cut& cut,
                               const std::vector<Tensor>& ins, const std::vector<Tensor>& whole) {
  const int64_t size = size_of_dim(t, dim);
  struct Along {
    std::string dim;
    int64_t size;
    Cut cut;
  };
  std::vector<Along> along = {{dim, size, cut}};
  if (const std::optional<tensor::Dim> other = follower(t, dim)) {
    const std::optional<Cut> cut_alike = scaled(cut, size, other->size);
    if (!cut_alike) return "";
    along.push_back({other->name, other->size, *cut_alike});
  }
  std::vector<Tensor> joined;
  for (size_t rank = 0; rank < cut.size(); ++rank) {
    std::vector<Tensor> parts = ins;
    std::vector<Type> types = t.outs;
    RowCall call;
    for (const Along& a : along) {
      for (Tensor& x : parts) x = part_of(x, a.dim, a.cut[rank]);
      for (Type& type : types) type.shape = resized(type.shape, a.dim, count(a.cut[rank]));
      call.indices.push_back({a.dim, tensor::DimIndex(a.cut[rank], a.size)});
    }
    const std::vector<Tensor> outs = run_row(t, parts, types, call);
    for (size_t j = 0; j < outs.size(); ++j) {
      const Shape& shape = t.outs[j].shape;
      const auto split = std::ranges::find_if(along, [&](const Along& a) { return shape.has(a.dim); });
      if (rank == 0) joined.push_back(split != along.end() ? Tensor(t.outs[j]) : outs[j]);
      if (split != along.end()) {
        for_each_of_part(shape, split->dim, split->cut[rank], [&](int64_t from, int64_t to) {
          if (to >= 0) joined[j].set(to, outs[j].get(from));
        });
      } else if (rank > 0) {
        add_to(joined[j], outs[j], t.row.combiner(t.row.outs.at(j, t.absent.outs).name));
      }
    }
  }
  for (size_t j = 0; j < whole.size(); ++j)
    if (const std::string d = difference(joined[j], whole[j]); !d.empty())
      return fmt::format("{}: split along {}, output {}: {}", t.text(), dim, j, d);
  return "";
}

// One rank's part of an operation split along a dim with a window: its range of outputs, and the inputs within their
// windows, without the operation's padding.
struct WindowPart {
  RowTrial local;
  std::vector<Tensor> ins;
  std::vector<Type> outs;
  std::vector<tensor::DimIndex> of_outs;  // of the dim
  std::vector<kernels::NamedIndex> indices;
};

inline WindowPart window_part(const RowTrial& t, const std::string& dim, int ranks, int rank,
                              const std::vector<Tensor>& ins) {
  const tensor::Window window = *window_of(t, dim);
  const int64_t outputs = size_of_dim(t, dim);
  const mesh::Mesh mesh({{.name = "ranks", .size = ranks}});
  const std::vector<mesh::Factor> factors = mesh.expand(std::vector<std::string>{"ranks"});
  const mesh::Halo halo = {.outputs = outputs, .stride = window.stride, .extent = window.extent(), .low = window.low};
  WindowPart part = {.local = t, .ins = {}, .outs = t.outs, .of_outs = {}, .indices = {}};
  std::vector<tensor::DimWindow> windows = tensor::windows_of(t.attributes);
  for (tensor::DimWindow& w : windows)
    if (w.dim == dim) w.window.low = w.window.high = 0;
  set_windows(part.local.attributes, windows);

  const tensor::DimIndex plain = mesh::local_index(mesh, dim, outputs, factors, rank);
  const auto index_of = [&](bool windowed, const Shape& shape) {
    return windowed && shape.has(dim) ? mesh::local_index(mesh, dim, shape.size(dim), factors, rank, &halo) : plain;
  };
  part.indices = {{dim, plain}};
  for (size_t i = 0; i < ins.size(); ++i) {
    const tensor::DimIndex index = index_of(is_windowed_in(t, i), ins[i].type().shape);
    part.ins.push_back(part_of(ins[i], dim, index.segments()));
    if (is_windowed_in(t, i) && part.indices.size() == 1) part.indices.push_back({dim, index, true});
  }
  for (size_t j = 0; j < part.outs.size(); ++j) {
    part.of_outs.push_back(index_of(is_windowed_out(t, j), part.outs[j].shape));
    if (is_windowed_out(t, j) && part.indices.size() == 1) part.indices.push_back({dim, part.of_outs[j], true});
    part.outs[j].shape = resized(part.outs[j].shape, dim, part.of_outs[j].local());
  }
  return part;
}

// The same for a dim with a window; `run` computes the parts.
template <typename Run>
std::string check_window_split(const RowTrial& t, const std::string& dim, int ranks, const std::vector<Tensor>& ins,
                               const std::vector<Tensor>& whole, const Run& run, double tolerance = 1e-10) {
  std::vector<Tensor> joined;
  for (const Type& type : t.outs) joined.emplace_back(type).fill(0.0);
  for (int rank = 0; rank < ranks; ++rank) {
    const WindowPart part = window_part(t, dim, ranks, rank, ins);
    const std::vector<Tensor> outs = run(part.local, part.ins, part.outs, {.indices = part.indices});
    for (size_t j = 0; j < outs.size(); ++j) {
      const Shape& shape = t.outs[j].shape;
      if (!shape.has(dim)) {
        if (rank == 0) joined[j] = outs[j];
        if (rank > 0) add_to(joined[j], outs[j], t.row.combiner(t.row.outs.at(j, t.absent.outs).name));
        continue;
      }
      const bool adds = is_windowed_out(t, j);
      for_each_of_part(shape, dim, part.of_outs[j].segments(), [&](int64_t from, int64_t to) {
        if (to >= 0) joined[j].set(to, outs[j].get(from) + (adds ? joined[j].get(to) : 0.0));
      });
    }
  }
  for (size_t j = 0; j < whole.size(); ++j)
    if (const std::string d = difference(joined[j], whole[j], tolerance); !d.empty())
      return fmt::format("{}: split along {} over {} ranks, output {}: {}", t.text(), dim, ranks, j, d);
  return "";
}

// f(a + b) = f(a) + f(b), where `held` operands keep their values. Integers are always held.
inline std::string check_sum(const RowTrial& t, const std::vector<bool>& held, int64_t vocab) {
  const std::vector<Tensor> a = draw(t, 1, vocab), drawn = draw(t, 2, vocab);
  std::vector<Tensor> b = a, both = a;
  for (size_t i = 0; i < a.size(); ++i) {
    if (held[i] || !tensor::is_floating(a[i].type().dtype)) continue;
    b[i] = drawn[i];
    add_to(both[i], b[i], graph::Combiner::sum);
  }
  const std::vector<Tensor> right = run_row(t, both, t.outs), fb = run_row(t, b, t.outs);
  std::vector<Tensor> got = run_row(t, a, t.outs);
  for (size_t j = 0; j < got.size(); ++j) {
    add_to(got[j], fb[j], graph::Combiner::sum);
    if (const std::string d = difference(got[j], right[j]); !d.empty())
      return fmt::format("{}: a sum of operands, output {}: {}", t.text(), j, d);
  }
  return "";
}

}  // namespace kintsugi::tests
