// Products of bf16 matrices of a GPT-2 124M step, GFLOP/s: ours on each unit of the machine, oneDNN's matmul in bf16
// (its own weights' format, without and with making it), and oneDNN's sgemm in fp32. Contenders take turns; the best of
// their times counts.
//
//   bf16_products [threads, 1] [tokens, 1024] [rounds, 5] [part of a shape's name]
#include <fmt/format.h>
#include <omp.h>

#include <cstdlib>
#include <ctime>
#include <dnnl.hpp>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/gemm_bf16.h"
#include "kintsugi/kernels/host/peak.h"

namespace {

using namespace kintsugi;
using kernels::cpu::Bf16Product;
using tensor::bf16;
using tensor::DType;
using Strides = dnnl::memory::dims;

double seconds_now(int threads) {
  timespec time = {};
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Line {
  alignas(64) std::byte bytes[64];
};
using Memory = std::vector<Line>;

template <typename T>
T* filled(Memory& memory, int64_t n) {
  memory.resize(static_cast<size_t>(n) * sizeof(T) / sizeof(Line) + 1);
  T* to = reinterpret_cast<T*>(memory.data());
  for (int64_t i = 0; i < n; ++i) to[i] = T(static_cast<float>(i * 2654435761 % 1024) / 1024 - 0.5f);
  return to;
}

// y [m n] = a [m k] * b [k n]; a or b may be transposed; y is bf16, or `wide` fp32.
struct Shape {
  std::string name;
  int64_t m, n, k;
  bool a_transposed, b_transposed, wide, adds;
};

Strides strides(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? Strides{1, rows} : Strides{columns, 1};
}

struct Contender {
  std::string name;
  std::function<void()> run;
  double best = std::numeric_limits<double>::infinity();
};

class Trial {
 public:
  Trial(const Shape& s, base::ThreadTeam& team) : s_(s), team_(team) {
    a_ = filled<bf16>(memory_[0], s.m * s.k), b_ = filled<bf16>(memory_[1], s.k * s.n);
    y_ = filled<float>(memory_[2], s.m * s.n);
    wide_a_ = filled<float>(memory_[3], s.m * s.k), wide_b_ = filled<float>(memory_[4], s.k * s.n);
    for (const kernels::cpu::Bf16Unit* unit : kernels::cpu::bf16_units())
      contenders_.push_back({std::string(unit->name), [this, unit] { ours(unit); }});
    add_library();
    contenders_.push_back({"sgemm", [this] {
                             dnnl::sgemm(s_.a_transposed ? 'T' : 'N', s_.b_transposed ? 'T' : 'N', s_.m, s_.n, s_.k, 1,
                                         wide_a_, s_.a_transposed ? s_.m : s_.k, wide_b_, s_.b_transposed ? s_.k : s_.n,
                                         s_.adds ? 1 : 0, y_, s_.n);
                           }});
  }

  std::vector<Contender>& contenders() { return contenders_; }
  void round() {
    for (Contender& c : contenders_)
      for (double spent = 0; spent < 0.05;) {
        const double start = seconds_now(team_.size());
        c.run();
        const double seconds = seconds_now(team_.size()) - start;
        c.best = std::min(c.best, seconds);
        spent += seconds;
      }
  }

 private:
  void ours(const kernels::cpu::Bf16Unit* unit) {
    Bf16Product p = {.m = s_.m, .n = s_.n, .k = s_.k, .a = a_, .b = b_};
    p.a_row = s_.a_transposed ? 1 : s_.k, p.a_column = s_.a_transposed ? s_.m : 1;
    p.b_row = s_.b_transposed ? 1 : s_.n, p.b_column = s_.b_transposed ? s_.k : 1;
    p.c = reinterpret_cast<std::byte*>(y_), p.c_row = s_.n;
    p.c_dtype = s_.wide ? DType::f32 : DType::bf16, p.accumulate = s_.adds;
    kernels::cpu::Scratch size;
    kernels::cpu::take_bf16_scratch({p}, team_.size(), false, size);
    memory_[5].resize(static_cast<size_t>(size.bytes()) / sizeof(Line) + 1);
    kernels::cpu::Scratch scratch({memory_[5][0].bytes, memory_[5].size() * sizeof(Line)});
    kernels::cpu::use_bf16_unit(unit);
    kernels::cpu::multiply(p, kernels::cpu::take_bf16_scratch({p}, team_.size(), false, scratch), team_);
    kernels::cpu::use_bf16_unit(nullptr);
  }

  void add_library() {
    using dnnl::memory;
    const auto narrow = memory::data_type::bf16, wide = memory::data_type::f32;
    const memory::desc a({s_.m, s_.k}, narrow, strides(s_.m, s_.k, s_.a_transposed));
    const memory::desc b({s_.k, s_.n}, narrow, strides(s_.k, s_.n, s_.b_transposed));
    const memory::desc any({s_.k, s_.n}, narrow, memory::format_tag::any);
    const memory::desc y({s_.m, s_.n}, s_.wide ? wide : narrow, strides(s_.m, s_.n, false));
    dnnl::primitive_attr attributes;
    if (s_.adds) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      attributes.set_post_ops(sum);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine_, a, any, y, attributes);
#else
    const dnnl::matmul::primitive_desc description({a, any, y}, attributes, engine_);
#endif
    memory a_memory(a, engine_, a_), b_memory(b, engine_, b_), y_memory(y, engine_, y_);
    memory packed(description.weights_desc(), engine_);
    dnnl::reorder reorder(b_memory, packed);
    reorder.execute(stream_, b_memory, packed);
    dnnl::matmul matmul(description);
    const std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, y_memory}};
    contenders_.push_back({"oneDNN", [=, this] { matmul.execute(stream_, arguments), stream_.wait(); }});
    contenders_.push_back({"+reorder", [=, this]() mutable {
                             reorder.execute(stream_, b_memory, packed);
                             matmul.execute(stream_, arguments), stream_.wait();
                           }});
  }

  Shape s_;
  base::ThreadTeam& team_;
  Memory memory_[6];
  bf16 *a_, *b_;
  float *y_, *wide_a_, *wide_b_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  mutable dnnl::stream stream_{engine_};
  std::vector<Contender> contenders_;
};

void peak_of_units(base::ThreadTeam& team) {
  for (const kernels::cpu::Bf16Unit* unit : kernels::cpu::bf16_units())
    fmt::print("{}: {:.0f} GFLOP/s on tiles in the first level cache, {} threads\n", unit->name,
               kernels::host::measure_peak_flops(team, *unit) / 1e9, team.size());
  fmt::print("fp32: {:.0f} GFLOP/s in registers, {} threads\n",
             kernels::host::measure_peak_flops(team, DType::f32) / 1e9, team.size());
}

std::vector<Shape> shapes(int64_t tokens) {
  std::vector<Shape> list;
  const auto add = [&](const std::string& name, int64_t in, int64_t out, bool head) {
    // The head's table is [vocab embed], all others [in out].
    list.push_back({name + " y", tokens, out, in, false, head, head, false});
    list.push_back({name + " dx", tokens, in, out, false, !head, head, false});
    if (head) {
      list.push_back({name + " dw", out, in, tokens, true, false, true, true});
    } else {
      list.push_back({name + " dw", in, out, tokens, true, false, true, true});
    }
  };
  add("768x2304", 768, 2304, false);
  add("768x768", 768, 768, false);
  add("768x3072", 768, 3072, false);
  add("3072x768", 3072, 768, false);
  add("head 768x50257", 768, 50257, true);
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int value) { return argc > i ? std::atoi(argv[i]) : value; };
  base::ThreadTeam team(argument(1, 1));
  omp_set_num_threads(team.size());
  peak_of_units(team);
  bool first = true;
  for (const Shape& shape : shapes(argument(2, 1024))) {
    if (argc > 4 && shape.name.find(argv[4]) == std::string::npos) continue;
    Trial trial(shape, team);
    for (int round = 0; round < argument(3, 5); ++round) trial.round();
    if (first) {
      fmt::print("{:20}", "");
      for (const Contender& c : trial.contenders()) fmt::print("{:>12}", c.name);
      fmt::print("\n");
      first = false;
    }
    fmt::print("{:20}", shape.name);
    for (const Contender& c : trial.contenders())
      fmt::print("{:12.0f}", 2e-9 * static_cast<double>(shape.m * shape.n * shape.k) / c.best);
    fmt::print("\n");
    std::fflush(stdout);
  }
}
