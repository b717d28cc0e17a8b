// Memory of model states on a rank compared with Rajbhandari et al. 2020, figure 1: weights, gradients and optimizer
// state, divided by the number of ranks according to the stage, and temporarily gathered buffers. Programs are
// compiled; nothing is allocated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "kintsugi/compile/programs.h"
#include "tests/layouts.h"
#include "tests/parameters.h"

namespace kintsugi::tests::zero_memory_test {
namespace {

using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;

config::Settings model_of(const std::string& name, const std::string& dtype) {
  config::Settings s = name == "gpt-2" ? gpt2() : small_model(name, dtype);
  s.train.dtype = dtype;
  return s;
}

Program lowered(config::Settings s, const std::string& parallel, int64_t micro_batches = 1) {
  set_layout(s, parallel);
  s.train.global_batch = micro_batches * s.train.micro_batch * s.parallel.data;
  const auto kernels = compile::kernels_of(s);
  return compile::only_stage(compile::compile({.settings = s, .kernels = *kernels}));
}

// Bytes of the states of a kind on a rank, each buffer once.
int64_t held(const Program& p, program::StateKind kind) {
  std::set<BufferId> buffers;
  for (const program::StateInfo& s : p.states)
    if (s.kind == kind) buffers.insert(p.root(s.buffer));
  int64_t bytes = 0;
  for (BufferId b : buffers) bytes += p.buffer(b).bytes();
  return bytes;
}

// Bytes per parameter: fp32 has AdamW's two moments; bf16 also has master weights, and fp32 gradients.
struct Cost {
  program::StateKind kind;
  int64_t fp32, bf16;
  int64_t from;  // the stage that divides it
};
constexpr Cost kCosts[] = {{program::StateKind::weight, 4, 2, 3},
                           {program::StateKind::gradient, 4, 4, 2},
                           {program::StateKind::optimizer, 8, 12, 1}};

class States : public testing::TestWithParam<std::tuple<std::string, std::string, int>> {};

TEST_P(States, FollowFigure1) {
  const auto& [model, dtype, n] = GetParam();
  const config::Settings s = model_of(model, dtype);
  const std::vector<ParameterGroup> groups = parameter_groups(s);
  int64_t psi = 0;
  for (const ParameterGroup& g : groups) psi += g.elements();
  for (int64_t zero : {0, 1, 2, 3}) {
    const std::string layout = fmt::format("data={} zero={}", n, zero);
    const Program p = lowered(s, layout, 2), of_one = lowered(s, layout, 1);
    const int64_t parts = zero > 0 ? n : 1;
    int64_t stored = 0;
    for (const ParameterGroup& g : groups) stored += g.stored(parts);
    double figure = 0;
    int64_t all = 0, aligned = 0;
    for (const Cost& c : kCosts) {
      const int64_t bytes = dtype == "fp32" ? c.fp32 : c.bf16, divided = zero >= c.from ? n : 1;
      EXPECT_EQ(stored % divided, 0);
      for (const Program* each : {&p, &of_one})
        EXPECT_EQ(held(*each, c.kind), bytes * stored / divided) << name_of(c.kind) << " zero=" << zero;
      figure += static_cast<double>(bytes * psi) / static_cast<double>(divided);
      all += bytes * stored / divided;
    }
    // The region contains nothing else but the scalars of a run, each aligned separately.
    for (const program::StateInfo& state : p.states)
      if (state.kind == program::StateKind::statistic) aligned += p.alignment();
    EXPECT_EQ(p.state_bytes, all + aligned) << "zero=" << zero;
    // With one micro-batch, gradients are not states.
    EXPECT_EQ(of_one.state_bytes, all + aligned - held(p, program::StateKind::gradient)) << "zero=" << zero;
    fmt::print("{} {} data={} zero={}: {:.0f} bytes of figure 1, {:.0f} of padding ({:.2f}%)\n", model, dtype, n, zero,
               figure, static_cast<double>(all) - figure, 100 * (static_cast<double>(all) / figure - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Small, States,
                         testing::Combine(testing::Values("gpt", "llama"), testing::Values("fp32", "bf16"),
                                          testing::Values(2, 4, 8, 64)));
INSTANTIATE_TEST_SUITE_P(Gpt2, States,
                         testing::Combine(testing::Values("gpt-2"), testing::Values("fp32", "bf16"),
                                          testing::Values(2, 4, 8, 64)));

// The peak of a step of GPT-2 124M, 4 x 256 in bf16: at the end of the backward pass all gradients are live and no
// activations, and each layer's gradients take the memory of its activations. The arena beyond states and gradients is
// less than the activations of two layers; it used to hold those of all layers and the head's workspace.
TEST(OneMicroBatch, GradientsTakeThePlacesOfActivations) {
  config::Settings s = gpt2();
  s.train.dtype = "bf16";
  s.train.sequence = s.model.context = 256;
  s.train.micro_batch = 4;
  const Program p = lowered(s, "");
  int64_t states = 0;
  for (const program::StateKind kind : tensor::kStateKinds) states += held(p, kind);
  fmt::print("{} bytes, {} of them states and gradients\n", p.bytes(), states);
  constexpr int64_t kLayer = (32 * 768 + 4 * 12) * 256 * 4;  // 32 sbh + 4 asb
  EXPECT_LT(p.bytes(), states + 2 * kLayer);
  EXPECT_LT(p.bytes(), 2'300'000'000);
  const Program passes = lowered(s, "", 2);
  EXPECT_GT(passes.bytes(), states + 12 * kLayer);
  for (const char* layout : {"data=2", "data=2 zero=1", "data=2 zero=2", "data=2 zero=3", "recompute=full"})
    EXPECT_LE(lowered(s, layout).bytes(), lowered(s, layout, 2).bytes()) << layout;
}

// The instructions of a step in execution order, over all micro-batches.
std::vector<const Instruction*> expanded(const Program& p) {
  std::vector<const Instruction*> line;
  for (const program::Call& call : p.list(program::Step::train).calls)
    for (const Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) line.push_back(&i);
  return line;
}

// Temporarily whole weights or gradients of a layer: an arena buffer, from its first write to its last use, for each
// occurrence.
struct Whole {
  BufferId buffer;
  int layer;
  size_t begin, end;
};

// By default gathered weights; or gradients before their reduction to a rank's shard.
std::vector<Whole> whole_buckets(const Program& p, bool gradients = false) {
  const std::vector<const Instruction*> line = expanded(p);
  const auto region = [&](BufferId b) { return p.buffer(p.root(b)).region; };
  std::set<BufferId> gradient_buffers;
  for (const Instruction* i : line)
    if (gradients && i->kind == Kind::collective && i->collective == program::Collective::reduce_scatter)
      gradient_buffers.insert(p.root(i->ins[0]));
  std::vector<Whole> all;
  std::map<BufferId, size_t> now;
  for (size_t at = 0; at < line.size(); ++at) {
    const Instruction& i = *line[at];
    const bool gathers = !gradients && i.kind == Kind::collective && i.collective == program::Collective::all_gather &&
                         i.phase != program::Phase::update && region(i.ins[0]) == program::Region::state;
    for (const auto* list : {&i.ins, &i.outs})
      for (BufferId b : *list) {
        const BufferId root = p.root(b);
        // A gather starts a new one; so does a gradient buffer that the last body did not use.
        const bool begins = gathers ? list == &i.outs : gradient_buffers.contains(root) && !now.contains(root);
        if (begins) {
          now[root] = all.size();
          all.push_back({root, i.layer, at, at});
        }
        if (const auto found = now.find(root); found != now.end()) all[found->second].end = at;
      }
  }
  return all;
}

struct Most {
  size_t layers = 0;
  int64_t bytes = 0;
};

Most most_at_once(const Program& p, const std::vector<Whole>& all) {
  Most most;
  for (const Whole& w : all) {
    std::set<int> layers;
    int64_t bytes = 0;
    for (const Whole& other : all)
      if (other.begin <= w.begin && w.begin <= other.end) {
        layers.insert(other.layer);
        bytes += p.buffer(other.buffer).bytes();
      }
    most = {std::max(most.layers, layers.size()), std::max(most.bytes, bytes)};
  }
  return most;
}

// The largest sum of two adjacent layers, for fp32 on 2 ranks.
int64_t largest_neighbours(const config::Settings& s, bool where_used) {
  std::map<int, int64_t> of_layer;
  for (const ParameterGroup& g : parameter_groups(s)) {
    of_layer[g.layer] += 4 * g.stored(2);
    if (where_used && g.forward_uses > 1) of_layer[static_cast<int>(s.model.layers)] += 4 * g.stored(2);
  }
  int64_t most = 0;
  for (auto i = of_layer.begin(); std::next(i) != of_layer.end(); ++i)
    most = std::max(most, i->second + std::next(i)->second);
  return most;
}

}  // namespace

// The next layer's weights are gathered while a layer computes: at most two layers' are live.
TEST(GatheredWeights, OfTwoLayersAtMost) {
  for (const char* model : {"gpt", "llama", "gpt-2"}) {
    config::Settings s = model_of(model, "fp32");
    s.model.layers = std::max<int64_t>(s.model.layers, 5);
    const Program p = lowered(s, "data=2 zero=3", 2);
    const Most most = most_at_once(p, whole_buckets(p));
    EXPECT_EQ(most.layers, 2u) << model;
    EXPECT_EQ(most.bytes, largest_neighbours(s, true)) << model;
    fmt::print("{}: {} bytes of gathered weights at most, of {} in all\n", model, most.bytes,
               2 * held(p, program::StateKind::weight));
  }
}

// A layer's gradients are reduced while the next one's are computed. Those of a tied table wait for its other use, at
// the other end.
TEST(WholeGradients, OfTwoLayersAtMost) {
  for (int64_t zero : {2, 3}) {
    const config::Settings s = model_of("llama", "fp32");
    const Program p = lowered(s, fmt::format("data=2 zero={}", zero));
    const Most most = most_at_once(p, whole_buckets(p, true));
    EXPECT_EQ(most.layers, 2u) << zero;
    EXPECT_EQ(most.bytes, largest_neighbours(s, false)) << zero;

    const Program tied = lowered(gpt2(), fmt::format("data=2 zero={}", zero));
    const Most with_table = most_at_once(tied, whole_buckets(tied, true));
    int64_t table = 0, layer = 0;
    for (const ParameterGroup& g : parameter_groups(gpt2())) {
      if (g.forward_uses > 1) table = 4 * g.stored(2);
      if (g.layer == 0) layer += 4 * g.stored(2);
    }
    EXPECT_EQ(with_table.layers, 3u) << zero;
    EXPECT_EQ(with_table.bytes, table + 2 * layer) << zero;
  }
}

// The planned arena: that of plain data parallelism, and the temporarily whole buffers.
TEST(Arena, OfZero3) {
  for (const char* model : {"gpt", "llama", "gpt-2"}) {
    const config::Settings s = model_of(model, "fp32");
    const Program plain = lowered(s, "data=2"), p = lowered(s, "data=2 zero=3");
    const int64_t weights = most_at_once(p, whole_buckets(p)).bytes,
                  gradients = most_at_once(p, whole_buckets(p, true)).bytes;
    const program::CallList &without = plain.list(program::Step::train), &with = p.list(program::Step::train);
    EXPECT_LE(with.lower_bound_bytes, without.lower_bound_bytes + weights + gradients) << model;
    EXPECT_GT(with.lower_bound_bytes, std::max(weights, gradients)) << model;
    fmt::print("{}: arena {} bytes, {} without ZeRO; at most {} of gathered weights and {} of whole gradients\n", model,
               with.arena_bytes, without.arena_bytes, weights, gradients);
  }
}

}  // namespace kintsugi::tests::zero_memory_test
