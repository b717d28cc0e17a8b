// Output head: the vocabulary logits, their loss and its gradients, in blocks of whole rows. A product computes a block
// of logits in the workspace, one thread block per row derives the requested results, and two products propagate back.
// x: [rows embed], table: [vocab embed], bias: [vocab], labels, lse, target, dlse, dtarget: [rows]
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/fast_math.h"
#include "kintsugi/kernels/gpu/gemm.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::HeadGradIn;
using kernels::HeadGradOut;
using kernels::HeadIn;
using kernels::HeadOut;
using kernels::HeadWithGradIn;
using kernels::HeadWithGradOut;

// Bytes of logits per block: dtable is read and written once per block. Larger blocks gain nothing.
constexpr int64_t kBlockLogits = int64_t{2} << 30;
constexpr int64_t kRowLine = 64;  // alignment of the row stride of logits in the workspace, in elements

// The workspace: workspace of the products in bytes, the block of logits, and copies of table and bias padded with
// zeros if the vocabulary is not a multiple of kRun. Products with an odd vocabulary are several times slower.
constexpr int64_t kRun = 8;
struct LogitsBlock {
  int64_t rows, width;
  int64_t products = 0;
  int64_t columns = 0;                               // of its logits: the vocabulary, or `width` with the padded copies
  int64_t logits = 0, table = 0, bias = 0, end = 0;  // offsets in bytes
};

// `block_logits`: an attribute for tests.
LogitsBlock block_of(const KernelShapes& shapes) {
  const tensor::Type& x = *shapes.ins[HeadIn::kX];
  const int64_t vocab = shapes.ins[HeadIn::kTable]->shape.size("vocab");
  const int64_t width = (vocab + kRowLine - 1) / kRowLine * kRowLine;
  const int64_t most = shapes.attributes.integer_or("block_logits", kBlockLogits) / (width * tensor::size_of(x.dtype));
  // Equal blocks, since a short one at the end is slow.
  constexpr int64_t kTile = 128;  // of products
  const int64_t all = std::max<int64_t>(rows(x.shape), 1),
                blocks = (all + std::max<int64_t>(most, 1) - 1) / std::max<int64_t>(most, 1);
  const int64_t alike = ((all + blocks - 1) / blocks + kTile - 1) / kTile * kTile;
  const int64_t count = std::clamp<int64_t>(std::min(most, alike), 1, all), embed = x.shape.size("embed");
  LogitsBlock block = {.rows = count, .width = width};
  block.products = gemm_workspace(std::max({count * width, count * embed, width * embed}));
  block.columns = vocab % kRun == 0 ? vocab : width;
  const int64_t copied = block.columns == vocab ? 0 : width * tensor::size_of(x.dtype);
  block.logits = block.products;
  block.table = block.logits + count * width * tensor::size_of(x.dtype);
  block.bias = block.table + copied * embed;
  block.end = block.bias + copied;
  return block;
}

// Inputs and outputs of the row kernel; null: absent.
struct RowOfLogits {
  int64_t width_in, width_out;  // row strides in elements
  int64_t vocab, columns;       // gradients are 0 beyond the vocabulary
  int64_t whole;                // elements before it contain no padding
  int held;                     // elements of a row kept in shared memory for the second read; 0 with known_lse
  bool runs;                    // elements from `whole` on may also be tokens, according to the index
  LocalIndex index;
  const int32_t* labels;
  const float* known_lse;  // null: computed here
  const float *dlse, *dtarget;
  float *lse, *target, *top;  // outputs
};

// Lower than any logit, and finite.
constexpr float kLowest = -1e30f;

// As block_sum(); `scratch` must not have been used before.
template <typename T>
__device__ T block_max(T x, T* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  x = lanes_max(x);
  if (lane == 0) scratch[group] = x;
  __syncthreads();
  x = lane < static_cast<int>(blockDim.x) / 32 ? scratch[lane] : scratch[0];
  return lanes_max(x);
}

constexpr int kMostRowThreads = 1024;

// The first bytes of a row are copied to shared memory and read again from there, the rest from memory: as much as
// every NVIDIA device gives a block (AMD devices give less, and read everything from memory), so that two blocks share
// a multiprocessor and overlap.
constexpr int64_t kHeldBytes = 96 * 1024;

// One row of logits per thread block: lse and target, and the gradients of the logits, 0 at padding; without gradients,
// zeros the padding of kept logits. N elements at a time. Gradients may overwrite the logits.
template <typename L, typename T, int N>
__global__ void __launch_bounds__(kMostRowThreads) logits_row(RowOfLogits r, const L* all, T* gradients, L* kept) {
  __shared__ float scratch[32];
  GPU_DYNAMIC_SHARED(L, held);
  const int64_t row = blockIdx.x;
  const L* const logits = all + row * r.width_in;
  const int vocab = static_cast<int>(r.vocab), whole = static_cast<int>(r.whole);
  const int first = static_cast<int>(threadIdx.x) * N, threads = static_cast<int>(blockDim.x), step = threads * N;
  const auto there = [&](int i) { return i < whole || (r.runs && i < vocab && r.index[i] >= 0); };
  const int label = static_cast<int>(r.index.local_of(r.labels[row]));  // -1 if it is not local

  // In two parts, so that a thread processes the first while the second is in flight.
  const int part = (r.held + 2 * step - 1) / (2 * step) * step;
  float lse = 0;
  if (r.known_lse != nullptr) {
    lse = r.known_lse[row];
  } else {
    for (int begin = first; begin < first + 2 * part; begin += part) {
      for (int i = begin; i < begin + part && i < r.held; i += step) copy_async_16(held + i, logits + i);
      copy_async_commit();
    }
    float top = kLowest, sum = 0;
    for (int i = first; i < vocab; i += step) {
      if (i == first) copy_async_wait<1>();
      if (i == first + part) copy_async_wait<0>();
      float x[N];
      load_run(x, i < r.held ? held + i : logits + i);
      if (i + N > whole) {  // rare; otherwise no per-element check is needed
        GPU_UNROLL
        for (int j = 0; j < N; ++j)
          if (!there(i + j)) x[j] = -INFINITY;
      }
      float high = top;
      GPU_UNROLL
      for (int j = 0; j < N; ++j) high = x[j] > high ? x[j] : high;
      if (high > top) sum *= fast_exp2((top - high) * kLog2E), top = high;
      const float less = -top * kLog2E;
      GPU_UNROLL
      for (int j = 0; j < N; ++j) sum += fast_exp2(fmaf(x[j], kLog2E, less));
    }
    const float highest = block_max(top, scratch);
    sum = block_sum(sum * fast_exp2((top - highest) * kLog2E), scratch);
    lse = sum == 0 ? -INFINITY : highest + logf(sum);
    if (threadIdx.x == 0 && r.top != nullptr) r.top[row] = sum == 0 ? -INFINITY : highest;
  }
  if (threadIdx.x == 0) {
    if (r.lse != nullptr) r.lse[row] = lse;
    if (r.target != nullptr) r.target[row] = label >= 0 ? widen(logits[label]) : 0;
  }
  if (kept != nullptr) {
    for (int i = whole + static_cast<int>(threadIdx.x); i < vocab; i += threads)
      if (!there(i)) kept[row * r.width_in + i] = narrow<L>(0.0f);
  }
  if (gradients == nullptr) return;
  __syncthreads();  // the label's logit has been read
  const float dlse = r.dlse[row], dtarget = r.dtarget[row];
  const bool none = dlse == 0 && dtarget == 0;
  T* const out = gradients + row * r.width_out;
  const float less = -lse * kLog2E;
  for (int i = first; i < static_cast<int>(r.columns); i += step) {
    float x[N] = {};
    if (!none && i < vocab) {
      load_run(x, i < r.held ? held + i : logits + i);
      GPU_UNROLL
      for (int j = 0; j < N; ++j) x[j] = fast_exp2(fmaf(x[j], kLog2E, less)) * dlse;
      if (label >= i && label < i + N) {
        GPU_UNROLL
        for (int j = 0; j < N; ++j)
          if (i + j == label) x[j] += dtarget;
      }
      if (i + N > whole) {
        GPU_UNROLL
        for (int j = 0; j < N; ++j)
          if (!there(i + j)) x[j] = 0;
      }
    }
    put_run(out + i, x, false);
  }
}

// dbias (+)= the gradients of a block of logits, summed over its rows. A thread block has 32 N columns; 32 of its
// threads share one run of N columns, and each adds every 32nd row.
template <typename T, typename B, int N>
__global__ void __launch_bounds__(1024)
    sum_columns(const T* gradients, int64_t rows, int64_t width, int64_t vocab, B* to, bool add) {
  __shared__ float sums[32][33];
  const int run = static_cast<int>(threadIdx.x) % 32, part = static_cast<int>(threadIdx.x) / 32;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * 32 + run) * N;
  float sum[N] = {};
  if (first < vocab)
    for (int64_t row = part; row < rows; row += 32) {
      const auto x = *reinterpret_cast<const Vec<T, N>*>(gradients + row * width + first);
      GPU_UNROLL
      for (int j = 0; j < N; ++j) sum[j] += widen(x[j]);
    }
  GPU_UNROLL
  for (int j = 0; j < N; ++j) {
    __syncthreads();
    sums[run][part] = sum[j];
    __syncthreads();
    const float total = lanes_sum(sums[part][run]);  // of the run `part`
    const int64_t column = (static_cast<int64_t>(blockIdx.x) * 32 + part) * N + j;
    if (run == 0 && column < vocab) put(to + column, total, add);
  }
}

// Shared by the three kernels; null: absent.
struct Head {
  const KernelCall& call;
  const View &x, &table, &labels, &bias;
  int64_t rows, embed, vocab;
  LogitsBlock block;
  std::byte* logits;                   // in the workspace
  const void *wide_table, *wide_bias;  // [columns embed], [columns]: the inputs, or padded copies
  DType dtype;                         // of x, the table, and logits in the workspace

  const std::byte* x_row(int64_t row) const { return x.data + row * embed * tensor::size_of(dtype); }
  void* products() const { return call.workspace.data(); }
};

// `in_workspace`: the workspace holds logits or their gradients.
Head begin(const KernelCall& call, bool in_workspace) {
  const View &x = call.ins[HeadIn::kX], &table = call.ins[HeadIn::kTable];
  base::require(x.dtype() == table.dtype(), "head", "x is {}, the table {}", name_of(x.dtype()),
                name_of(table.dtype()));
  const tensor::Type* ins[] = {&x.type, &table.type};
  const LogitsBlock block = block_of({ins, {}, call.attributes});
  Head h = {.call = call,
            .x = x,
            .table = table,
            .labels = call.ins[HeadIn::kLabels],
            .bias = call.ins[HeadIn::kBias],
            .rows = rows(x.shape()),
            .embed = x.shape().size("embed"),
            .vocab = table.shape().size("vocab"),
            .block = block,
            .logits = call.workspace.data() + block.logits,
            .wide_table = table.data,
            .wide_bias = call.ins[HeadIn::kBias].data,
            .dtype = x.dtype()};
  if (block.columns == h.vocab || !in_workspace) return h;
  const auto copy = [&](const void* from, int64_t bytes, int64_t at, int64_t whole) {
    std::byte* to = call.workspace.data() + at;
    call.stream->copy(to, from, bytes);
    call.stream->zero(to + bytes, whole - bytes);
    return to;
  };
  h.wide_table = copy(table.data, table.type.bytes(), block.table, block.bias - block.table);
  if (h.bias.data != nullptr) h.wide_bias = copy(h.bias.data, h.bias.type.bytes(), block.bias, block.end - block.bias);
  return h;
}

// Location of the logits, and their row stride.
struct Logits {
  std::byte* data;
  int64_t width;
  DType dtype;
};

// logits [count vocab] = x [count embed] table^T + bias
void make_logits(const Head& h, int64_t row, int64_t count, const Logits& to) {
  const bool kept = to.data != h.logits;
  gemm({.m = count,
        .n = kept ? h.vocab : h.block.columns,
        .k = h.embed,
        .dtype = h.dtype,
        .c_dtype = to.dtype,
        .tf32 = h.call.tf32,
        .a = {h.x_row(row), h.embed, false},
        .b = {kept ? h.table.data : h.wide_table, h.embed, true},
        .c = to.data,
        .c_step = to.width,
        .bias = kept ? h.bias.data : h.wide_bias,
        .bias_dtype = h.bias.dtype(),
        .bias_row = 0,
        .bias_column = 1,
        .workspace = h.products(),
        .workspace_bytes = h.block.products},
       *h.call.stream);
}

// Requested results: statistics of all rows, their gradients, or both.
struct Makes {
  const View *lse = nullptr, *target = nullptr, *top = nullptr;  // outputs
  const View *known_lse = nullptr, *known_logits = nullptr;      // from an earlier call
  const View* keep = nullptr;                                    // output: the logits
  const View *dlse = nullptr, *dtarget = nullptr;
  size_t dx = 0;  // outputs dx, dtable, dbias, if there is dlse
};

const float* statistic(const View* v, int64_t row) {
  if (v == nullptr) return nullptr;
  base::require(v->dtype() == DType::f32, "head", "statistics of {} on a device", name_of(v->dtype()));
  return data<float>(*v) + row;
}

template <typename L, typename T>
void launch_rows(const Head& h, RowOfLogits r, int64_t count, const Logits& from, T* gradients, bool keep) {
  const L* logits = reinterpret_cast<const L*>(from.data);
  L* kept = keep ? reinterpret_cast<L*>(from.data) : nullptr;
  constexpr int kN = std::min(kWide<L>, kWide<T>);
  const bool wide = from.width % kN == 0 && all_wide(logits, gradients);
  // Independent of `wide`, so that sums are too.
  const auto threads = static_cast<unsigned>(std::clamp<int64_t>((h.vocab + 511) / 512 * 64, 64, kMostRowThreads));
  const int64_t step = int64_t{threads} * kN, most = kHeldBytes / static_cast<int64_t>(sizeof(L)) / step * step;
  if (has_shared(kHeldBytes) && wide && kN == kWide<L> && gradients != nullptr && r.known_lse == nullptr)
    r.held = static_cast<int>(std::min(most, h.vocab / kN * kN));
  launch(*h.call.stream, dim3(static_cast<unsigned>(count)), dim3(threads), static_cast<size_t>(r.held) * sizeof(L),
         wide ? logits_row<L, T, kN> : logits_row<L, T, 1>, r, logits, gradients, kept);
}

void make_rows(const Head& h, const Makes& makes, int64_t row, int64_t count, const Logits& from) {
  const tensor::DimIndex& index = h.call.index("vocab");
  RowOfLogits r = {.width_in = from.width,
                   .width_out = h.block.width,
                   .vocab = h.vocab,
                   .columns = h.block.columns,
                   .whole = 0,
                   .held = 0,
                   .runs = false,
                   .index = local_index(index),
                   .labels = data<int32_t>(h.labels) + row,
                   .known_lse = statistic(makes.known_lse, row),
                   .dlse = statistic(makes.dlse, row),
                   .dtarget = statistic(makes.dtarget, row),
                   .lse = const_cast<float*>(statistic(makes.lse, row)),
                   .target = const_cast<float*>(statistic(makes.target, row)),
                   .top = const_cast<float*>(statistic(makes.top, row))};
  for (const tensor::Segment& s : index.segments()) {
    const bool first = &s == index.segments().data();
    if (s.global >= 0) first ? r.whole = s.count : r.runs = true;
  }
  dispatch("head", h.dtype, [&]<typename T>(T) {
    T* gradients = makes.dlse == nullptr ? nullptr : reinterpret_cast<T*>(h.logits);
    if (from.dtype == h.dtype) return launch_rows<T>(h, r, count, from, gradients, makes.keep != nullptr);
    launch_rows<float>(h, r, count, from, gradients, makes.keep != nullptr);
  });
}

// dx = dlogits table, dtable (+)= dlogits^T x, dbias (+)= sum of dlogits over rows; the last two if requested.
void go_back(const Head& h, size_t outs, int64_t row, int64_t count) {
  const View &dx = h.call.outs[outs], &dtable = h.call.outs[outs + 1], &dbias = h.call.outs[outs + 2];
  gemm({.m = count,
        .n = h.embed,
        .k = h.block.columns,
        .dtype = h.dtype,
        .c_dtype = dx.dtype(),
        .tf32 = h.call.tf32,
        .a = {h.logits, h.block.width, false},
        .b = {h.wide_table, h.embed, false},
        .c = dx.data + row * h.embed * tensor::size_of(dx.dtype()),
        .c_step = h.embed,
        .accumulate = h.call.accumulates(outs),
        .workspace = h.products(),
        .workspace_bytes = h.block.products},
       *h.call.stream);
  const auto to_table = [&](int64_t first, int64_t some) {
    gemm({.m = some,
          .n = h.embed,
          .k = count,
          .dtype = h.dtype,
          .c_dtype = dtable.dtype(),
          .tf32 = h.call.tf32,
          .a = {h.logits + first * tensor::size_of(h.dtype), h.block.width, true},
          .b = {h.x_row(row), h.embed, false},
          .c = dtable.data + first * h.embed * tensor::size_of(dtable.dtype()),
          .c_step = h.embed,
          .accumulate = row > 0 || h.call.accumulates(outs + 1),
          .workspace = h.products(),
          .workspace_bytes = h.block.products},
         *h.call.stream);
  };
  const int64_t runs = h.vocab / kRun * kRun;
  if (dtable.data != nullptr) to_table(0, runs), to_table(runs, h.vocab - runs);
  if (dbias.data == nullptr) return;
  dispatch("head", h.dtype, [&]<typename T>(T) {
    dispatch("head", dbias.dtype(), [&]<typename B>(B) {
      const int64_t columns = 32 * kWide<T>;
      launch(*h.call.stream, dim3(static_cast<unsigned>((h.vocab + columns - 1) / columns)), dim3(1024), 0,
             sum_columns<T, B, kWide<T>>, reinterpret_cast<const T*>(h.logits), count, h.block.width, h.vocab,
             data<B>(dbias), row > 0 || h.call.accumulates(outs + 2));
    });
  });
}

void make(const KernelCall& call, const Makes& makes) {
  const Head h = begin(call, makes.dlse != nullptr || makes.keep == nullptr);
  // Once even without rows: dtable must be stored.
  for (int64_t row = 0; row == 0 || row < h.rows; row += h.block.rows) {
    const int64_t count = std::min(h.block.rows, h.rows - row);
    Logits logits = {h.logits, h.block.width, h.dtype};
    const View* whole = makes.keep != nullptr ? makes.keep : makes.known_logits;
    if (whole != nullptr) {
      base::require(whole->dtype() == h.dtype || whole->dtype() == DType::f32, "head", "logits of {}, x of {}",
                    name_of(whole->dtype()), name_of(h.dtype));
      logits = {whole->data + row * h.vocab * tensor::size_of(whole->dtype()), h.vocab, whole->dtype()};
    }
    if (makes.known_logits == nullptr) make_logits(h, row, count, logits);
    make_rows(h, makes, row, count, logits);
    if (makes.dlse != nullptr) go_back(h, makes.dx, row, count);
  }
}

int64_t workspace_of(const KernelShapes& shapes) {
  return block_of(shapes).end;
}

const View* given(const View& v) {
  return v.data == nullptr ? nullptr : &v;
}

}  // namespace

int64_t head_workspace(const KernelShapes& shapes) {
  const bool kept = shapes.outs.size() > HeadOut::kLogits && shapes.outs[HeadOut::kLogits] != nullptr;
  return kept ? block_of(shapes).products : workspace_of(shapes);
}
int64_t head_grad_workspace(const KernelShapes& shapes) {
  return workspace_of(shapes);
}
int64_t head_with_grad_workspace(const KernelShapes& shapes) {
  return workspace_of(shapes);
}

void head(const KernelCall& call) {
  make(call, {.lse = &call.outs[HeadOut::kLse],
              .target = &call.outs[HeadOut::kTarget],
              .top = given(call.outs[HeadOut::kTop]),
              .keep = given(call.outs[HeadOut::kLogits])});
}

void head_grad(const KernelCall& call) {
  using In = HeadGradIn;
  make(call, {.known_lse = &call.ins[In::kLse],
              .known_logits = given(call.ins[In::kLogits]),
              .dlse = &call.ins[In::kDlse],
              .dtarget = &call.ins[In::kDtarget],
              .dx = HeadGradOut::kDx});
}

void head_with_grad(const KernelCall& call) {
  using In = HeadWithGradIn;
  using Out = HeadWithGradOut;
  make(call, {.lse = &call.outs[Out::kLse],
              .target = &call.outs[Out::kTarget],
              .dlse = &call.ins[In::kDlse],
              .dtarget = &call.ins[In::kDtarget],
              .dx = Out::kDx});
}

}  // namespace kintsugi::KINTSUGI_GPU
