// Winograd's algorithm where it applies. Otherwise divides samples among the threads, each of which calls the library
// for its own. Each thread has a part of the weight gradient; parts are added in the order of threads.
//
// Of an output that two calls share (tensor::OutputPart) each computes ranges of rows, positions of the first windowed
// dim: those of a sample are contiguous, and the library computes them sample by sample.
#include <algorithm>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/convolution_library.h"
#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/cpu/winograd.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::cpu {
namespace {

using base::Range;
using tensor::DType;
using tensor::View;

// Positions of x, the weights and y among the operands, or the output (then `made` is another).
struct Roles {
  ConvolutionPass pass;
  size_t first, second;  // of the operands: which of x 0, weights 1, y 2 they are
  size_t made;
};
constexpr Roles kForward = {ConvolutionPass::forward, 0, 1, 2}, kInput = {ConvolutionPass::input, 2, 1, 0},
                kWeight = {ConvolutionPass::weight, 0, 2, 1};

// By role.
template <typename T>
std::array<T, 3> by_role(const Roles& roles, T first, T second, T made) {
  std::array<T, 3> list = {};
  list[roles.first] = first, list[roles.second] = second, list[roles.made] = made;
  return list;
}

// Memory of a call: fp32 copies of narrower operands, by role, otherwise null. Either that of Winograd's algorithm; or
// packed weights, or a part of their gradient per thread, and scratch per thread.
struct Memory {
  std::array<float*, 3> wide = {};
  float* winograd = nullptr;
  float* packed = nullptr;
  std::byte* scratch = nullptr;
  int64_t packed_size = 0, scratch_size = 0;  // per thread, in floats and bytes
};

int64_t aligned(int64_t n) {
  return (n + 63) / 64 * 64;
}

// The rows that a call computes; one range, of all rows, unless the call has a part. Empty ranges are left out.
class RowRanges {
 public:
  RowRanges(const ConvolutionSizes& sizes, const tensor::Attributes& attributes) {
    const std::optional<tensor::OutputPart> part = tensor::output_part(attributes);
    is_part_ = part.has_value();
    if (!part) {
      ranges_[size_++] = {{0, sizes.in[0]}, {0, sizes.out[0]}};
      return;
    }
    for (const auto& [begin, end] : part->ranges(sizes.out[0]))
      if (begin < end) ranges_[size_++] = rows_of(sizes, {begin, end});
  }

  bool is_part() const { return is_part_; }
  size_t size() const { return size_; }
  const ConvolutionRows& operator[](size_t i) const { return ranges_[i]; }
  std::span<const ConvolutionRows> all() const { return {ranges_.data(), size_}; }

 private:
  std::array<ConvolutionRows, 2> ranges_ = {};
  size_t size_ = 0;
  bool is_part_ = false;
};

int64_t samples_of_thread(const ConvolutionSizes& sizes, int threads) {
  return (sizes.samples + threads - 1) / threads;
}

ConvolutionSizes of_thread(ConvolutionSizes sizes, int threads) {
  sizes.samples = samples_of_thread(sizes, threads);
  return sizes;
}

Memory take(const ConvolutionSizes& sizes, const RowRanges& rows, const std::array<const tensor::Type*, 3>& types,
            int threads, Scratch& scratch) {
  Memory m;
  for (size_t i = 0; i < 3; ++i)
    if (types[i]->dtype != DType::f32) m.wide[i] = scratch.take<float>(types[i]->shape.elements());
  const bool parts = sizes.pass == ConvolutionPass::weight;
  // The gradient in the caller's order, if it is accumulated or rounded.
  if (parts && !m.wide[1]) m.wide[1] = scratch.take<float>(sizes.weights());
  if (is_winograd(sizes)) {
    m.winograd = scratch.take<float>(winograd_scratch(sizes, threads));
    return m;
  }
  if (rows.is_part()) {
    const ConvolutionSizes first = of_rows(sizes, rows[0]);
    m.packed_size = aligned(library_convolution(first).packed);
    for (const ConvolutionRows& r : rows.all())
      m.scratch_size = std::max(m.scratch_size, aligned(library_convolution(of_rows(sizes, r), first).scratch));
    m.packed = scratch.take<float>(m.packed_size);
    m.scratch = scratch.take<std::byte>(m.scratch_size * threads);
    return m;
  }
  const Convolution& library = library_convolution(of_thread(sizes, threads));
  m.packed_size = aligned(library.packed);
  m.scratch_size = aligned(library.scratch);
  const int64_t smaller = sizes.samples / threads;  // its scratch may be larger
  if (smaller > 0) {
    ConvolutionSizes fewer = sizes;
    fewer.samples = smaller;
    m.scratch_size = std::max(m.scratch_size, aligned(library_convolution(fewer, of_thread(sizes, threads)).scratch));
  }
  m.packed = scratch.take<float>(m.packed_size * (parts ? threads : 1));
  m.scratch = scratch.take<std::byte>(m.scratch_size * threads);
  return m;
}

void add_to(float* sum, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

// Where the gradient of the weights is computed in fp32, and its storing or accumulation from there.
float* gradient_of(const KernelCall& call, const Memory& m) {
  const View& dw = call.outs[0];
  return dw.dtype() == DType::f32 && !call.accumulates(0) ? reinterpret_cast<float*>(dw.data) : m.wide[1];
}
void store_gradient(const KernelCall& call, const float* plain) {
  const View& dw = call.outs[0];
  if (reinterpret_cast<const std::byte*>(plain) != dw.data)
    narrow(dw.dtype(), plain, dw.data, dw.elements(), call.accumulates(0));
}

// Adds the threads' parts.
void finish_weight(const KernelCall& call, const ConvolutionSizes& sizes, const Memory& m, int parts) {
  call.team.for_shares(m.packed_size, 1024, [&](Range r, int) {
    for (int t = 1; t < parts; ++t) add_to(m.packed + r.begin, m.packed + t * m.packed_size + r.begin, r.size());
  });
  float* plain = gradient_of(call, m);
  library_convolution(of_thread(sizes, call.team.size())).unpack(m.packed, plain);
  store_gradient(call, plain);
}

// data: x, weights and y.
void run_library(const KernelCall& call, const ConvolutionSizes& sizes, const Memory& m,
                 const std::array<float*, 3>& data) {
  const int threads = call.team.size();
  const ConvolutionSizes most = of_thread(sizes, threads);
  if (sizes.pass != ConvolutionPass::weight) library_convolution(most).pack(data[1], m.packed);
  const int64_t x_step = sizes.x_elements(), y_step = sizes.y_elements();
  int parts = 0;
  for (int t = 0; t < threads; ++t) parts += base::share(sizes.samples, t, threads).size() > 0;
  // Empty shares lie between others, so a thread's index differs from that of its part.
  const auto part_of = [&](int thread) {
    int part = 0;
    for (int t = 0; t < thread; ++t) part += base::share(sizes.samples, t, threads).size() > 0;
    return part;
  };
  call.team.run([&](int thread) {
    const Range mine = base::share(sizes.samples, thread, threads);
    if (mine.size() == 0) return;
    float* weights = m.packed + (sizes.pass == ConvolutionPass::weight ? part_of(thread) * m.packed_size : 0);
    ConvolutionSizes own = sizes;
    own.samples = mine.size();
    library_convolution(own, most).run(data[0] + mine.begin * x_step, weights, data[2] + mine.begin * y_step,
                                       m.scratch + thread * m.scratch_size);
  });
  if (sizes.pass == ConvolutionPass::weight) finish_weight(call, sizes, m, parts);
}

// data: x, weights and y. Each unit of work is the rows of a range of a sample.
void run_library_rows(const KernelCall& call, const ConvolutionSizes& sizes, const RowRanges& rows, const Memory& m,
                      const std::array<float*, 3>& data) {
  const ConvolutionSizes first = of_rows(sizes, rows[0]);
  library_convolution(first).pack(data[1], m.packed);
  std::array<const Convolution*, 2> of_range = {};
  for (size_t i = 0; i < rows.size(); ++i) of_range[i] = &library_convolution(of_rows(sizes, rows[i]), first);
  const int64_t x_row = sizes.x_elements() / sizes.in[0], y_row = sizes.y_elements() / sizes.out[0];
  call.team.for_shares(sizes.samples * static_cast<int64_t>(rows.size()), 1, [&](Range mine, int thread) {
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const auto range = static_cast<size_t>(i / sizes.samples);
      const ConvolutionRows& r = rows[range];
      const int64_t sample = i % sizes.samples;
      of_range[range]->run(data[0] + (sample * sizes.in[0] + r.x.begin) * x_row, m.packed,
                           data[2] + (sample * sizes.out[0] + r.y.begin) * y_row, m.scratch + thread * m.scratch_size);
    }
  });
}

// The first index of y along a window's dim, of the whole value; 0 if it is not known.
int64_t first_of(const KernelCall& call, const std::string& dim) {
  for (const NamedIndex& i : call.indices)
    if (i.dim == dim && !i.windowed && !i.index.segments().empty())
      return std::max<int64_t>(i.index.segments().front().global, 0);
  return 0;
}

void run_winograd(const KernelCall& call, const ConvolutionSizes& sizes, const RowRanges& rows, const Memory& m,
                  const std::array<float*, 3>& data) {
  const bool weight = sizes.pass == ConvolutionPass::weight;
  float* weights = weight ? gradient_of(call, m) : data[1];
  const std::vector<tensor::DimWindow> windows = tensor::windows_of(call.attributes);
  const WinogradStart first = {.row = first_of(call, windows[0].dim), .column = first_of(call, windows[1].dim)};
  std::array<Range, 2> ranges;
  for (size_t i = 0; i < rows.size(); ++i) ranges[i] = rows[i].y;
  winograd(sizes, std::span(ranges).first(rows.size()), data[0], weights, data[2], m.winograd, call.team, first);
  if (weight) store_gradient(call, weights);
}

// Calls f(first element, count), in shares, for the elements of x (role 0), the weights or y (2) that the rows touch.
template <typename F>
void for_elements(const KernelCall& call, const ConvolutionSizes& sizes, const RowRanges& rows, size_t role,
                  const F& f) {
  constexpr int64_t kElementGrain = 4096;
  const int64_t all = role == 0   ? sizes.samples * sizes.x_elements()
                      : role == 1 ? sizes.weights()
                                  : sizes.samples * sizes.y_elements();
  if (!rows.is_part() || role == 1) {
    call.team.for_shares(all, kElementGrain, [&](Range r, int) { f(r.begin, r.size()); });
    return;
  }
  const int64_t sample = all / sizes.samples, row = sample / (role == 0 ? sizes.in[0] : sizes.out[0]);
  for (const ConvolutionRows& range : rows.all()) {
    const Range& own = role == 0 ? range.x : range.y;
    call.team.for_shares(sizes.samples, std::max<int64_t>(1, kElementGrain / (own.size() * row)), [&](Range r, int) {
      for (int64_t n = r.begin; n < r.end; ++n) f(n * sample + own.begin * row, own.size() * row);
    });
  }
}

void run(const KernelCall& call, const Roles& roles) {
  const std::array<const View*, 3> views = by_role<const View*>(roles, &call.ins[0], &call.ins[1], &call.outs[0]);
  const ConvolutionSizes sizes = convolution_sizes(roles.pass, views[0]->shape(), views[2]->shape(), call.attributes);
  if (sizes.samples == 0 || views[roles.made]->elements() == 0) return;
  const RowRanges rows(sizes, call.attributes);
  if (rows.size() == 0) return;
  Scratch scratch(call.workspace);
  const Memory m = take(sizes, rows, {&views[0]->type, &views[1]->type, &views[2]->type}, call.team.size(), scratch);
  std::array<float*, 3> data = {};
  for (size_t i = 0; i < 3; ++i) {
    const View& v = *views[i];
    const bool narrow = v.dtype() != DType::f32;
    data[i] = narrow ? m.wide[i] : reinterpret_cast<float*>(v.data);
    if (!narrow || i == roles.made) continue;
    for_elements(call, sizes, rows, i, [&](int64_t first, int64_t count) {
      widen(v.dtype(), v.data + first * tensor::size_of(v.dtype()), data[i] + first, count);
    });
  }
  if (is_winograd(sizes)) {
    run_winograd(call, sizes, rows, m, data);
  } else {
    rows.is_part() ? run_library_rows(call, sizes, rows, m, data) : run_library(call, sizes, m, data);
  }
  if (roles.pass == ConvolutionPass::weight) return;
  const View& made = *views[roles.made];
  if (made.dtype() == DType::f32) return;
  for_elements(call, sizes, rows, roles.made, [&](int64_t first, int64_t count) {
    narrow(made.dtype(), data[roles.made] + first, made.data + first * tensor::size_of(made.dtype()), count);
  });
}

bool is_fp64(const KernelCall& call) {
  return call.outs[0].dtype() == DType::f64;
}

int64_t workspace(const KernelShapes& shapes, const Roles& roles) {
  if (shapes.outs[0]->dtype == DType::f64) return 0;
  const std::array<const tensor::Type*, 3> types = by_role(roles, shapes.ins[0], shapes.ins[1], shapes.outs[0]);
  const ConvolutionSizes sizes = convolution_sizes(roles.pass, types[0]->shape, types[2]->shape, shapes.attributes);
  if (sizes.samples == 0 || types[roles.made]->shape.elements() == 0) return 0;
  const RowRanges rows(sizes, shapes.attributes);
  if (rows.size() == 0) return 0;
  Scratch scratch;
  take(sizes, rows, types, shapes.threads, scratch);
  return scratch.bytes();
}

}  // namespace

bool convolution_takes(const Operands& o) {
  if (convolution_fp64_takes(o)) return true;
  const size_t windows = tensor::words(o.attributes.text_or("window", "")).size();
  return is_fast(o.ins[0].dtype) && is_fast(o.ins[1].dtype) && is_fast(o.outs[0].dtype) && windows >= 1 &&
         windows <= kMostWindows;
}

void convolution(const KernelCall& call) {
  is_fp64(call) ? convolution_fp64(call) : run(call, kForward);
}
int64_t convolution_workspace(const KernelShapes& shapes) {
  return workspace(shapes, kForward);
}
void convolution_grad_input(const KernelCall& call) {
  is_fp64(call) ? convolution_fp64_grad_input(call) : run(call, kInput);
}
int64_t convolution_grad_input_workspace(const KernelShapes& shapes) {
  return workspace(shapes, kInput);
}
void transposed_convolution(const KernelCall& call) {
  is_fp64(call) ? convolution_fp64_grad_input(call) : run(call, kInput);
}
int64_t transposed_convolution_workspace(const KernelShapes& shapes) {
  return workspace(shapes, kInput);
}
void convolution_grad_weight(const KernelCall& call) {
  is_fp64(call) ? convolution_fp64_grad_weight(call) : run(call, kWeight);
}
int64_t convolution_grad_weight_workspace(const KernelShapes& shapes) {
  return workspace(shapes, kWeight);
}

}  // namespace kintsugi::kernels::cpu
