// Tokens to the slots of their experts and back, and elementwise operations on slots in use. Slots are assigned in the
// order of tokens: chunks of a sample's choices are counted, and the counts of those before give each its first place.
#include "kintsugi/kernels/expert_operands.h"
#include "kintsugi/kernels/gpu/activations.h"
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/slots.h"
#include "kintsugi/kernels/gpu/strides.h"
#include "kintsugi/kernels/refuse_token.h"

namespace kintsugi::KINTSUGI_GPU {

int64_t assign_slots_workspace(const KernelShapes&);

namespace {

using kernels::AssignSlotsOut;
using kernels::CombineIn;
using kernels::DispatchIn;
using kernels::ExpertBiasIn;
using kernels::RefusedTokens;
using kernels::WeighIn;

// --- assign_slots

constexpr int kAssignThreads = 256, kAssignWarps = kAssignThreads / 32;
constexpr int kAssignRounds = 4;                              // choices of a thread
constexpr int kAssignChunk = kAssignThreads * kAssignRounds;  // of a block
constexpr int kAssignRun = kAssignChunk / kAssignWarps;       // of a warp, adjacent

// experts, slots: [batch, choices of the sample], counts: [batch expert]
struct Assigning {
  const int32_t* experts;
  int32_t *slots, *counts;
  int choices, num_experts, capacity, chunks;
  LocalIndex batch;
  int32_t* of_chunks;  // tokens of each expert: [batch chunk expert]; null if there is one chunk
  int32_t* wanted;     // the same of samples: [batch expert]; null: nothing is refused
  int32_t* refused;    // [batch expert]: the first choice without a slot, where more are wanted than there are

  __device__ int expert(int sample, int i) const {
    return i < choices ? experts[static_cast<int64_t>(sample) * choices + i] : -1;
  }
};

__global__ void __launch_bounds__(kAssignThreads) count_choices(Assigning a) {
  GPU_DYNAMIC_SHARED(int, count);
  const int thread = static_cast<int>(threadIdx.x), chunk = static_cast<int>(blockIdx.x),
            sample = static_cast<int>(blockIdx.y);
  for (int e = thread; e < a.num_experts; e += kAssignThreads) count[e] = 0;
  __syncthreads();
  for (int i = 0; i < kAssignRounds; ++i) {
    const int expert = a.expert(sample, chunk * kAssignChunk + i * kAssignThreads + thread);
    if (expert >= 0) atomic_add(&count[expert], 1);
  }
  __syncthreads();
  int32_t* const to = a.of_chunks + (static_cast<int64_t>(sample) * a.chunks + chunk) * a.num_experts;
  for (int e = thread; e < a.num_experts; e += kAssignThreads) to[e] = count[e];
}

__global__ void __launch_bounds__(kAssignThreads) place_choices(Assigning a) {
  GPU_DYNAMIC_SHARED(int, next);  // of each warp: the place of the next token of an expert
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32,
            chunk = static_cast<int>(blockIdx.x), sample = static_cast<int>(blockIdx.y);
  const int first = chunk * kAssignChunk + warp * kAssignRun;
  const bool real = a.batch[sample] >= 0, last = chunk + 1 == a.chunks;
  for (int i = thread; i < kAssignWarps * a.num_experts; i += kAssignThreads) next[i] = 0;
  __syncthreads();
  int* const own = next + warp * a.num_experts;
  for (int i = 0; i < kAssignRounds; ++i) {
    const int expert = a.expert(sample, first + i * 32 + lane);
    if (expert >= 0) atomic_add(&own[expert], 1);
  }
  __syncthreads();
  for (int e = thread; e < a.num_experts; e += kAssignThreads) {
    int place = 0;
    for (int c = 0; c < chunk; ++c)
      place += a.of_chunks[(static_cast<int64_t>(sample) * a.chunks + c) * a.num_experts + e];
    for (int w = 0; w < kAssignWarps; ++w) {
      const int n = next[w * a.num_experts + e];
      next[w * a.num_experts + e] = place;
      place += n;
    }
    if (!last) continue;
    const int64_t at = static_cast<int64_t>(sample) * a.num_experts + e;
    a.counts[at] = !real ? 0 : place < a.capacity ? place : a.capacity;
    if (a.wanted != nullptr) a.wanted[at] = real ? place : 0;
  }
  __syncthreads();
  for (int i = 0; i < kAssignRounds; ++i) {
    const int choice = first + i * 32 + lane, expert = a.expert(sample, choice);
    const uint32_t same = lanes_equal(expert);
    const int before = count_bits(same & ((1u << lane) - 1));
    if (expert >= 0) {
      const int place = own[expert] + before;
      if (place == a.capacity && a.wanted != nullptr)
        a.refused[static_cast<int64_t>(sample) * a.num_experts + expert] = choice;
      a.slots[static_cast<int64_t>(sample) * a.choices + choice] = !real                ? 0
                                                                   : place < a.capacity ? expert * a.capacity + place
                                                                                        : -1;
    }
    warp_barrier();
    if (expert >= 0 && before == 0) own[expert] += count_bits(same);
    warp_barrier();
  }
}

// Reports the expert of the first sample in which tokens find no slot, that of the first such token; one block.
__global__ void __launch_bounds__(kAssignThreads)
    report_refused(Assigning a, int samples, int layer, RefusedTokens* refused) {
  __shared__ int64_t first[kAssignThreads];  // sample, choice, expert in one number
  const int thread = static_cast<int>(threadIdx.x);
  first[thread] = -1;
  for (int i = thread; i < samples * a.num_experts; i += kAssignThreads) {
    if (a.wanted[i] <= a.capacity) continue;
    const int sample = i / a.num_experts;
    const int64_t at = (static_cast<int64_t>(sample) * a.choices + a.refused[i]) * a.num_experts + i % a.num_experts;
    if (first[thread] < 0 || at < first[thread]) first[thread] = at;
  }
  __syncthreads();
  if (thread != 0) return;
  int64_t least = -1;
  for (int i = 0; i < kAssignThreads; ++i)
    if (first[i] >= 0 && (least < 0 || first[i] < least)) least = first[i];
  if (least < 0 || refused->tokens != 0) return;
  const int64_t expert = least % a.num_experts, sample = least / a.num_experts / a.choices;
  refused->layer = layer, refused->expert = expert, refused->capacity = a.capacity;
  refused->tokens = a.wanted[sample * a.num_experts + expert];
}

int64_t chunks_of(const tensor::Shape& experts) {
  return std::max<int64_t>(1, quotient_up(experts[1].size * experts[2].size, kAssignChunk));
}

// --- dispatch, combine, weigh

constexpr int kSlotBlocks = 4;  // per multiprocessor, at least

// Slots of tokens: the row of the local block of y of each choice.
struct SlotRows {
  const int32_t* slots;  // [batch seq choice]
  const float* weights;  // the same; null: none
  Divisor seq, capacity;
  int choices, experts, local_slots;  // the latter two: of y
  LocalIndex batch, expert, slot;

  // -1: none
  __device__ int64_t row(int64_t token, int choice) const {
    const int at = slots[token * choices + choice];
    if (at < 0) return -1;
    const int64_t sample = seq.quotient(token), of = capacity.quotient(at), local = expert.local_of(of),
                  place = slot.local_of(at - of * capacity.by);
    return local < 0 || place < 0 || batch[sample] < 0 ? -1 : (sample * experts + local) * local_slots + place;
  }
  __device__ float weight(int64_t token, int choice) const {
    return weights == nullptr ? 1 : weights[token * choices + choice];
  }
};

SlotRows slot_rows(const KernelCall& call, const View& slots, const View& weights, const tensor::Shape& y) {
  base::require(slots.dtype() == DType::i32 && (weights.data == nullptr || weights.dtype() == DType::f32) &&
                    y.rank() == 4 && y[1].name == "expert" && y[2].name == "slot",
                "kernel", "{} of {} with weights in {} on a device", call.kind, to_string(y), name_of(weights.dtype()));
  return {.slots = data<int32_t>(slots),
          .weights = data<float>(weights),
          .seq = Divisor(slots.shape()[1].size),
          .capacity = Divisor(call.attributes.integer("capacity")),
          .choices = static_cast<int>(slots.shape()[2].size),
          .experts = static_cast<int>(y[1].size),
          .local_slots = static_cast<int>(y[2].size),
          .batch = local_index(call.index("batch")),
          .expert = local_index(call.index("expert")),
          .slot = local_index(call.index("slot"))};
}

// Each row of x to its slots, N elements at a time.
template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads)
    to_slots(SlotRows rows, const T* x, T* y, Divisor runs, int64_t count) {
  for (int64_t p = first_piece(); p < count; p += all_threads()) {
    const int64_t token = runs.quotient(p), run = p - token * runs.by;
    const auto in = *reinterpret_cast<const Vec<T, N>*>(x + p * N);
    for (int c = 0; c < rows.choices; ++c) {
      const int64_t row = rows.row(token, c);
      if (row < 0) continue;
      auto* const to = reinterpret_cast<Vec<T, N>*>(y + (row * runs.by + run) * N);
      if (rows.weights == nullptr) {
        *to = in;
        continue;
      }
      const float weight = rows.weight(token, c);
      Vec<T, N> out;
      GPU_UNROLL
      for (int i = 0; i < N; ++i) out[i] = narrow<T>(weight * widen(in[i]));
      *to = out;
    }
  }
}

// The weighted sum of each token's slots, in the order of its choices.
template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads)
    from_slots(SlotRows rows, const T* y, T* x, Divisor runs, int64_t count, bool add) {
  for (int64_t p = first_piece(); p < count; p += all_threads()) {
    const int64_t token = runs.quotient(p), run = p - token * runs.by;
    float sum[N] = {};
    for (int c = 0; c < rows.choices; ++c) {
      const int64_t row = rows.row(token, c);
      if (row < 0) continue;
      const float weight = rows.weight(token, c);
      const auto in = *reinterpret_cast<const Vec<T, N>*>(y + (row * runs.by + run) * N);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) sum[i] += weight * widen(in[i]);
    }
    auto* const to = reinterpret_cast<Vec<T, N>*>(x + p * N);
    Vec<T, N> out = {};
    if (add) out = *to;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) put(&out[i], sum[i], add);
    *to = out;
  }
}

// A warp per token and choice: the dot product of their rows.
template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads, kSlotBlocks)
    weigh_slots(SlotRows rows, const T* y, const T* x, float* dweights, int64_t embed, int64_t pairs, bool add) {
  constexpr int kWarps = kPieceThreads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int64_t begin = static_cast<int64_t>(blockIdx.x) * kWarps; begin < pairs;
       begin += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t pair = begin + warp, token = pair / rows.choices;
    const bool own = pair < pairs;
    const int64_t row = own ? rows.row(token, static_cast<int>(pair - token * rows.choices)) : -1;
    float sum = 0;
    if (row >= 0)
      for (int64_t i = lane * N; i < embed; i += 32 * N) {
        const auto of_x = *reinterpret_cast<const Vec<T, N>*>(x + token * embed + i);
        const auto of_y = *reinterpret_cast<const Vec<T, N>*>(y + row * embed + i);
        GPU_UNROLL
        for (int k = 0; k < N; ++k) sum += widen(of_x[k]) * widen(of_y[k]);
      }
    sum = lanes_sum(sum);
    if (lane == 0 && own) put(dweights + pair, sum, add);
  }
}

// Calls f with a value of the type, and the number of elements to process together: as many as fit, or one.
template <typename F>
void with_rows(const KernelCall& call, const View& x, const View& y, const F& f) {
  dispatch(call.kind, x.dtype(), [&]<typename T>(T) {
    constexpr int kN = kWide<T>;
    base::require(y.dtype() == x.dtype(), "kernel", "{} of {} and {} on a device", call.kind, name_of(x.dtype()),
                  name_of(y.dtype()));
    if (all_wide(x.data, y.data) && width(x.shape()) % kN == 0) return f(T{}, std::integral_constant<int, kN>());
    f(T{}, std::integral_constant<int, 1>());
  });
}

// --- Gates

struct Gate {
  GemmFunction function = GemmFunction::silu;
  bool clamped = false;  // that of gpt-oss (OpenAI 2025, the published code)
  float clamp = 0, slope = 1;

  __device__ float value(float gate, float up) const {
    if (!clamped) return value_of(function, gate) * up;
    const float g = gate < clamp ? gate : clamp, u = up < -clamp ? -clamp : up > clamp ? clamp : up;
    return g / (1 + expf(-slope * g)) * (u + 1);
  }
  __device__ void gradient(float gate, float up, float dy, float& dgate, float& dup) const {
    if (!clamped) {
      dgate = dy * up * slope_of(function, gate);
      dup = dy * value_of(function, gate);
      return;
    }
    const float g = gate < clamp ? gate : clamp, u = up < -clamp ? -clamp : up > clamp ? clamp : up;
    const float s = 1 / (1 + expf(-slope * g));
    dgate = gate <= clamp ? dy * (u + 1) * s * (1 + slope * g * (1 - s)) : 0;
    dup = fabsf(up) <= clamp ? dy * g * s : 0;
  }
};

Gate gate_of(const KernelCall& call) {
  if (call.attributes.has("clamp"))
    return {.clamped = true,
            .clamp = static_cast<float>(call.attributes.number("clamp")),
            .slope = static_cast<float>(call.attributes.number("slope"))};
  const std::string& name = call.attributes.text("activation");
  if (name == "silu") return {.function = GemmFunction::silu};
  if (name == "gelu") return {.function = GemmFunction::gelu_erf};
  if (name == "gelu_tanh") return {.function = GemmFunction::gelu_tanh};
  if (name == "relu2") return {.function = GemmFunction::relu2};
  base::require(name == "relu", "gated", "no activation \"{}\"", name);
  return {.function = GemmFunction::relu};
}

// Operands [batch expert slot wide] of elementwise kernels on slots.
struct SlotValues {
  AnyData gate, up, dy;
  AnyData y, dgate, dup;
  int wide;
  bool add[2];
};

template <int N, bool kBackward>
__global__ void __launch_bounds__(kPieceThreads, kSlotBlocks)
    gate_slots(FilledSlots slots, Gate gate, SlotValues v, int rows_each) {
  GPU_DYNAMIC_SHARED(int, first);
  for_filled_rows(slots, rows_each, first, [&](int64_t row, int rows, int) {
    for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < static_cast<int64_t>(rows) * v.wide;
         i += static_cast<int64_t>(kPieceThreads) * N) {
      const int64_t at = row * v.wide + i;
      float g[N], u[N], made[N];
      v.gate.load(g, at), v.up.load(u, at);
      if constexpr (kBackward) {
        float dy[N], dup[N];
        v.dy.load(dy, at);
        GPU_UNROLL
        for (int k = 0; k < N; ++k) gate.gradient(g[k], u[k], dy[k], made[k], dup[k]);
        v.dgate.put(at, made, v.add[0]), v.dup.put(at, dup, v.add[1]);
      } else {
        GPU_UNROLL
        for (int k = 0; k < N; ++k) made[k] = gate.value(g[k], u[k]);
        v.y.put(at, made, v.add[0]);
      }
    }
  });
}

constexpr int kTileElements = 4096;  // of elementwise kernels on slots, about
int rows_of_tile(int64_t wide) {
  return static_cast<int>(std::clamp<int64_t>(kTileElements / std::max<int64_t>(wide, 1), 1, 64));
}
// Whether rows of all operands can be processed eight elements at a time.
bool in_eights(std::initializer_list<const View*> views, int64_t wide) {
  bool fits = wide % 8 == 0;
  for (const View* v : views) fits &= v->data == nullptr || all_wide(v->data);
  return fits;
}

void launch_gate(const KernelCall& call, const View& counts, const View& dy, bool backward) {
  const View &gate = call.ins[0], &up = call.ins[1], &y = call.outs[0];
  const View second = backward ? call.outs[1] : View();
  const SlotValues v = {.gate = any_data(call.kind, gate),
                        .up = any_data(call.kind, up),
                        .dy = any_data(call.kind, dy),
                        .y = any_data(call.kind, y),
                        .dgate = any_data(call.kind, y),
                        .dup = any_data(call.kind, second),
                        .wide = static_cast<int>(width(y.shape())),
                        .add = {call.accumulates(0), backward && call.accumulates(1)}};
  const FilledSlots slots = filled_slots(call, y.shape(), counts);
  const int each = rows_of_tile(v.wide);
  const bool wide = in_eights({&gate, &up, &dy, &y, &second}, v.wide);
  const auto kernel = backward ? (wide ? gate_slots<8, true> : gate_slots<1, true>)
                               : (wide ? gate_slots<8, false> : gate_slots<1, false>);
  launch_filled(call, slots, each, kernel, slots, gate_of(call), v, each);
}

// --- Biases

// y = x + the bias of the expert; in place if they are the same.
template <int N>
__global__ void __launch_bounds__(kPieceThreads, kSlotBlocks)
    add_expert_bias(FilledSlots slots, AnyData x, AnyData bias, AnyData y, int wide, int rows_each) {
  GPU_DYNAMIC_SHARED(int, first);
  for_filled_rows(slots, rows_each, first, [&](int64_t row, int rows, int expert) {
    for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < static_cast<int64_t>(rows) * wide;
         i += static_cast<int64_t>(kPieceThreads) * N) {
      float sum[N], b[N];
      x.load(sum, row * wide + i), bias.load(b, static_cast<int64_t>(expert) * wide + i % wide);
      GPU_UNROLL
      for (int k = 0; k < N; ++k) sum[k] += b[k];
      y.put(row * wide + i, sum, false);
    }
  });
}

// A block per expert and 32 columns: each warp adds every eighth row, then the sums of the warps are added in order.
__global__ void __launch_bounds__(kPieceThreads)
    sum_expert_bias(FilledSlots slots, AnyData dy, AnyData dbias, int wide, bool add) {
  constexpr int kWarps = kPieceThreads / 32;
  __shared__ float sums[kWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32,
            expert = static_cast<int>(blockIdx.y), column = static_cast<int>(blockIdx.x) * 32 + lane;
  float sum = 0;
  int before = 0;  // rows of earlier samples
  for (int b = 0; b < slots.batch; ++b) {
    const int n = slots.filled(b, expert);
    const int64_t row = (static_cast<int64_t>(b) * slots.experts + expert) * slots.slots;
    const int skip = (kWarps + warp - before % kWarps) % kWarps;
    for (int r = skip; r < n && column < wide; r += kWarps) {
      float x[1];
      dy.load(x, (row + r) * wide + column);
      sum += x[0];
    }
    before += n;
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= wide) return;
  for (int w = 1; w < kWarps; ++w) sum += sums[w][lane];
  const float made[1] = {sum};
  dbias.put(static_cast<int64_t>(expert) * wide + column, made, add);
}

}  // namespace

int64_t assign_slots_workspace(const KernelShapes& shapes) {
  const tensor::Shape &experts = shapes.ins[0]->shape, &counts = shapes.outs[AssignSlotsOut::kCounts]->shape;
  const int64_t chunks = chunks_of(experts);
  return static_cast<int64_t>(sizeof(int32_t)) * counts.elements() * ((chunks > 1 ? chunks : 0) + 2);
}

void assign_slots(const KernelCall& call) {
  const tensor::Shape& shape = call.ins[0].shape();
  const View& counts = call.outs[AssignSlotsOut::kCounts];
  const int64_t samples = shape[0].size, of_all = counts.elements(), chunks = chunks_of(shape);
  auto* memory = reinterpret_cast<int32_t*>(call.workspace.data());
  Assigning a = {.experts = data<int32_t>(call.ins[0]),
                 .slots = data<int32_t>(call.outs[AssignSlotsOut::kSlots]),
                 .counts = data<int32_t>(counts),
                 .choices = static_cast<int>(shape[1].size * shape[2].size),
                 .num_experts = static_cast<int>(call.attributes.integer("experts")),
                 .capacity = static_cast<int>(call.attributes.integer("capacity")),
                 .chunks = static_cast<int>(chunks),
                 .batch = local_index(call.index("batch")),
                 .of_chunks = chunks > 1 ? memory + 2 * of_all : nullptr,
                 .wanted = nullptr,
                 .refused = nullptr};
  // A token uses an expert at most once.
  const bool refuses = call.refused != nullptr && call.attributes.integer("drop") == 0 && a.capacity < shape[1].size;
  if (refuses) a.wanted = memory, a.refused = memory + of_all;
  const dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(samples));
  const size_t bytes = sizeof(int) * static_cast<size_t>(a.num_experts);
  if (chunks > 1) launch(*call.stream, grid, dim3(kAssignThreads), bytes, count_choices, a);
  launch(*call.stream, grid, dim3(kAssignThreads), bytes * kAssignWarps, place_choices, a);
  if (refuses)
    launch(*call.stream, dim3(1), dim3(kAssignThreads), 0, report_refused, a, static_cast<int>(samples),
           static_cast<int>(call.attributes.integer("layer")), call.refused);
}

void dispatch(const KernelCall& call) {
  const View &x = call.ins[DispatchIn::kX], &y = call.outs[0];
  const SlotRows rows = slot_rows(call, call.ins[DispatchIn::kSlots], call.ins[DispatchIn::kWeights], y.shape());
  with_rows(call, x, y, [&]<typename T, int N>(T, std::integral_constant<int, N>) {
    const int64_t pieces = x.elements() / N;
    launch_pieces(*call.stream, pieces, to_slots<T, N>, rows, data<T>(x), data<T>(y), Divisor(width(x.shape()) / N),
                  pieces);
  });
}

void combine(const KernelCall& call) {
  const View &y = call.ins[CombineIn::kY], &x = call.outs[0];
  const SlotRows rows = slot_rows(call, call.ins[CombineIn::kSlots], call.ins[CombineIn::kWeights], y.shape());
  with_rows(call, x, y, [&]<typename T, int N>(T, std::integral_constant<int, N>) {
    const int64_t pieces = x.elements() / N;
    launch_pieces(*call.stream, pieces, from_slots<T, N>, rows, data<T>(y), data<T>(x), Divisor(width(x.shape()) / N),
                  pieces, call.accumulates(0));
  });
}

void weigh(const KernelCall& call) {
  const View &y = call.ins[WeighIn::kY], &x = call.ins[WeighIn::kX], &dweights = call.outs[0];
  const SlotRows rows = slot_rows(call, call.ins[WeighIn::kSlots], dweights, y.shape());
  with_rows(call, x, y, [&]<typename T, int N>(T, std::integral_constant<int, N>) {
    const int64_t pairs = dweights.elements();
    launch_pieces(*call.stream, pairs * 32, weigh_slots<T, N>, rows, data<T>(y), data<T>(x), data<float>(dweights),
                  width(x.shape()), pairs, call.accumulates(0));
  });
}

// Of slots in use, as `gated` and its gradient with counts.
void gated_slots(const KernelCall& call) {
  launch_gate(call, call.ins[kernels::GatedIn::kCounts], View(), false);
}
void gated_slots_grad(const KernelCall& call) {
  launch_gate(call, call.ins[kernels::GatedGradIn::kCounts], call.ins[kernels::GatedGradIn::kDy], true);
}

void clamped_gated(const KernelCall& call) {
  gated_slots(call);
}
void clamped_gated_grad(const KernelCall& call) {
  gated_slots_grad(call);
}

void expert_bias(const KernelCall& call) {
  const View &x = call.ins[ExpertBiasIn::kX], &bias = call.ins[ExpertBiasIn::kBias], &y = call.outs[0];
  const FilledSlots slots = filled_slots(call, x.shape(), call.ins[ExpertBiasIn::kCounts]);
  const auto wide = static_cast<int>(width(x.shape()));
  const int each = rows_of_tile(wide);
  const auto kernel = in_eights({&x, &bias, &y}, wide) ? add_expert_bias<8> : add_expert_bias<1>;
  launch_filled(call, slots, each, kernel, slots, any_data("expert_bias", x), any_data("expert_bias", bias),
                any_data("expert_bias", y), wide, each);
}

void expert_bias_grad(const KernelCall& call) {
  const View& dy = call.ins[0];
  const FilledSlots slots = filled_slots(call, dy.shape(), call.ins[1]);
  const int64_t wide = width(dy.shape());
  launch(*call.stream, dim3(static_cast<unsigned>(quotient_up(wide, 32)), static_cast<unsigned>(slots.experts)),
         dim3(kPieceThreads), 0, sum_expert_bias, slots, any_data("expert_bias_grad", dy),
         any_data("expert_bias_grad", call.outs[0]), static_cast<int>(wide), call.accumulates(0));
}

}  // namespace kintsugi::KINTSUGI_GPU
