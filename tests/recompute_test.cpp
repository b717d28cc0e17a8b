// Recomputation in whole models: what is kept, by name and to the byte; equal bits; and the memory saved, compared with
// Korthikanti et al. 2022, section 4.
#include "kintsugi/lower/order/recompute.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/lower/fuse/join_head.h"
#include "kintsugi/models/models.h"
#include "tests/same_bits.h"

namespace kintsugi::tests::recompute_test {
namespace {

using lower::Recompute;
using program::BufferId;
using program::Instruction;
using program::Program;

constexpr Recompute kNone = {}, kLight = {.what = Recompute::What::light},
                    kSelective = {.what = Recompute::What::selective}, kFull = {.what = Recompute::What::full};

config::Settings with(config::Settings s, const Recompute& how) {
  constexpr const char* names[] = {"none", "light", "selective", "full"};
  s.parallel.recompute = names[static_cast<size_t>(how.what)];
  s.parallel.recompute_every = how.every;
  return s;
}

// "-1: dropout\n0: add": by layer, the names of what is kept.
std::string kept_by_layer(const config::Settings& s, const Recompute& how) {
  const models::Graphs graphs = models::build_training(s);
  const graph::Graph micro = lower::recompute(*graphs.micro, how, static_cast<int>(s.model.layers));
  std::map<int, std::string> names;
  for (graph::ValueId v : lower::kept(micro))
    names[micro.op_at(static_cast<size_t>(micro.value(v).op)).layer] += " " + micro.value(v).name;
  std::string text;
  for (const auto& [layer, list] : names) text += fmt::format("{}:{}\n", layer, list);
  return text;
}

// gpt, in the order of the backward pass: the norm's output, query, key, value, attention and its statistics, the
// residual stream, the norm's output, both sides of the activation, the residual stream. llama: value, and query and
// key after rotation; both factors of the gated activation.
constexpr const char* kGptLayer = " layer_norm add add add attention.0 attention.1 add layer_norm add gelu add\n";
constexpr const char* kGptSelective = " layer_norm add add add add layer_norm add gelu add\n";
constexpr const char* kGptLight = " add add add attention.0 attention.1 add add add\n";
constexpr const char* kGptHead = "2: layer_norm head.0\n";
constexpr const char* kLlamaLayer =
    " rms_norm contract rotary rotary attention.0 attention.1 add rms_norm contract contract gated add\n";
constexpr const char* kLlamaSelective = " rms_norm contract rotary rotary add rms_norm contract contract gated add\n";
constexpr const char* kLlamaLight = " contract rotary rotary attention.0 attention.1 add contract contract add\n";
constexpr const char* kLlamaHead = "2: rms_norm head.0\n";
constexpr const char* kInput = "-1: dropout\n";

TEST(Kept, ByNameOfGpt) {
  const config::Settings s = small_model("gpt", "fp32");
  const std::string none = kGptLayer, selective = kGptSelective;
  EXPECT_EQ(kept_by_layer(s, kNone), kInput + ("0:" + none) + "1:" + none + kGptHead);
  EXPECT_EQ(kept_by_layer(s, kLight), kInput + ("0:" + std::string(kGptLight)) + "1:" + kGptLight + kGptHead);
  EXPECT_EQ(kept_by_layer(s, kSelective), kInput + ("0:" + selective) + "1:" + selective + kGptHead);
  EXPECT_EQ(kept_by_layer(s, kFull), std::string(kInput) + "0: add\n1: add\n" + kGptHead);
  EXPECT_EQ(kept_by_layer(s, {.what = Recompute::What::full, .every = 2}),
            std::string(kInput) + "0: add\n1:" + none + kGptHead);
  EXPECT_EQ(kept_by_layer(s, {.what = Recompute::What::selective, .every = 2}),
            kInput + ("0:" + selective) + "1:" + none + kGptHead);
}

TEST(Kept, ByNameOfLlama) {
  const config::Settings s = small_model("llama", "fp32");
  const std::string none = kLlamaLayer, selective = kLlamaSelective;
  EXPECT_EQ(kept_by_layer(s, kNone), kInput + ("0:" + none) + "1:" + none + kLlamaHead);
  EXPECT_EQ(kept_by_layer(s, kLight), kInput + ("0:" + std::string(kLlamaLight)) + "1:" + kLlamaLight + kLlamaHead);
  EXPECT_EQ(kept_by_layer(s, kSelective), kInput + ("0:" + selective) + "1:" + selective + kLlamaHead);
  EXPECT_EQ(kept_by_layer(s, kFull), std::string(kInput) + "0: add\n1: add\n" + kLlamaHead);
  EXPECT_EQ(kept_by_layer(s, {.what = Recompute::What::full, .every = 2}),
            std::string(kInput) + "0: add\n1:" + none + kLlamaHead);
}

// Sizes that are multiples of the alignment, so that sums of buffers are sums of elements.
config::Settings even_gpt(int64_t layers, const std::string& dtype) {
  config::Settings s = small_model("gpt", dtype);
  s.model.layers = layers;
  s.model.embed = 64;
  s.model.heads = s.model.kv_heads = 4;
  s.model.ffn = 256;
  s.train.sequence = s.model.context = 32;
  s.parallel.device = "cpu";
  return s;
}

int64_t kept_bytes(const config::Settings& s, const Recompute& how) {
  const models::Graphs graphs = models::build_training(s);
  const graph::Graph micro =
      lower::join_head(lower::recompute(*graphs.micro, how, static_cast<int>(s.model.layers)), compile::plan_of(s));
  int64_t sum = 0;
  for (graph::ValueId v : lower::kept(micro)) sum += micro.type(v).bytes();
  return sum;
}

Program lowered(const config::Settings& s, const Recompute& how) {
  const auto kernels = compile::kernels_of(s);
  return compile::only_stage(compile::compile({.settings = with(s, how), .kernels = *kernels}));
}

const program::Body& body(const Program& p, std::string_view name) {
  for (const program::Body& b : p.bodies)
    if (b.name == name) return b;
  throw base::InternalError("test", "no body {}", name);
}

// Arena bytes that "forward" writes and "backward" reads.
int64_t carried_bytes(const Program& p) {
  std::set<BufferId> written, carried;
  for (const Instruction& i : body(p, "forward").instructions)
    for (BufferId b : i.outs) written.insert(p.root(b));
  for (const Instruction& i : body(p, "backward").instructions)
    for (BufferId b : i.ins)
      if (written.contains(p.root(b)) && p.buffer(p.root(b)).region == program::Region::arena)
        carried.insert(p.root(b));
  int64_t sum = 0;
  for (BufferId b : carried) sum += p.buffer(b).bytes();
  return sum;
}

// Korthikanti et al. 2022, equation 2 and table 2, for a layer in 16 bits without scores, which tiled attention does
// not store: s b h 34; selective the same; full 2 s b h. We store no dropout masks (2 s b h of the 34: they are a
// function of an index), but the fp32 statistics of attention (4 a s b); selective stores neither those nor the output
// of attention (2 s b h).
TEST(RecomputeMemory, OfALayerBesideThePublishedTerms) {
  const auto per_layer = [](const Recompute& how) {
    return kept_bytes(even_gpt(5, "bf16"), how) - kept_bytes(even_gpt(4, "bf16"), how);
  };
  const config::Settings s = even_gpt(1, "bf16");
  const int64_t sb = s.train.sequence * s.train.micro_batch, sbh = sb * s.model.embed, a = s.model.heads;
  EXPECT_EQ(per_layer(kNone), 34 * sbh - 2 * sbh + 4 * a * sb);
  EXPECT_EQ(per_layer(kLight), 34 * sbh - 2 * sbh - 12 * sbh + 4 * a * sb);  // both norms, and the activation
  EXPECT_EQ(per_layer(kSelective), 34 * sbh - 2 * sbh - 2 * sbh);
  EXPECT_EQ(per_layer(kFull), 2 * sbh);
}

// The program keeps what the graph says from forward to backward, and each layer adds exactly that to the arena.
TEST(RecomputeMemory, OfTheProgramIsWhatTheGraphKeeps) {
  for (const char* dtype : {"fp32", "bf16"})
    for (const Recompute& how : {kNone, kLight, kSelective, kFull, Recompute{Recompute::What::full, 2}}) {
      const config::Settings s = even_gpt(4, dtype), deeper = even_gpt(6, dtype);
      const Program p = lowered(s, how), q = lowered(deeper, how);
      EXPECT_EQ(carried_bytes(p), kept_bytes(s, how)) << dtype;
      EXPECT_EQ(carried_bytes(q), kept_bytes(deeper, how)) << dtype;
      EXPECT_EQ(q.list(program::Step::train).lower_bound_bytes - p.list(program::Step::train).lower_bound_bytes,
                kept_bytes(deeper, how) - kept_bytes(s, how))
          << dtype;
    }
}

// "contract(3) of layer 0": kernels with their number of operands. Recomputed operations are fused as in the forward
// pass, since fusion determines the bits.
std::multiset<std::string> calls(const program::Body& b) {
  std::multiset<std::string> all;
  for (const Instruction& i : b.instructions)
    all.insert(fmt::format("{}({}) {} of layer {}", i.kernel, i.ins.size(), to_string(i.attributes), i.layer));
  return all;
}

TEST(RecomputeFusion, RepeatsWhatForwardDoes) {
  for (const char* family : {"gpt", "llama"}) {
    const config::Settings s = small_model(family, "bf16");
    const Program plain = lowered(s, kNone), full = lowered(s, kFull);
    EXPECT_EQ(calls(body(plain, "forward")), calls(body(full, "forward")));
    const auto forward = calls(body(full, "forward"));
    auto repeated = calls(body(full, "backward"));
    for (const std::string& call : calls(body(plain, "backward"))) {
      ASSERT_TRUE(repeated.contains(call)) << call;
      repeated.erase(repeated.find(call));
    }
    // The whole layer except what produces its output: the last matmul, its dropout, the residual addition.
    size_t of_layers = 0;
    for (const std::string& call : forward) of_layers += call.ends_with("layer 0") || call.ends_with("layer 1");
    EXPECT_EQ(repeated.size(), of_layers - 2 * 3) << family;
    for (const std::string& call : repeated)
      EXPECT_LE(repeated.count(call), forward.count(call)) << family << ": " << call;
  }
}

// Two steps of the layout.
Bits run(config::Settings s, const std::string& layout, const Recompute& how) {
  set_layout(s, layout);
  s.train.micro_batch /= s.parallel.data;
  return bits_of(with(s, how), 2);
}

constexpr Recompute kAll[] = {kLight, kSelective, kFull, {Recompute::What::full, 2}, {Recompute::What::selective, 2}};

class RecomputeBits : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};

TEST_P(RecomputeBits, AreThoseOfKeeping) {
  const auto& [family, dtype, kernels] = GetParam();
  config::Settings s = small_model(family, dtype);
  s.model.layers = 3;
  s.parallel.device = kernels;
  s.data.reset_at_document = family == "llama";
  const Bits plain = run(s, "", kNone);
  for (const Recompute& how : kAll) {
    const Bits again = run(s, "", how);
    EXPECT_EQ(other_bits(again, plain), "") << static_cast<int>(how.what) << " every " << how.every;
    EXPECT_GT(again.flops, plain.flops);
  }
  // A changed mask, or anything else, would be detected.
  config::Settings other = s;
  other.model.dropout = 0.11;
  EXPECT_EQ(other_bits(run(other, "", kFull), plain), "loss");
}

INSTANTIATE_TEST_SUITE_P(All, RecomputeBits,
                         testing::Combine(testing::Values("gpt", "llama"), testing::Values("fp32", "bf16"),
                                          testing::Values("reference", "cpu")));

// Networks of images, whose batch norms also update running statistics: once, whatever is repeated.
TEST(RecomputeImages, HaveTheBitsOfKeeping) {
  for (const std::string name : {"unet", "unet:replica", "lenet"}) {
    SCOPED_TRACE(name);
    const std::string family = name.substr(0, name.find(':'));
    config::Settings s = small_model(family, "fp32");
    s.model.batch_norm = name.ends_with(":replica") ? "replica" : "all";
    s.model.layers = models::family(family).config.layers;
    s.model.embed = 2;
    s.model.image_height = s.model.image_width = 32;
    s.parallel.device = "cpu";
    const auto statistics = [&](const Recompute& how) {
      train::LayoutRun run(with(s, how));
      const Record r = record(run, s, 2);
      Numbers all = run.states(program::StateKind::statistic);
      all["loss"] = r.losses;
      return all;
    };
    const Bits plain = run(s, "", kNone);
    const Numbers known = statistics(kNone);
    EXPECT_EQ(known.contains("down1.conv1.norm.mean"), family == "unet");
    for (const Recompute& how : {kLight, kFull}) {
      const Bits again = run(s, "", how);
      EXPECT_EQ(other_bits(again, plain), "");
      EXPECT_GT(again.flops, plain.flops);
      const Numbers found = statistics(how);
      ASSERT_EQ(found.size(), known.size());
      for (const auto& [name, x] : known) EXPECT_TRUE(same_bits(found.at(name), x)) << name;
    }
  }
}

class RecomputeLayouts : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

// With and without recomputation: forward communication is repeated too, in the same order.
TEST_P(RecomputeLayouts, HaveTheBitsOfKeeping) {
  const auto& [family, layout] = GetParam();
  config::Settings s = small_model(family, "fp32");
  s.model.layers = 3;
  s.parallel.device = "cpu";
  s.train.sequence = 8;
  s.train.micro_batch = 4;
  s.train.global_batch = 8;
  const Bits plain = run(s, layout, kNone);
  for (const Recompute& how : {kLight, kSelective, kFull, Recompute{Recompute::What::full, 2}}) {
    const Bits again = run(s, layout, how);
    EXPECT_EQ(other_bits(again, plain), "") << static_cast<int>(how.what) << " every " << how.every;
    EXPECT_GT(again.flops, plain.flops);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RecomputeLayouts,
    testing::Combine(testing::Values("gpt", "llama"),
                     testing::Values("data=2", "data=4 zero=3", "tensor=2", "tensor=4", "tensor=2 sequence_parallel",
                                     "tensor=2 sequence_parallel keep_gathered", "context=2 method=ring",
                                     "context=2 method=ulysses", "data=2 tensor=2 zero=2",
                                     "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ulysses")));

}  // namespace
}  // namespace kintsugi::tests::recompute_test
