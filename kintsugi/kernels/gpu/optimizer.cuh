// Optimizer kernels: sums of squares over blocks of 1,024 elements in fp64, gradient scaling, Adam, AdamW and SGD,
// which read and write each state once (Adam and AdamW for many parameters in one launch). Sums over lists are cut into
// pieces that depend only on the shapes.
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::AdamwIn;
using kernels::AdamwOut;
using kernels::SgdIn;
using kernels::SgdOut;
using kernels::UpdateScaleIn;
using kernels::UpdateScaleOut;

constexpr int kThreads = 256;

// Lists whose squares are summed, and the first thread block of each. wide: g can be read in aligned groups of four.
struct Squared {
  const void* g;
  void* sums;
  int64_t count;
  int begin;
  bool wide, add;
};
struct SquaredLists {
  static constexpr int kMost = 32;
  Squared at[kMost];
  int lists = 0;
};

// 32 lanes per block of 1,024 elements.
template <typename T, typename S>
__global__ void __launch_bounds__(kThreads) square_blocks(SquaredLists lists) {
  constexpr int kRun = 4, kRuns = 1024 / (32 * kRun);
  int l = 0;
  while (l + 1 < lists.lists && lists.at[l + 1].begin <= static_cast<int>(blockIdx.x)) ++l;
  const auto* const g = static_cast<const T*>(lists.at[l].g);
  auto* const sums = static_cast<S*>(lists.at[l].sums);
  const int64_t count = lists.at[l].count, blocks = (count + 1023) / 1024;
  const bool wide = lists.at[l].wide, add = lists.at[l].add;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t own = static_cast<int64_t>(blockIdx.x) - lists.at[l].begin;
  const int64_t block = (own * kThreads + threadIdx.x) / 32, begin = block * 1024;
  double sum = 0;
  if (wide && begin + 1024 <= count) {
    Packed<T, kRun> some[kRuns];
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) some[r].load(g + begin + (r * 32 + lane) * kRun);
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) GPU_UNROLL
    for (int i = 0; i < kRun; ++i) sum += static_cast<double>(some[r][i]) * static_cast<double>(some[r][i]);
  } else {
    for (int64_t i = begin + lane; i < begin + 1024 && i < count; i += 32)
      sum += static_cast<double>(widen(g[i])) * static_cast<double>(widen(g[i]));
  }
  sum = lanes_sum(sum);
  if (block < blocks && lane == 0) sums[block] = static_cast<S>(add ? static_cast<double>(sums[block]) + sum : sum);
}

// Lists of numbers, each cut into pieces.
constexpr int64_t kPiece = 8192;
struct Lists {
  static constexpr int kMost = 100;
  const void* data[kMost];
  int64_t count[kMost];
  int begin[kMost + 1];  // first piece of each list
  int lists = 0;
};

struct PieceSum {
  double sum;
  int64_t begins;  // whether it is the first of its list
};

// One block per piece.
template <typename S>
__global__ void __launch_bounds__(kThreads) sum_pieces(Lists lists, PieceSum* sums) {
  __shared__ double scratch[32];
  const auto piece = static_cast<int>(blockIdx.x);
  int l = 0;
  while (lists.begin[l + 1] <= piece) ++l;
  const auto* const x = static_cast<const S*>(lists.data[l]);
  const int64_t begin = (piece - lists.begin[l]) * kPiece;
  const int64_t end = begin + kPiece < lists.count[l] ? begin + kPiece : lists.count[l];
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum += static_cast<double>(x[i]);
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) sums[piece] = {sum, piece == lists.begin[l]};
}

// In the first thread: adds the sums of the lists in order, as pipeline stages add theirs to those of earlier ones.
__device__ inline double sum_of(const PieceSum* sums, int64_t count) {
  __shared__ PieceSum some[kThreads];
  double total = 0, list = 0;
  for (int64_t begin = 0; begin < count; begin += kThreads) {
    __syncthreads();
    if (begin + threadIdx.x < count) some[threadIdx.x] = sums[begin + threadIdx.x];
    __syncthreads();
    if (threadIdx.x != 0) continue;
    for (int i = 0; i < kThreads && begin + i < count; ++i) {
      if (some[i].begins) total += list, list = 0;
      list += some[i].sum;
    }
  }
  return total + list;
}

int64_t pieces_of(int64_t elements) {
  return (elements + kPiece - 1) / kPiece;
}

// Sums all pieces into the workspace; returns their number.
int64_t sum_all(const KernelCall& call, std::span<const View> blocks) {
  auto* const sums = reinterpret_cast<PieceSum*>(call.workspace.data());
  int64_t done = 0;
  Lists lists;
  lists.begin[0] = 0;
  const auto flush = [&](DType dtype) {
    const int pieces = lists.begin[lists.lists];
    const dim3 grid(static_cast<unsigned>(pieces));
    if (dtype == DType::f64)
      launch(*call.stream, grid, dim3(kThreads), 0, sum_pieces<double>, lists, sums + done);
    else
      launch(*call.stream, grid, dim3(kThreads), 0, sum_pieces<float>, lists, sums + done);
    done += pieces;
    lists.lists = 0;
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    const View& list = blocks[i];
    base::require(list.dtype() == DType::f64 || list.dtype() == DType::f32, "kernel", "sums of squares in {}",
                  name_of(list.dtype()));
    lists.data[lists.lists] = list.data;
    lists.count[lists.lists] = list.elements();
    lists.begin[lists.lists + 1] = lists.begin[lists.lists] + static_cast<int>(pieces_of(list.elements()));
    ++lists.lists;
    if (lists.lists == Lists::kMost || i + 1 == blocks.size() || blocks[i + 1].dtype() != list.dtype())
      flush(list.dtype());
  }
  return done;
}

__global__ void __launch_bounds__(kThreads) finish_sum(const PieceSum* sums, int64_t count, double* to, bool add) {
  const double sum = sum_of(sums, count);
  if (threadIdx.x == 0) *to = add ? *to + sum : sum;
}

struct ScaleUpdate {
  const double *count, *loss_scale;
  double clip;
  double *norm, *factor, *finite;
};
__global__ void __launch_bounds__(kThreads) scale_update(const PieceSum* sums, int64_t pieces, ScaleUpdate u) {
  const double squares = sum_of(sums, pieces);
  if (threadIdx.x != 0) return;
  const double s = 1 / (*u.count * *u.loss_scale), n = s * sqrt(squares);
  const bool good = n - n == 0 && *u.count > 0;
  const double clipped = u.clip / (n + 1e-6);
  const double factor = u.clip > 0 ? s * (clipped < 1 ? clipped : 1.0) : s;
  *u.norm = n;
  *u.finite = good ? 1 : 0;
  *u.factor = good ? factor : 0;
}

// Shared by the optimizers. States are fp32 and may be in place; a new weight may also be stored in another type.
template <typename G>
struct Update {
  const float *w_in, *m_in, *v_in;
  const G* g;
  float *w, *m, *v;
  AnyData weight;
  const double *factor, *finite;
  const Numbers* later;
  int64_t count;
  float decay, rate;  // rate: factor of the learning rate
};
// Several parameters or buckets with the same hyperparameters: end[i] is the number of thread blocks up to and
// including list i.
template <typename G>
struct Adamw {
  Update<G> at[kernels::kMostTogether];
  int64_t end[kernels::kMostTogether];
  int lists;
  int64_t begin;  // first element to update, in each
  const double* updates;
  float beta1, beta2, epsilon;
  bool coupled;  // the decay is part of the gradient
};
template <typename G>
struct Sgd {
  Update<G> u;
  float momentum;
  bool nesterov;
};

// N elements per thread, once: exiting blocks make room for others, whose reads overlap these writes. No function
// within may refer to `a`, which compilers for AMD devices would then copy.
template <typename G, int N>
__global__ void __launch_bounds__(kPieceThreads, 4) adamw_step(Adamw<G> a) {
  __shared__ float corrections[2];
  int list = 0;
  while (blockIdx.x >= a.end[list]) ++list;
  const Update<G>& u = a.at[list];
  const int64_t block = static_cast<int64_t>(blockIdx.x) - (list == 0 ? 0 : a.end[list - 1]);
  const int64_t at = a.begin + (block * kPieceThreads + threadIdx.x) * N;
  const bool there = at + N <= u.count;
  Packed<float, N> w_in = {}, m_in = {}, v_in = {};
  Packed<G, N> g = {};
  if (there) w_in.load(u.w_in + at), m_in.load(u.m_in + at), v_in.load(u.v_in + at), g.load(u.g + at);
  const bool updates = *u.finite != 0;
  const auto factor = static_cast<float>(*u.factor), rate = u.rate * static_cast<float>(u.later->learning_rate);
  if (threadIdx.x < 2) {
    double beta = static_cast<double>(threadIdx.x == 0 ? a.beta1 : a.beta2), power = 1;
    // beta^updates by repeated squaring, since pow() takes many registers.
    for (auto t = static_cast<int64_t>(*a.updates) + 1; t > 0; t /= 2, beta *= beta)
      if (t % 2 == 1) power *= beta;
    corrections[threadIdx.x] = 1 / static_cast<float>(1 - power);
  }
  __syncthreads();
  if (!there) return;
  const float within = a.coupled ? u.decay : 0, apart = a.coupled ? 0 : u.decay;
  float w[N], m[N], v[N];
  GPU_UNROLL
  for (int i = 0; i < N; ++i) {
    w[i] = w_in[i], m[i] = m_in[i], v[i] = v_in[i];
    if (!updates) continue;
    const float gradient = g[i] * factor + within * w[i];
    m[i] = a.beta1 * m[i] + (1 - a.beta1) * gradient;
    v[i] = a.beta2 * v[i] + (1 - a.beta2) * gradient * gradient;
    w[i] -= rate * (m[i] * corrections[0] / (sqrtf(v[i] * corrections[1]) + a.epsilon) + apart * w[i]);
  }
  put_run(u.w + at, w, false), put_run(u.m + at, m, false), put_run(u.v + at, v, false);
  if (u.weight.data != nullptr) u.weight.put(at, w, false);
}

template <typename G, int N>
__global__ void __launch_bounds__(kPieceThreads) sgd_step(Sgd<G> s, int64_t begin, int64_t end) {
  const Update<G>& u = s.u;
  const bool updates = *u.finite != 0;
  const auto factor = static_cast<float>(*u.factor), rate = u.rate * static_cast<float>(u.later->learning_rate);
  for (int64_t at = begin + first_piece() * N; at < end; at += all_threads() * N) {
    float w[N], m[N], g[N];
    load_run(w, u.w_in + at), load_run(m, u.m_in + at), load_run(g, u.g + at);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      if (!updates) continue;
      const float gradient = g[i] * factor + u.decay * w[i];
      m[i] = s.momentum * m[i] + gradient;
      w[i] -= rate * (s.nesterov ? gradient + s.momentum * m[i] : m[i]);
    }
    put_run(u.w + at, w, false), put_run(u.m + at, m, false);
    if (u.weight.data != nullptr) u.weight.put(at, w, false);
  }
}

constexpr int kUpdated = 4;  // elements per thread at a time

template <typename G>
bool is_wide(const Update<G>& u) {
  return all_wide(u.w_in, u.m_in, u.v_in, u.g, u.w, u.m, u.v, u.weight.data);
}
// Calls f(N, begin, end) for the elements processed kUpdated at a time, and for the rest.
template <typename G, typename F>
void in_runs(const Update<G>& u, const F& f) {
  const int64_t runs = is_wide(u) ? u.count / kUpdated * kUpdated : 0;
  if (runs > 0) f(std::integral_constant<int, kUpdated>(), 0, runs);
  if (runs < u.count) f(std::integral_constant<int, 1>(), runs, u.count);
}

// The operands common to all optimizers, at their positions.
template <typename In, typename Out, typename G>
Update<G> update_of(std::string_view kind, const KernelCall& call) {
  for (const size_t i : {In::kW, In::kM})
    base::require(call.ins[i].dtype() == DType::f32, "kernel", "{} of {} on a device", kind,
                  name_of(call.ins[i].dtype()));
  Update<G> u = {};
  u.w_in = data<float>(call.ins[In::kW]), u.m_in = data<float>(call.ins[In::kM]);
  u.w = data<float>(call.outs[Out::kW]), u.m = data<float>(call.outs[Out::kM]);
  u.g = data<G>(call.ins[In::kG]);
  if (call.outs.size() > Out::kWeight) u.weight = any_data(kind, call.outs[Out::kWeight]);
  u.factor = data<double>(call.ins[In::kFactor]), u.finite = data<double>(call.ins[In::kFinite]);
  u.later = call.later;
  u.count = call.outs[Out::kW].elements();
  u.decay = static_cast<float>(call.attributes.number("weight_decay"));
  u.rate = static_cast<float>(call.attributes.number_or("rate", 1.0));
  return u;
}

}  // namespace

int64_t sum_blocks_workspace(const KernelShapes& s) {
  int64_t pieces = 1;
  for (const tensor::Type* type : s.ins)
    if (type != nullptr) pieces += pieces_of(type->shape.elements());
  return pieces * static_cast<int64_t>(sizeof(PieceSum));
}

void sum_squares(const KernelCall& call) {
  base::require(call.ins.size() <= SquaredLists::kMost, "kernel", "squares of {} lists on a device", call.ins.size());
  SquaredLists lists;
  int begin = 0;
  const auto flush = [&](DType of, DType to) {
    dispatch("sum_squares", of, [&]<typename T>(T) {
      launch(*call.stream, dim3(static_cast<unsigned>(begin)), dim3(kThreads), 0,
             to == DType::f64 ? square_blocks<T, double> : square_blocks<T, float>, lists);
    });
    lists.lists = 0, begin = 0;
  };
  for (size_t i = 0; i < call.ins.size(); ++i) {
    const View &g = call.ins[i], &blocks = call.outs[i];
    lists.at[lists.lists++] = {.g = g.data,
                               .sums = blocks.data,
                               .count = g.elements(),
                               .begin = begin,
                               .wide = all_wide(g.data),
                               .add = call.accumulates(i)};
    constexpr int64_t kOfEach = kThreads / 32;
    begin += static_cast<int>((blocks.elements() + kOfEach - 1) / kOfEach);
    if (i + 1 == call.ins.size() || call.ins[i + 1].dtype() != g.dtype() || call.outs[i + 1].dtype() != blocks.dtype())
      flush(g.dtype(), blocks.dtype());
  }
}

void sum_blocks(const KernelCall& call) {
  const int64_t pieces = sum_all(call, call.ins);
  launch(*call.stream, dim3(1), dim3(kThreads), 0, finish_sum, reinterpret_cast<PieceSum*>(call.workspace.data()),
         pieces, data<double>(call.outs[0]), call.accumulates(0));
}

void update_scale(const KernelCall& call) {
  const int64_t pieces = sum_all(call, call.ins.subspan(UpdateScaleIn::kBlocks));
  const ScaleUpdate u = {.count = data<double>(call.ins[UpdateScaleIn::kCount]),
                         .loss_scale = data<double>(call.ins[UpdateScaleIn::kLossScale]),
                         .clip = call.attributes.number("clip"),
                         .norm = data<double>(call.outs[UpdateScaleOut::kNorm]),
                         .factor = data<double>(call.outs[UpdateScaleOut::kFactor]),
                         .finite = data<double>(call.outs[UpdateScaleOut::kFinite])};
  launch(*call.stream, dim3(1), dim3(kThreads), 0, scale_update, reinterpret_cast<PieceSum*>(call.workspace.data()),
         pieces, u);
}

namespace {

template <typename G>
Update<G> adamw_of(const KernelCall& call) {
  base::require(call.ins[AdamwIn::kV].dtype() == DType::f32, "kernel", "adamw of {} on a device",
                name_of(call.ins[AdamwIn::kV].dtype()));
  Update<G> u = update_of<AdamwIn, AdamwOut, G>("adamw", call);
  u.v_in = data<float>(call.ins[AdamwIn::kV]), u.v = data<float>(call.outs[AdamwOut::kV]);
  return u;
}

bool is_coupled(const KernelCall& call) {
  return call.attributes.integer_or("coupled_decay", 0) != 0;
}

// Without lists.
template <typename G>
Adamw<G> adamw_like(const KernelCall& call, int64_t begin = 0) {
  Adamw<G> a;
  static_assert(sizeof a <= 4096);  // limit on kernel arguments
  a.lists = 0, a.begin = begin;
  a.updates = data<double>(call.ins[AdamwIn::kUpdates]);
  a.beta1 = static_cast<float>(call.attributes.number("beta1"));
  a.beta2 = static_cast<float>(call.attributes.number("beta2"));
  a.epsilon = static_cast<float>(call.attributes.number("epsilon"));
  a.coupled = is_coupled(call);
  return a;
}

// Appends a list of which `elements` are updated, N per thread.
template <int N, typename G>
void add_list(Adamw<G>& a, const Update<G>& u, int64_t elements) {
  a.at[a.lists] = u;
  a.end[a.lists] = quotient_up(elements, int64_t{kPieceThreads} * N) + (a.lists == 0 ? 0 : a.end[a.lists - 1]);
  ++a.lists;
}
template <int N, typename G>
void launch_adamw(device::Stream& stream, const Adamw<G>& a) {
  launch(stream, dim3(static_cast<unsigned>(a.end[a.lists - 1])), dim3(kPieceThreads), 0, adamw_step<G, N>, a);
}

}  // namespace

void adamw(const KernelCall& call) {
  dispatch("adamw", call.ins[AdamwIn::kG].dtype(), [&]<typename G>(G) {
    const Update<G> u = adamw_of<G>(call);
    in_runs(u, [&]<int N>(std::integral_constant<int, N>, int64_t begin, int64_t end) {
      Adamw<G> a = adamw_like<G>(call, begin);
      add_list<N>(a, u, end - begin);
      launch_adamw<N>(*call.stream, a);
    });
  });
}

// Fuses the updates of a step: small ones would each be dominated by the launch.
bool adamw_together(std::span<const KernelCall> calls) {
  const KernelCall& first = calls.front();
  const auto same = [&](const KernelCall& call) {
    const auto is = [&](size_t operand) { return call.ins[operand].data == first.ins[operand].data; };
    const auto as = [&](std::string_view name) {
      return call.attributes.number(name) == first.attributes.number(name);
    };
    return call.ins[AdamwIn::kG].dtype() == first.ins[AdamwIn::kG].dtype() && is(AdamwIn::kFactor) &&
           is(AdamwIn::kFinite) && is(AdamwIn::kUpdates) && as("beta1") && as("beta2") && as("epsilon") &&
           is_coupled(call) == is_coupled(first);
  };
  if (!std::ranges::all_of(calls, same)) return false;
  bool done = false;
  dispatch("adamw", first.ins[AdamwIn::kG].dtype(), [&]<typename G>(G) {
    if (calls.size() > kernels::kMostTogether) return;
    Adamw<G> a = adamw_like<G>(first);
    for (const KernelCall& call : calls) {
      const Update<G> u = adamw_of<G>(call);
      if (!is_wide(u) || u.count % kUpdated != 0) return;
      add_list<kUpdated>(a, u, u.count);
    }
    launch_adamw<kUpdated>(*first.stream, a);
    done = true;
  });
  return done;
}

void sgd(const KernelCall& call) {
  dispatch("sgd", call.ins[SgdIn::kG].dtype(), [&]<typename G>(G) {
    const Sgd<G> s = {.u = update_of<SgdIn, SgdOut, G>("sgd", call),
                      .momentum = static_cast<float>(call.attributes.number("momentum")),
                      .nesterov = call.attributes.integer_or("nesterov", 0) != 0};
    in_runs(s.u, [&]<int N>(std::integral_constant<int, N>, int64_t begin, int64_t end) {
      launch_pieces(*call.stream, (end - begin) / N, sgd_step<G, N>, s, begin, end);
    });
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
