// Convolutions: as one matrix product where windows are single positions; otherwise by a library if present
// (cuda/cudnn_convolution.cpp), as implicit matrix products (convolution_rows.h, convolution_weight.h), or element by
// element (convolution_thin.h).
#include <optional>

#include "kintsugi/kernels/gpu/convolution.h"
#include "kintsugi/kernels/gpu/convolution_by_library.h"
#include "kintsugi/kernels/gpu/convolution_thin.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::ConvolutionGradInputIn;
using kernels::ConvolutionIn;
using kernels::WindowGradIn;

constexpr int kThinRun = 8;

void require_grid(std::string_view kind, int64_t x, int64_t y, int64_t z) {
  base::require(x < (int64_t{1} << 31) && y < 65536 && z < 65536, "kernel", "{} in {} x {} x {} blocks on a device",
                kind, x, y, z);
}

template <typename T, bool kGradient, int kM, int kN, int kStages>
void launch_rows_16(const KernelCall& call, const ConvolutionRows& c, dim3 grid) {
  constexpr size_t kBytes = sizeof(T) * kStages * (kPart<false, kM> + kPart<!kGradient, kN>);
  launch(*call.stream, grid, dim3(Shape16<kM, kN>::kThreads), kBytes, convolve_rows_16<T, kGradient, kM, kN, kStages>,
         c);
}

// Rows of a phase, at most.
template <bool kGradient>
int64_t rows_of_phase(const ConvolutionSizes& s) {
  int64_t rows = s.samples;
  for (const ConvolutionAxis& a : s.axis) rows *= kGradient ? quotient_up(a.in, a.stride) : a.out_end - a.out_begin;
  return rows;
}

template <bool kGradient>
void convolve_by_tiles(const KernelCall& call, ConvolutionRows c) {
  const ConvolutionSizes& s = c.sizes;
  const int64_t rows = rows_of_phase<kGradient>(s), columns = kGradient ? s.channels : s.filters;
  int64_t phases = 1;
  for (const ConvolutionAxis& a : s.axis) phases *= kGradient ? a.stride : 1;
  const auto grid = [&](int high, int wide) {
    const int64_t across = quotient_up(columns, wide), blocks = quotient_up(rows, high) * across;
    require_grid(call.kind, blocks, phases, s.groups);
    c.across = static_cast<unsigned>(across);
    return dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(phases), static_cast<unsigned>(s.groups));
  };
  const DType dtype = c.from.dtype;
  if (dtype == DType::f32 || c.w.dtype != dtype || (c.to.dtype != dtype && c.to.dtype != DType::f32)) {
    const dim3 blocks = grid(kConvolutionBlock, kConvolutionBlock);
    return launch(*call.stream, blocks, dim3(kConvolutionThreads), 0, convolve_rows_32<kGradient>, c);
  }
  c.wide_from = (kGradient ? s.filters : s.channels) % 8 == 0 && all_wide(c.from.data);
  c.wide_w = s.filters % 8 == 0 && all_wide(c.w.data);
  c.wide_to = columns % 2 == 0 && address(c.to.data) % (2 * tensor::size_of(c.to.dtype)) == 0;
  const bool many = columns > 64 && quotient_up(rows, 128) * quotient_up(columns, 128) * phases * s.groups >=
                                        fewest_large_convolution_blocks;
  const dim3 blocks = many ? grid(128, 128) : grid(64, 64);
  dispatch(call.kind, dtype, [&]<typename T>(T) {
    if constexpr (sizeof(T) == 2) {
      many ? launch_rows_16<T, kGradient, 128, 128, 3>(call, c, blocks)
           : launch_rows_16<T, kGradient, 64, 64, 4>(call, c, blocks);
    }
  });
}

bool has_one_per_group(const ConvolutionSizes& s) {
  return s.channels == 1 && s.filters == 1 && s.groups % kThinRun == 0;
}

template <bool kGradient>
void convolve_by_elements(const KernelCall& call, const ConvolutionRows& c) {
  const ConvolutionSizes& s = c.sizes;
  int64_t elements = kGradient ? s.all_channels() : s.all_filters();
  for (const ConvolutionAxis& a : s.axis) elements *= thin_count(a, kGradient);
  const bool together = has_one_per_group(s) && all_wide(c.from.data, c.w.data, c.to.data);
  const int64_t runs = together ? elements / kThinRun : elements, blocks = quotient_up(runs, kPieceThreads);
  require_grid(call.kind, runs, s.samples, 1);
  launch(*call.stream, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(s.samples)), dim3(kPieceThreads), 0,
         together ? convolve_thin<kGradient, kThinRun> : convolve_thin<kGradient, 1>, c, static_cast<unsigned>(runs));
}

Gemm product_of(const KernelCall& call, const View& a, const View& b) {
  return {.dtype = a.dtype(),
          .c_dtype = call.outs[0].dtype(),
          .tf32 = call.tf32,
          .a = {.data = a.data, .step = width(a.shape())},
          .b = {.data = b.data, .step = width(b.shape())},
          .c = call.outs[0].data,
          .c_step = width(call.outs[0].shape()),
          .accumulate = call.accumulates(0),
          .workspace = call.workspace.data(),
          .workspace_bytes = static_cast<int64_t>(call.workspace.size())};
}
bool fits_product(const tensor::Type& a, const tensor::Type& b, const tensor::Type& c) {
  return a.dtype == b.dtype && (c.dtype == a.dtype || c.dtype == DType::f32);
}

// from: x, or dy for the gradient.
template <bool kGradient>
void convolve(const KernelCall& call) {
  const View &from = call.ins[0], &w = call.ins[1], &to = call.outs[0];
  const tensor::Shape &x = (kGradient ? to : from).shape(), &y = (kGradient ? from : to).shape();
  const ConvolutionSizes s = convolution_sizes(call.kind, x, y, call.attributes, &call);
  if (to.elements() == 0) return;
  if (s.is_product() && fits_product(from.type, w.type, to.type) && from.elements() > 0 &&
      !call.attributes.has("part")) {
    Gemm g = product_of(call, from, w);
    g.m = rows(to.shape()), g.n = width(to.shape()), g.k = width(from.shape());
    g.b.transposed = kGradient;
    gemm(g, *call.stream);
    return;
  }
  ConvolutionRows c = {
      .sizes = s, .from = any_data(call.kind, from), .w = any_data(call.kind, w), .to = any_data(call.kind, to)};
  constexpr auto kPass = kGradient ? kernels::ConvolutionPass::input : kernels::ConvolutionPass::forward;
  if (is_library_convolution(s, from.type, w.type, to.type) && convolve_by_library<kPass>(call, s)) return;
  const auto compute = [&] {
    s.is_thin() ? convolve_by_elements<kGradient>(call, c) : convolve_by_tiles<kGradient>(call, c);
  };
  const std::optional<tensor::OutputPart> part = tensor::output_part(call.attributes);
  if (!part) return compute();
  const std::vector<tensor::DimWindow> windows = tensor::windows_of(call.attributes);
  const auto found = std::ranges::find(windows, part->dim, &tensor::DimWindow::dim);
  base::require(!kGradient && found != windows.end(), "kernel", "{} of a part of {} on a device", call.kind, part->dim);
  ConvolutionAxis& axis =
      c.sizes.axis[kConvolutionAxes - windows.size() + static_cast<size_t>(found - windows.begin())];
  for (const auto& [begin, end] : part->ranges(axis.out)) {
    axis.out_begin = static_cast<int>(begin), axis.out_end = static_cast<int>(end);
    if (begin < end) compute();
  }
}

template <bool kGradient>
int64_t workspace_of(const KernelShapes& shapes) {
  const tensor::Type &from = *shapes.ins[0], &to = *shapes.outs[0];
  const ConvolutionSizes s =
      convolution_sizes("convolution", (kGradient ? to : from).shape, (kGradient ? from : to).shape, shapes.attributes);
  const tensor::Type& w = *shapes.ins[1];
  if (s.is_product() && fits_product(from, w, to)) return gemm_workspace(to.shape.elements());
  return is_library_convolution(s, from, w, to) ? library_workspace(from, w, to) : 0;
}

// Matrix products whose depth a library splits, as our own do not.
bool is_library_product(const ConvolutionSizes& s, const tensor::Type& x, const tensor::Type& dy,
                        const tensor::Type& dw) {
  return library_gemm != nullptr && s.is_product() && fits_product(x, dy, dw);
}

}  // namespace

int64_t fewest_large_convolution_blocks = kProcessors;
#if defined(__CUDACC__)
kernels::ConvolutionByLibrary convolution_by_library = kernels::cudnn_convolution;
#else
kernels::ConvolutionByLibrary convolution_by_library = nullptr;
#endif

void convolution(const KernelCall& call) {
  convolve<false>(call);
}
int64_t convolution_workspace(const KernelShapes& shapes) {
  return workspace_of<false>(shapes);
}
void convolution_grad_input(const KernelCall& call) {
  convolve<true>(call);
}
int64_t convolution_grad_input_workspace(const KernelShapes& shapes) {
  return workspace_of<true>(shapes);
}

void convolution_grad_weight(const KernelCall& call) {
  const View &x = call.ins[WindowGradIn::kX], &dy = call.ins[WindowGradIn::kDy], &dw = call.outs[0];
  const ConvolutionSizes s = convolution_sizes(call.kind, x.shape(), dy.shape(), call.attributes, &call);
  const int64_t elements = dw.elements();
  if (elements == 0) return;
  if (is_library_product(s, x.type, dy.type, dw.type) && x.elements() > 0) {
    Gemm g = product_of(call, x, dy);
    g.m = width(x.shape()), g.n = width(dy.shape()), g.k = rows(x.shape());
    g.a.transposed = true;
    gemm(g, *call.stream);
    return;
  }
  if (is_library_convolution(s, x.type, dy.type, x.type) &&
      convolve_by_library<kernels::ConvolutionPass::weight>(call, s))
    return;
  ConvolutionWeight c = {.sizes = s,
                         .x = any_data(call.kind, x),
                         .dy = any_data(call.kind, dy),
                         .dw = any_data(call.kind, dw),
                         .add = call.accumulates(0),
                         .slices = convolution_slices(s),
                         .outputs = Divisor(std::max(s.outputs(), 1)),
                         .out_1 = Divisor(std::max(s.axis[1].out, 1)),
                         .out_2 = Divisor(std::max(s.axis[2].out, 1))};
  const int64_t slices = c.slices.count;
  if (slices > 1) c.parts = reinterpret_cast<float*>(call.workspace.data());
  if (s.is_thin()) {
    const ThinWeight t = {.weight = c, .elements = elements, .filters = Divisor(s.all_filters())};
    const bool together = has_one_per_group(s) && all_wide(c.x.data, c.dy.data, c.dw.data);
    const int64_t blocks = quotient_up(elements, kPieceThreads * (together ? kThinRun : 1));
    require_grid(call.kind, blocks, slices, 1);
    launch(*call.stream, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(slices)), dim3(kPieceThreads), 0,
           together ? convolve_thin_weight<kThinRun> : convolve_thin_weight<1>, t);
  } else {
    const int64_t across = quotient_up(s.filters, 64), blocks = quotient_up(s.weight_rows(), 64) * across;
    require_grid(call.kind, blocks, slices, s.groups);
    c.across = static_cast<unsigned>(across);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(slices), static_cast<unsigned>(s.groups));
    const DType dtype = c.x.dtype;
    if (dtype == DType::f32 || c.dy.dtype != dtype || (c.dw.dtype != dtype && c.dw.dtype != DType::f32)) {
      launch(*call.stream, grid, dim3(kConvolutionThreads), 0, convolve_weight_32, c);
    } else {
      c.wide_x = s.channels % 8 == 0 && all_wide(c.x.data);
      c.wide_dy = s.filters % 8 == 0 && all_wide(c.dy.data);
      c.wide_dw = s.filters % 2 == 0 && (slices > 1 || address(c.dw.data) % (2 * tensor::size_of(c.dw.dtype)) == 0);
      dispatch(call.kind, dtype, [&]<typename T>(T) {
        if constexpr (sizeof(T) == 2) {
          constexpr int kStages = 4;
          launch(*call.stream, grid, dim3(Shape16<64, 64>::kThreads), sizeof(T) * kStages * 2 * kPart<true, 64>,
                 convolve_weight_16<T, 64, 64, kStages>, c);
        }
      });
    }
  }
  if (slices > 1) launch_pieces(*call.stream, elements, add_slices, c, elements);
}
int64_t convolution_grad_weight_workspace(const KernelShapes& shapes) {
  const tensor::Type &x = *shapes.ins[WindowGradIn::kX], &dy = *shapes.ins[WindowGradIn::kDy], &dw = *shapes.outs[0];
  const ConvolutionSizes s = convolution_sizes("convolution", x.shape, dy.shape, shapes.attributes);
  if (dw.shape.elements() == 0) return 0;
  const ConvolutionSlices slices = convolution_slices(s);
  const int64_t parts = slices.count > 1 ? slices.count * dw.shape.elements() * 4 : 0;
  if (s.is_product() && fits_product(x, dy, dw)) return std::max(parts, gemm_workspace(dw.shape.elements()));
  return is_library_convolution(s, x, dy, x) ? std::max(parts, library_workspace(x, dw, dy)) : parts;
}

void transposed_convolution(const KernelCall& call) {
  convolve<true>(call);
}
int64_t transposed_convolution_workspace(const KernelShapes& shapes) {
  return workspace_of<true>(shapes);
}

}  // namespace kintsugi::KINTSUGI_GPU
