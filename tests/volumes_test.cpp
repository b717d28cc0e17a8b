// The bytes that a rank sends in a step, counted in the program, compared with published volumes: Rajbhandari et al.
// 2020, section 7 (data parallel and ZeRO); Shoeybi et al. 2019, section 3 (tensor); Korthikanti et al. 2022, section
// 4.2 (sequence); Liu et al. 2023 (ring); Jacobs et al. 2023 (Ulysses). Each is multiplied by (N-1)/N.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "kintsugi/compile/programs.h"
#include "kintsugi/program/communication.h"
#include "tests/layouts.h"
#include "tests/parameters.h"

namespace kintsugi::tests::volumes_test {
namespace {

using program::Program;
using program::Traffic;

// "-even": every parameter and bucket is divisible by 8 ranks times 1,024 elements, so there is no padding. These are
// only compiled, so size is free. "-odd": nothing divides. "gpt-2": 124 million parameters.
config::Settings model_of(const std::string& name) {
  if (name == "gpt-2") return gpt2();
  config::Settings s = small_model(name.substr(0, name.find('-')), "fp32");
  s.model.dropout = 0;
  s.model.context = s.train.sequence = 8;
  if (name.ends_with("-even")) {
    s.model.vocab = 8192;
    s.model.embed = 8192;
    s.model.heads = 8;
    s.model.kv_heads = 8;
    s.model.ffn = 16384;
  }
  return s;
}

// The bytes that an instruction sends, from its operands: the blocks of n ranks except its own.
void expect_sizes(const Program& p) {
  for (const program::Body& body : p.bodies)
    for (const program::Instruction& i : body.instructions) {
      if (i.kind != program::Kind::collective) continue;
      const auto in = static_cast<double>(p.buffer(i.ins[0]).bytes()), n = static_cast<double>(p.mesh.count(i.group));
      const double bytes = i.collective == program::Collective::all_gather   ? in * (n - 1)
                           : i.collective == program::Collective::all_reduce ? 2 * in * (n - 1) / n
                           : i.collective == program::Collective::shift      ? in
                                                                             : in * (n - 1) / n;
      ASSERT_NEAR(i.cost.wire_bytes, bytes, 1e-9 * bytes) << name_of(i) << " of " << p.buffer(i.ins[0]).name;
    }
}

Program lowered(config::Settings s, const std::string& parallel, int64_t micro_batches = 1) {
  set_layout(s, parallel);
  s.train.global_batch = micro_batches * s.train.micro_batch * config::data_ranks(s.parallel);
  const auto kernels = compile::kernels_of(s);
  Program p = compile::only_stage(compile::compile({.settings = s, .kernels = *kernels}));
  expect_sizes(p);
  return p;
}

double sent(const Program& p, const std::function<bool(const Traffic&)>& which) {
  double bytes = 0;
  for (const Traffic& t : traffic(p, program::Step::train))
    if (which(t)) bytes += t.total();
  return bytes;
}

bool any(const Traffic&) {
  return true;
}

// Scalars of a step: loss and tokens are summed, 8 bytes each; with sharded optimizer state, the sums of squares of
// 1,024-element blocks are gathered for the norm.
double scalars(const std::vector<ParameterGroup>& groups, int64_t zero, int64_t parts) {
  double bytes = 2 * 2 * 8;
  if (zero > 0)
    for (const ParameterGroup& g : groups) bytes += 8.0 * static_cast<double>(g.stored(parts) / kBlock);
  return bytes;
}

// Elements communicated in a step: the published multiple of Psi, with a tied weight gathered for each use, minus what
// the backward pass never reads, and the head's table once, for the loss and its gradient. `size`: of a group.
struct Volume {
  double gathered = 0;  // weights
  double reduced = 0;   // gradients
};

Volume published(const std::vector<ParameterGroup>& groups, int64_t zero, int64_t m,
                 const std::function<int64_t(const ParameterGroup&)>& size) {
  Volume v;
  for (const ParameterGroup& g : groups) {
    const auto psi = static_cast<double>(size(g)), times = static_cast<double>(m);
    v.reduced += (zero >= 2 ? times : 1) * psi;
    // An all-reduce is a reduce-scatter and an all-gather: of the gradient, or of the new weight.
    if (zero <= 2) v.gathered += psi;
    if (zero == 3) v.gathered += times * psi * (g.forward_uses + (g.unread || g.with_gradient ? 0 : 1));
  }
  return v;
}

int64_t elements(const ParameterGroup& g) {
  return g.elements();
}

class Zero : public testing::TestWithParam<std::tuple<std::string, int, int>> {};

TEST_P(Zero, SendsWhatIsPublished) {
  const auto& [model, n, m] = GetParam();
  const config::Settings s = model_of(model);
  const std::vector<ParameterGroup> groups = parameter_groups(s);
  double psi = 0;
  for (const ParameterGroup& g : groups) psi += static_cast<double>(g.elements());
  for (int64_t zero : {0, 1, 2, 3}) {
    const int64_t parts = zero > 0 ? n : 1;
    const Program p = lowered(s, fmt::format("data={} zero={}", n, zero), m);
    const Volume bare = published(groups, zero, m, elements),
                 stored = published(groups, zero, m, [&](const ParameterGroup&g) { return g.stored(parts); });
    const double share = static_cast<double>(n - 1) / n, got = sent(p, any) / share,
                 volume = 4 * (bare.gathered + bare.reduced), padding = 4 * (stored.gathered + stored.reduced) - volume,
                 rest = scalars(groups, zero, parts);
    EXPECT_NEAR(got, volume + padding + rest, 1e-9 * got) << "zero=" << zero;
    EXPECT_EQ(padding == 0, model.ends_with("-even")) << "zero=" << zero;
    if (m == 2)
      fmt::print("{} data={} zero={} m={}: {:.4f} psi; padding {:.4f} psi, scalars {:.6f} psi\n", model, n, zero, m,
                 volume / (4 * psi), padding / (4 * psi), rest / (4 * psi));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Zero,
                         testing::Combine(testing::Values("gpt-even", "llama-even", "gpt-odd", "llama-odd"),
                                          testing::Values(2, 4, 8), testing::Values(1, 2, 4)));
INSTANTIATE_TEST_SUITE_P(Gpt2, Zero,
                         testing::Combine(testing::Values("gpt-2"), testing::Values(8), testing::Values(2)));

// Whether it is part of a layer. A table's rows are summed at their first use, which may be within one.
bool in_layer(const Program& p, const config::Settings& s, const program::Instruction& i) {
  return i.layer >= 0 && i.layer < s.model.layers && !p.buffer(i.ins[0]).name.starts_with("embedding");
}

// Activations communicated in one layer and micro-batch: how often, and the bytes that each rank sends.
struct PerLayer {
  std::map<std::string, std::pair<double, double>> kinds;  // (calls, bytes)
};

PerLayer per_layer(const Program& p, const config::Settings& s, int64_t micro_batches = 1) {
  PerLayer all;
  const double runs = static_cast<double>(s.model.layers * micro_batches);
  for (const program::Call& call : p.list(program::Step::train).calls)
    for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) {
      if (i.kind != program::Kind::collective || i.phase == program::Phase::update || !in_layer(p, s, i)) continue;
      auto& [calls, bytes] = all.kinds[std::string(name_of(i))];
      calls += 1 / runs;
      bytes += i.cost.wire_bytes / runs;
    }
  return all;
}

// "all_gather 4: 2048; reduce_scatter 2: 1024"
std::string text(const PerLayer& all) {
  std::string t;
  for (const auto& [kind, sum] : all.kinds)
    t += fmt::format("{}{} {:.3g}: {:.0f}", t.empty() ? "" : "; ", kind, sum.first, sum.second);
  return t;
}

// What is communicated outside of the layers and the update: "forward embedding all_reduce 1024; ...". Messages below
// `least` bytes are summed in `rest`.
std::string outside_layers(const Program& p, const config::Settings& s, double least, double& rest) {
  std::string t;
  rest = 0;
  for (const program::Call& call : p.list(program::Step::train).calls)
    for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) {
      if (i.kind != program::Kind::collective || i.phase == program::Phase::update || in_layer(p, s, i)) continue;
      std::string name = p.buffer(i.ins[0]).name;
      name.resize(std::min(name.size(), name.find(".parts")));
      if (i.cost.wire_bytes < least) {
        rest += i.cost.wire_bytes;
      } else {
        t += fmt::format("{}{} {} {} {:.0f}", t.empty() ? "" : "; ", name_of(i.phase), name, name_of(i),
                         i.cost.wire_bytes);
      }
    }
  return t;
}

// Bytes of one micro-batch on a rank: of the residual stream; of keys or of values; of one number per token.
struct Sizes {
  double stream, keys, queries, tokens;
};

Sizes sizes_of(const config::Settings& s) {
  const auto tokens = 4.0 * static_cast<double>(s.train.micro_batch * s.train.sequence);
  const auto head = s.model.embed / s.model.heads;
  return {.stream = tokens * static_cast<double>(s.model.embed),
          .keys = tokens * static_cast<double>(s.model.kv_heads * head),
          .queries = tokens * static_cast<double>(s.model.heads * head),
          .tokens = tokens};
}

std::string each(const char* kind, int calls, double bytes) {
  return fmt::format("{} {}: {:.0f}", kind, calls, calls * bytes);
}

}  // namespace

// The formulas without padding or tied weights: only the token table and the head are read once.
TEST(Volumes, OfZero) {
  const config::Settings s = model_of("llama-even");
  const std::vector<ParameterGroup> groups = parameter_groups(s);
  double psi = 0;
  for (const ParameterGroup& g : groups) psi += 4.0 * static_cast<double>(g.elements());
  const double table = 4.0 * 8192 * 8192;
  for (int64_t m : {1, 2, 4}) {
    const auto times = static_cast<double>(m);
    const double volumes[] = {2 * psi, 2 * psi, (times + 1) * psi, 3 * times * psi - 2 * times * table};
    for (int64_t zero : {0, 1, 2, 3}) {
      const Program p = lowered(s, fmt::format("data=8 zero={}", zero), m);
      EXPECT_NEAR(sent(p, any) * 8 / 7 - scalars(groups, zero, 8), volumes[zero], 1e-3) << zero;
    }
  }
}

// 2-byte weights and 4-byte gradients, which may be communicated in 2.
TEST(Volumes, OfNarrowWeightsAndWire) {
  config::Settings s = model_of("llama-even");
  s.train.dtype = "bf16";
  const std::vector<ParameterGroup> groups = parameter_groups(s);
  for (const char* wire : {"fp32", "bf16"})
    for (int64_t zero : {0, 1, 2, 3}) {
      const Volume v = published(groups, zero, 2, elements);
      const double gradients = wire == std::string("fp32") ? 4 : 2, weights = zero == 0 ? gradients : 2;
      const Program p = lowered(s, fmt::format("data=4 zero={} wire={}", zero, wire), 2);
      EXPECT_NEAR(sent(p, any) * 4 / 3 - scalars(groups, zero, 4), weights * v.gathered + gradients * v.reduced, 1e-3)
          << zero << " " << wire;
    }
}

// Groups of 2 ranks share the states, each of which is summed over the 4 groups once per step.
TEST(Volumes, OfHybridSharding) {
  const config::Settings s = model_of("llama-even");
  const std::vector<ParameterGroup> groups = parameter_groups(s);
  double psi = 0;
  for (const ParameterGroup& g : groups) psi += 4.0 * static_cast<double>(g.elements());
  const int64_t m = 2;
  for (int64_t zero : {1, 2, 3}) {
    const Program p = lowered(s, fmt::format("data=8 shard_group=2 zero={}", zero), m);
    const Volume v = published(groups, zero, m, elements);
    const auto over = [&](const std::string& axes) {
      return sent(p, [&](const Traffic& t) { return t.axes == axes; });
    };
    EXPECT_NEAR(over("data.2"), (4 * (v.gathered + v.reduced) + scalars(groups, zero, 2) - 32) / 2, 1e-3) << zero;
    EXPECT_NEAR(over("data.0 data.1"), 2 * psi / 2 * 3 / 4, 1e-3) << zero;
    EXPECT_NEAR(over("data"), 32.0 * 7 / 8, 1e-9) << zero;
  }
}

// Four sums of batch * seq * embed in each layer; in addition the embedding's, the input gradient of the head's, and
// the statistics of the loss. An all-reduce sends twice its size.
TEST(Volumes, OfTensor) {
  for (const char* family : {"gpt", "llama"})
    for (int64_t n : {2, 4, 8})
      for (int64_t m : {1, 2}) {
        const config::Settings s = model_of(std::string(family) + "-even");
        const Program p = lowered(s, fmt::format("tensor={}", n), m);
        const Sizes size = sizes_of(s);
        const double ranks = static_cast<double>(n), share = (ranks - 1) / ranks, sum = 2 * size.stream * share;
        EXPECT_EQ(text(per_layer(p, s, m)), each("all_reduce", 4, sum)) << family << n;
        std::string once =
            fmt::format("forward embedding all_reduce {0:.0f}; backward head_grad.0 all_reduce {0:.0f}", sum);
        if (m == 2) once += "; " + once;
        double statistics = 0;
        EXPECT_EQ(outside_layers(p, s, sum, statistics), once) << family << n;
        // Log-sums are gathered from all ranks, the labels' logits summed.
        EXPECT_EQ(statistics, static_cast<double>(m) * (ranks * size.tokens + 2 * size.tokens) * share) << family << n;
      }
}

// Sizes that do not divide change none of this: 3 key-value heads on 2 ranks, and 2 on 4, where two ranks share a head
// and sum the gradients of its projections once per step.
TEST(Volumes, OfTensorWithHeadsThatDoNotDivide) {
  for (const auto& [heads, kv_heads, n] : {std::tuple(3, 3, 2), std::tuple(4, 2, 4)}) {
    config::Settings s = model_of("gpt-odd");
    s.model.heads = heads;
    s.model.kv_heads = kv_heads;
    const Program p = lowered(s, fmt::format("tensor={}", n));
    const double share = static_cast<double>(n - 1) / n;
    EXPECT_EQ(text(per_layer(p, s)), each("all_reduce", 4, 2 * sizes_of(s).stream * share)) << n;
    const double shared = sent(p, [](const Traffic& t) { return t.value.ends_with("gradient"); });
    // In each layer two buckets, of key and value weights and biases, each at a multiple of 1,024 elements.
    EXPECT_EQ(shared, n == 2 ? 0 : 2.0 * static_cast<double>(s.model.layers) * 2 * 2048 * 4 / 2) << n;
  }
}

// With the residual stream split along seq, a sum is a reduce-scatter and an all-gather. Megatron keeps the gathered
// value for the backward pass; gathering again costs two more.
TEST(Volumes, OfSequenceParallel) {
  for (const char* family : {"gpt", "llama"})
    for (int64_t n : {2, 4, 8}) {
      const config::Settings s = model_of(std::string(family) + "-even");
      const double ranks = static_cast<double>(n), part = sizes_of(s).stream * (ranks - 1) / ranks;
      const Program anew = lowered(s, fmt::format("tensor={} sequence_parallel", n)),
                    kept = lowered(s, fmt::format("tensor={} sequence_parallel keep_gathered", n));
      EXPECT_EQ(text(per_layer(kept, s)), each("all_gather", 4, part) + "; " + each("reduce_scatter", 4, part))
          << family << n;
      EXPECT_EQ(text(per_layer(anew, s)), each("all_gather", 6, part) + "; " + each("reduce_scatter", 4, part))
          << family << n;
      // The same at both ends: the embedding's output and its gradient, the head's input and its gradient.
      const std::string norm = std::string(family) == "gpt" ? "layer_norm" : "rms_norm";
      const std::string ends = fmt::format(
          "forward embedding reduce_scatter {0:.0f}; backward {1} all_gather {0:.0f}; backward head_grad.0 "
          "reduce_scatter {0:.0f}; backward add all_gather {0:.0f}",
          part, norm);
      double statistics = 0;
      EXPECT_EQ(outside_layers(kept, s, part, statistics), ends) << family << n;
      EXPECT_EQ(outside_layers(anew, s, part, statistics), ends) << family << n;
      // For the loss, all ranks' log-sums, gathered and combined for the local tokens, and the labels' logits; for the
      // head's gradient, those log-sums and the gradients of both.
      EXPECT_EQ(statistics, sizes_of(s).tokens * ((ranks - 1) + 3 * (1 - 1 / ranks))) << n;
    }
}

// Two gathers of keys and values in each pass, one if they are kept, and a reduce-scatter of each gradient.
TEST(Volumes, OfGatheredKeys) {
  for (int64_t n : {2, 4}) {
    config::Settings s = model_of("gpt-even");
    s.model.kv_heads = 4;
    const double part = sizes_of(s).keys * static_cast<double>(n - 1) / static_cast<double>(n);
    EXPECT_EQ(text(per_layer(lowered(s, fmt::format("context={}", n)), s)),
              each("all_gather", 4, part) + "; " + each("reduce_scatter", 2, part));
    EXPECT_EQ(text(per_layer(lowered(s, fmt::format("context={} keep_gathered", n)), s)),
              each("all_gather", 2, part) + "; " + each("reduce_scatter", 2, part));
  }
}

// Keys and values make n-1 hops in each pass; their gradients make n and return to their rank. A hop sends a rank's
// part.
TEST(Volumes, OfARing) {
  for (int64_t n : {2, 4}) {
    config::Settings s = model_of("gpt-even");
    s.model.kv_heads = 4;
    const auto hops = static_cast<int>(2 * (n - 1) + 2 * (n - 1) + 2 * n);
    EXPECT_EQ(text(per_layer(lowered(s, fmt::format("context={} method=ring", n)), s)),
              each("shift", hops, sizes_of(s).keys / static_cast<double>(n)));
  }
}

// Query, key, value and output are exchanged between tokens and heads, and so are their gradients.
TEST(Volumes, OfUlysses) {
  for (int64_t n : {2, 4, 8}) {
    const config::Settings s = model_of("gpt-even");
    const auto ranks = static_cast<double>(n);
    EXPECT_EQ(text(per_layer(lowered(s, fmt::format("context={} method=ulysses", n)), s)),
              each("all_to_all", 8, sizes_of(s).queries / ranks * (ranks - 1) / ranks));
  }
}

// Units of a batch are reduced individually in every stage, so they can be added in a fixed order.
TEST(Volumes, OfReproducibleUnits) {
  config::Settings s = model_of("llama-even");
  const std::vector<ParameterGroup> groups = parameter_groups(s);
  double psi = 0;
  for (const ParameterGroup& g : groups) psi += 4.0 * static_cast<double>(g.elements());
  const double table = 4.0 * 8192 * 8192, m = 4;
  const double volumes[] = {2 * m * psi, (2 * m + 1) * psi, (m + 1) * psi, 3 * m * psi - 2 * m * table};
  s.train.reproducible = 8;
  for (int64_t zero : {0, 1, 2, 3}) {
    const Program p = lowered(s, fmt::format("data=2 zero={}", zero), 4);
    // Loss and tokens are summed per unit, too.
    const double rest = scalars(groups, zero, 2) + 32 * (m - 1);
    EXPECT_NEAR(sent(p, any) * 2 - rest, volumes[zero], 1e-3) << zero;
  }
}

// Slots are exchanged for experts, and returned; so are their gradients: four times the slots of a rank's samples in
// each layer. Besides them only the numbers of filled slots, 4 bytes per sample and expert.
TEST(Volumes, OfExperts) {
  for (int64_t n : {2, 4})
    for (const double bound : {1.0, 2.0}) {
      config::Settings s = model_of("mixtral-odd");
      s.model.experts = 8;
      s.model.experts_per_token = 2;
      s.train.expert_bound = bound;
      s.train.balance = "loss";
      const Program p = lowered(s, fmt::format("expert={}", n));
      const int64_t capacity = bound == 1.0 ? 2 : 4;  // of 8 tokens that use 2 of 8 experts each
      const double share = static_cast<double>(n - 1) / static_cast<double>(n),
                   numbers = 4.0 * static_cast<double>(s.train.micro_batch * s.model.experts) * share,
                   slots = numbers * static_cast<double>(capacity * s.model.embed);
      int times = 0, others = 0;
      for (const program::Call& call : p.list(program::Step::train).calls)
        for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) {
          if (i.kind != program::Kind::collective || i.collective != program::Collective::all_to_all) continue;
          const bool of_slots = i.cost.wire_bytes > 2 * numbers;
          (of_slots ? times : others) += 1;
          EXPECT_DOUBLE_EQ(i.cost.wire_bytes, of_slots ? slots : numbers) << p.buffer(i.ins[0]).name;
        }
      EXPECT_EQ(times, 4 * s.model.layers) << n << " " << bound;
      EXPECT_LE(others, 2 * s.model.layers) << n << " " << bound;
    }
}

}  // namespace kintsugi::tests::volumes_test
