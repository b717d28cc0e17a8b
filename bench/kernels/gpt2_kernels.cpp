// The kernels of GPT-2 124M, batch 4 x 256 tokens, and next to each product a bare dnnl_sgemm of the same shape, split
// over the same threads.
//
//   gpt2_kernels [--benchmark_filter=...]     threads: KINTSUGI_THREADS, else all processors
#include <benchmark/benchmark.h>
#include <omp.h>

#include <cstdlib>
#include <dnnl.hpp>
#include <functional>
#include <map>
#include <thread>

#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/host/peak.h"
#include "kintsugi/kernels/kernel_set.h"

namespace {

using namespace kintsugi;
using tensor::DType;
using tensor::Shape;
using tensor::Type;

constexpr int64_t kBatch = 4, kSeq = 256, kEmbed = 768, kFfn = 3072, kVocab = 50257, kHeads = 12, kHeadDim = 64;

base::ThreadTeam& team() {
  const char* asked = std::getenv("KINTSUGI_THREADS");
  static base::ThreadTeam one(asked ? std::atoi(asked) : static_cast<int>(std::thread::hardware_concurrency()));
  return one;
}

struct Line {
  alignas(64) std::byte bytes[64];
};

// One call with its own operands, filled with small numbers. Optional ones are present if all are given.
class Call {
 public:
  Call(std::string_view kind, tensor::Attributes attributes, std::vector<Type> ins, std::vector<Type> outs,
       uint32_t accumulate = 0)
      : set_(kernels::cpu_kernels()),
        kernel_(set_->find(kind)),
        attributes_(std::move(attributes)),
        accumulate_(accumulate) {
    add_all(ins, kernel_.ins, ins_);
    add_all(outs, kernel_.outs, outs_);
    const std::vector<const Type*> in_types = types_of(ins_), out_types = types_of(outs_);
    const kernels::KernelShapes shapes{in_types, out_types, attributes_, team().size()};
    workspace_.resize(static_cast<size_t>(kernel_.workspace ? kernel_.workspace(shapes) : 0) / sizeof(Line) + 1);
  }
  void operator()() {
    kernel_.run({.ins = ins_,
                 .outs = outs_,
                 .attributes = attributes_,
                 .indices = indices_,
                 .accumulate = accumulate_,
                 .workspace = {workspace_[0].bytes, workspace_.size() * sizeof(Line)},
                 .numbers = numbers_,
                 .team = team()});
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto* views : {&ins_, &outs_})
      for (const auto& v : *views) sum += v.data ? v.type.bytes() : 0;
    return sum;
  }

 private:
  void add_all(const std::vector<Type>& types, const tensor::OperandList& names, std::vector<tensor::View>& views) {
    const bool all = types.size() >= names.size();
    for (const Type& type : types) {
      while (!all && names[views.size()].optional) views.push_back({});
      add(type, views);
    }
    while (views.size() < names.size()) views.push_back({});
  }
  static std::vector<const Type*> types_of(const std::vector<tensor::View>& views) {
    std::vector<const Type*> types;
    for (const tensor::View& v : views) types.push_back(v.data ? &v.type : nullptr);
    return types;
  }
  void add(const Type& type, std::vector<tensor::View>& views) {
    auto& memory = memory_.emplace_back(static_cast<size_t>(type.bytes()) / sizeof(Line) + 1);
    views.push_back({memory[0].bytes, type});
    for (int64_t i = 0; i < type.shape.elements(); ++i) {
      const float x = static_cast<float>(i * 2654435761 % 1024) / 1024 - 0.5f;
      if (type.dtype == DType::f32) views.back().as<float>()[static_cast<size_t>(i)] = x;
      if (type.dtype == DType::bf16) views.back().as<tensor::bf16>()[static_cast<size_t>(i)] = tensor::bf16(x);
      if (type.dtype == DType::f16) views.back().as<tensor::f16>()[static_cast<size_t>(i)] = tensor::f16(x);
      if (type.dtype == DType::f64) views.back().as<double>()[static_cast<size_t>(i)] = 1;
      if (type.dtype == DType::i32) views.back().as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i % 5000);
    }
    for (const tensor::Dim& dim : type.shape) indices_.push_back({dim.name, tensor::DimIndex(dim.size)});
  }

  std::unique_ptr<kernels::KernelSet> set_;
  const kernels::Kernel& kernel_;
  tensor::Attributes attributes_;
  uint32_t accumulate_;
  std::vector<tensor::View> ins_, outs_;
  std::vector<std::vector<Line>> memory_;
  std::vector<kernels::NamedIndex> indices_;
  std::vector<Line> workspace_;
  kernels::Numbers numbers_;
};

void rate(benchmark::State& state, const char* name, double per_call) {
  state.counters[name] = benchmark::Counter(per_call / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

void add_flops(const std::string& name, double flops, std::function<Call()> make) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 Call call = make();
                                 call();
                                 for (auto _ : state) call();
                                 rate(state, "GFLOP/s", flops);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void add_bytes(const std::string& name, std::function<Call()> make) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 Call call = make();
                                 call();
                                 for (auto _ : state) call();
                                 rate(state, "GB/s", static_cast<double>(call.bytes()));
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

// The baseline: rows split over the threads.
void add_sgemm(const std::string& name, char a, char b, int64_t m, int64_t n, int64_t k) {
  benchmark::RegisterBenchmark((name + "/bare_sgemm").c_str(),
                               [=](benchmark::State& state) {
                                 std::vector<float> x(static_cast<size_t>(m * k), 0.5f),
                                     y(static_cast<size_t>(k * n), 0.25f), z(static_cast<size_t>(m * n));
                                 const auto run = [&] {
                                   team().run([&](int thread) {
                                     omp_set_num_threads(1);
                                     const base::Range r = base::share(m, thread, team().size(), 8);
                                     dnnl::sgemm(a, b, r.size(), n, k, 1.0f,
                                                 x.data() + (a == 'N' ? r.begin * k : r.begin), a == 'N' ? k : m,
                                                 y.data(), b == 'N' ? n : k, 0.0f, z.data() + r.begin * n, n);
                                   });
                                 };
                                 run();
                                 for (auto _ : state) run();
                                 rate(state, "GFLOP/s", 2.0 * static_cast<double>(m * n * k));
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

Shape tokens(std::initializer_list<tensor::Dim> more) {
  std::vector<tensor::Dim> dims = {{"batch", kBatch}, {"seq", kSeq}};
  dims.insert(dims.end(), more);
  return Shape(dims);
}

void add_products(const std::string& name, int64_t in, int64_t out, DType t) {
  const int64_t rows = kBatch * kSeq;
  const double flops = 2.0 * static_cast<double>(rows * in * out);
  const Type x{tokens({{"in", in}}), t}, y{tokens({{"out", out}}), t}, w{{{"in", in}, {"out", out}}, t};
  const Type bias{{{"out", out}}, t}, dw{{{"in", in}, {"out", out}}, DType::f32};
  add_flops(name + "/forward", flops, [=] { return Call("contract", {}, {x, w, bias}, {y}); });
  if (t == DType::f32) add_sgemm(name + "/forward", 'N', 'N', rows, out, in);
  add_flops(name + "/input_grad", flops, [=] { return Call("contract", {}, {y, w}, {x}); });
  if (t == DType::f32) add_sgemm(name + "/input_grad", 'N', 'T', rows, in, out);
  add_flops(name + "/weight_grad", flops, [=] { return Call("contract", {}, {x, y}, {dw}, 1); });
  if (t == DType::f32) add_sgemm(name + "/weight_grad", 'T', 'N', in, out, rows);
}

// `of`: appended to its name.
void add_attention(const std::string& type, int64_t batch, int64_t seq, const std::string& of, DType t) {
  const Shape rows({{"batch", batch}, {"seq", seq}, {"kv_heads", kHeads}, {"group", 1}});
  const Shape q({{"batch", batch}, {"seq", seq}, {"kv_heads", kHeads}, {"group", 1}, {"head_dim", kHeadDim}});
  const Shape k({{"batch", batch}, {"key_seq", seq}, {"kv_heads", kHeads}, {"head_dim", kHeadDim}});
  const Type lse{rows, DType::f32};
  // Pairs visible under the causal mask, with two matmuls forward and five backward.
  const double pairs = static_cast<double>(batch * kHeads * seq) * static_cast<double>(seq + 1) / 2 * kHeadDim * 2;
  for (const double dropout : {0.0, 0.1}) {
    const tensor::Attributes attributes{{"causal", int64_t{1}}, {"scale", 0.125}, {"dropout", dropout}, {"key", "k"}};
    const std::string with = of + (dropout > 0 ? "_dropout" : "");
    add_flops(type + "attention" + with, 2 * pairs, [=] {
      return Call("attention", attributes, {{q, t}, {k, t}, {k, t}}, {{q, t}, lse});
    });
    add_flops(type + "attention_grad" + with, 5 * pairs, [=] {
      return Call("attention_grad", attributes, {{q, t}, {k, t}, {k, t}, {q, t}, lse, {q, t}},
                  {{q, t}, {k, t}, {k, t}});
    });
  }
}

void add_all(DType t) {
  const std::string type = std::string(name_of(t)) + "/";
  add_products(type + "qkv", kEmbed, 3 * kEmbed, t);
  add_products(type + "attention_out", kEmbed, kEmbed, t);
  add_products(type + "ffn_in", kEmbed, kFfn, t);
  add_products(type + "ffn_out", kFfn, kEmbed, t);

  add_attention(type, kBatch, kSeq, "", t);
  add_attention(type, 1, 8192, "_8192", t);
  const Type x{tokens({{"embed", kEmbed}}), t}, table{{{"vocab", kVocab}, {"embed", kEmbed}}, t};
  const Type labels{tokens({}), DType::i32}, stats{tokens({}), DType::f32};
  const Type dtable{{{"vocab", kVocab}, {"embed", kEmbed}}, DType::f32};
  const double head = 2.0 * static_cast<double>(kBatch * kSeq * kVocab * kEmbed);
  add_flops(type + "head", head, [=] { return Call("head", {}, {x, table, labels}, {stats, stats}); });
  add_flops(type + "head_with_grad", 3 * head, [=] {
    return Call("head_with_grad", {}, {x, table, labels, stats, stats}, {stats, stats, x, dtable});
  });
  add_flops(type + "head_grad", 3 * head, [=] {
    return Call("head_grad", {}, {x, table, labels, stats, stats, stats}, {x, dtable});
  });

  const Type row{{{"embed", kEmbed}}, t}, row_grad{{{"embed", kEmbed}}, DType::f32}, ffn{tokens({{"ffn", kFfn}}), t};
  const tensor::Attributes norm{{"epsilon", 1e-5}}, form{{"form", "tanh"}}, erf{{"form", "erf"}};
  add_bytes(type + "layer_norm", [=] { return Call("layer_norm", norm, {x, row, row}, {x}); });
  add_bytes(type + "layer_norm_grad", [=] {
    return Call("layer_norm_grad", norm, {x, row, x}, {x, row_grad, row_grad});
  });
  add_bytes(type + "gelu_tanh", [=] { return Call("gelu", form, {ffn}, {ffn}); });
  add_bytes(type + "gelu_tanh_grad", [=] { return Call("gelu_grad", form, {ffn, ffn}, {ffn}); });
  add_bytes(type + "gelu_erf", [=] { return Call("gelu", erf, {ffn}, {ffn}); });
  add_bytes(type + "add", [=] { return Call("add", {}, {x, x}, {x}); });
  add_bytes(type + "dropout", [=] { return Call("dropout", {{"p", 0.1}, {"key", "k"}}, {x}, {x}); });
  add_bytes(type + "bias_grad", [=] { return Call("sum", {}, {ffn}, {{{{"ffn", kFfn}}, DType::f32}}); });
  add_bytes(type + "embedding", [=] { return Call("embedding", {}, {labels, table}, {x}); });
  add_bytes(type + "embedding_grad", [=] { return Call("embedding_grad", {}, {labels, x}, {dtable}, 1); });
  const Type flat{{{"flat", kFfn * kEmbed * 4}}, DType::f32}, scalar{{}, DType::f64};
  const Type blocks{{{"block", kFfn * kEmbed * 4 / 1024}}, DType::f64};
  add_bytes(type + "sum_squares", [=] { return Call("sum_squares", {}, {flat}, {blocks}); });
  add_bytes(type + "adamw", [=] {
    return Call("adamw", {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}},
                {flat, flat, flat, flat, scalar, scalar, scalar}, {flat, flat, flat});
  });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("units", kernels::host::simd_target());
  benchmark::AddCustomContext("threads", std::to_string(team().size()));
  benchmark::AddCustomContext("peak GFLOP/s",
                              std::to_string(kernels::host::measure_peak_flops(team(), DType::f32) / 1e9));
  for (const DType t : {DType::f32, DType::bf16}) add_all(t);
  benchmark::RunSpecifiedBenchmarks();
}
