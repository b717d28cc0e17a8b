// Activation memory of compiled programs compared with Korthikanti et al. 2022, *Reducing Activation Recomputation in
// Large Transformer Models*, term by term: from their formulas to the bytes that our programs keep from the forward to
// the backward pass. docs/memory.md has the same table in words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kintsugi/compile/programs.h"
#include "tests/layouts.h"

namespace kintsugi::tests::activation_memory_test {
namespace {

using program::BufferId;
using program::Program;

// Symbols of the paper: s tokens, b samples, h embedding, a heads, v vocabulary, t tensor-parallel ranks.
struct Sizes {
  int64_t s, b, h, a, v;
};
// Sizes are divisible by the number of ranks, and buffers are multiples of the alignment. The second model is their
// 175B.
constexpr Sizes kSmall = {64, 2, 128, 8, 512}, kGpt3 = {2048, 1, 12288, 96, 51200};

struct Case {
  Sizes sizes;
  std::string recompute;  // none, selective, full
  int64_t t;
  bool sequence_parallel;
  bool keep_gathered;
  double dropout;

  std::string text() const {
    return fmt::format("h={} recompute={} tensor={}{}{} dropout={}", sizes.h, recompute, t,
                       sequence_parallel ? " sequence_parallel" : "", keep_gathered ? " keep_gathered" : "", dropout);
  }
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = [] {
    std::vector<Case> all;
    for (const Sizes& sizes : {kSmall, kGpt3})
      for (const char* recompute : {"none", "selective", "full"})
        for (int64_t t : {1, 2, 4, 8})
          for (int parallel = 0; parallel < (t > 1 ? 3 : 1); ++parallel)
            for (double dropout : {0.0, 0.1}) all.push_back({sizes, recompute, t, parallel > 0, parallel > 1, dropout});
    return all;
  }();
  return list;
}

Program lowered(const Case& c, int64_t layers) {
  config::Settings s = small_model("gpt", "bf16");
  s.model.layers = layers;
  s.model.embed = c.sizes.h;
  s.model.heads = s.model.kv_heads = c.sizes.a;
  s.model.ffn = 4 * c.sizes.h;
  s.model.vocab = c.sizes.v;
  s.model.dropout = c.dropout;
  s.model.context = s.train.sequence = c.sizes.s;
  s.train.micro_batch = c.sizes.b;
  s.train.global_batch = 2 * c.sizes.b;  // of one micro-batch, accumulators are in the arena too
  s.parallel.device = "cpu";
  set_layout(s, fmt::format("tensor={} recompute={}{}{}", c.t, c.recompute,
                            c.sequence_parallel ? " sequence_parallel" : "", c.keep_gathered ? " keep_gathered" : ""));
  const auto kernels = compile::kernels_of(s);
  return compile::only_stage(compile::compile({.settings = s, .kernels = *kernels}));
}

// Terms of activation memory, theirs and ours; from kFinalNorm on, outside of the layers.
constexpr const char *kNormInputs = "inputs of both norms",
                     *kProductInputs = "inputs of q, k, v and of the first product",
                     *kQueryKeyValue = "query, key, value", *kScores = "scores, their dropout and its mask",
                     *kStatistics = "statistics of attention", *kProjectionInput = "input of the projection",
                     *kMasks = "masks of dropout", *kActivationInput = "input of the activation",
                     *kSecondInput = "input of the second product", *kLayerInput = "input of the layer",
                     *kFinalNorm = "input of the final norm", *kHeadInput = "input of the head", *kLogits = "logits",
                     *kIds = "tokens and labels", *kEmbeddingMask = "mask of the embedding's dropout";

using Bytes = std::map<std::string, int64_t>;

int64_t sum(const Bytes& terms) {
  int64_t all = 0;
  for (const auto& [name, bytes] : terms) all += bytes;
  return all;
}

// Maps a buffer of the program to its term, by the operation that produces it and its dims.
std::string term_of(const program::Buffer& b, const Case& c) {
  const tensor::Shape& dims = b.type.shape;
  if (!b.input.empty()) return kIds;
  if (b.name == "layer_norm") return kProductInputs;
  if (b.name == "attention.0") return kProjectionInput;
  if (b.name == "attention.1") return kStatistics;
  if (b.name == "gelu") return kSecondInput;
  if (b.name == "head.0") return kLogits;
  if (b.name == "add" && dims.has("ffn")) return kActivationInput;
  if (b.name == "add" && dims.has("head_dim")) return kQueryKeyValue;
  // The residual stream: the input of norms, starting with the embedding.
  if (dims.has("embed") && (b.name == "add" || b.name == "embedding"))
    return c.recompute == "full" ? kLayerInput : kNormInputs;
  return "other: " + b.name + " " + to_string(dims);
}

// Arena bytes that body "forward" leaves for "backward", by term: buffers used by both.
Bytes kept(const Program& p, const Case& c) {
  std::map<program::Work, std::set<BufferId>> touched;
  for (const program::Call& call : p.list(program::Step::train).calls) {
    const program::Body& body = p.bodies[static_cast<size_t>(call.body)];
    for (const program::Instruction& i : body.instructions)
      for (const auto* list : {&i.ins, &i.outs})
        for (BufferId b : *list)
          if (p.buffer(p.root(b)).region == program::Region::arena) touched[body.work].insert(p.root(b));
  }
  Bytes terms;
  for (BufferId b : touched[program::Work::forward])
    if (touched[program::Work::backward].contains(b)) terms[term_of(p.buffer(b), c)] += p.buffer(b).bytes();
  return terms;
}

Bytes difference(const Bytes& more, const Bytes& less) {
  Bytes terms;
  for (const auto& [name, bytes] : more) {
    const auto found = less.find(name);
    if (const int64_t left = bytes - (found == less.end() ? 0 : found->second); left != 0) terms[name] = left;
  }
  return terms;
}

// Per layer; outside of the layers; and the increase of the arena's lower bound per layer.
struct Measured {
  Bytes layer, ends;
  int64_t bound = 0;
};

const Measured& measured(const Case& c) {
  static std::map<std::string, Measured> known;
  const auto [at, fresh] = known.try_emplace(c.text());
  if (!fresh) return at->second;
  Measured& m = at->second;
  const Program p = lowered(c, 1), deeper = lowered(c, 2);
  const Bytes one = kept(p, c);
  m.layer = difference(kept(deeper, c), one);
  m.bound = deeper.list(program::Step::train).lower_bound_bytes - p.list(program::Step::train).lower_bound_bytes;
  for (const auto& [term, bytes] : difference(one, m.layer)) {
    const bool stream = term == kNormInputs || term == kLayerInput;
    m.ends[stream ? kFinalNorm : term == kProductInputs ? kHeadInput : term] = bytes;
  }
  return m;
}

// A term in bytes, theirs and ours, and the reason for a difference.
struct Row {
  const char* term;
  int64_t published, ours;
  const char* why = "";
};

// Sections 4.1, 4.2 and 5. `whole` divides what is replicated on all t ranks without sequence parallelism.
std::vector<Row> of_layer(const Case& c) {
  const auto& [s, b, h, a, v] = c.sizes;
  const int64_t t = c.t, sbh = s * b * h, whole = c.sequence_parallel ? t : 1, assb = a * s * s * b;
  if (c.recompute == "full")
    return {{kLayerInput, 2 * sbh, 2 * sbh / whole, "theirs is on every rank, ours is split along seq"}};
  const bool selective = c.recompute == "selective";
  return {
      {kNormInputs, 4 * sbh / whole, 4 * sbh / whole},
      {kProductInputs, 4 * sbh / whole, 4 * sbh / (c.keep_gathered ? 1 : whole), "keep_gathered: all of seq"},
      {kQueryKeyValue, 6 * sbh / t, 6 * sbh / t},
      {kScores, selective ? 0 : 5 * assb / t, 0, "attention by tiles makes them, and their masks, again"},
      {kStatistics, 0, selective ? 0 : 4 * a * s * b / t, "fp32 logsumexp of each row of scores, to make them again"},
      {kProjectionInput, 2 * sbh / t, selective ? 0 : 2 * sbh / t, "selective: made again with the rest of attention"},
      {kMasks, 2 * sbh / whole, 0, "a mask is a function of an index, made again"},
      {kActivationInput, 8 * sbh / t, 8 * sbh / t},
      {kSecondInput, 8 * sbh / t, 8 * sbh / t},
  };
}

// Section 4.3, with one stage.
std::vector<Row> of_ends(const Case& c) {
  const auto& [s, b, h, a, v] = c.sizes;
  const int64_t sb = s * b, sbh = sb * h, whole = c.sequence_parallel ? c.t : 1;
  return {
      {kEmbeddingMask, sbh / whole, 0, "a mask is a function of an index, made again"},
      {kFinalNorm, 2 * sbh / whole, 2 * sbh / whole},
      {kHeadInput, 2 * sbh / whole, 2 * sbh / whole},
      {kLogits, 4 * sbh / h * v / c.t, 0, "the loss is made with its gradient, in the backward pass"},
      {kIds, 0, 4 * sb, "int32, for the embedding's gradient"},
  };
}

// Table 2.
int64_t published_of_layer(const Case& c) {
  const auto& [s, b, h, a, v] = c.sizes;
  const int64_t t = c.t, sbh = s * b * h, scores = c.recompute == "none" ? 5 * a * s * s * b / t : 0;
  if (c.recompute == "full") return 2 * sbh;
  return scores + (c.sequence_parallel ? 34 * sbh / t : 10 * sbh + 24 * sbh / t);
}

// Section 4.3: sbh/t + 4sbh/t (1 + v/h), which assumes sequence parallelism.
int64_t published_of_ends(const Case& c) {
  const auto& [s, b, h, a, v] = c.sizes;
  const int64_t whole = c.sequence_parallel ? c.t : 1;
  return s * b * h / whole + 4 * s * b * h / whole + 4 * s * b * v / c.t;
}

// From the published sum, term by term, to the measured one.
void expect(const Bytes& found, const std::vector<Row>& rows, int64_t published) {
  Bytes theirs, ours;
  int64_t bytes = published;
  for (const Row& row : rows) {
    theirs[row.term] += row.published;
    if (row.ours != 0) ours[row.term] += row.ours;
    bytes += row.ours - row.published;
    EXPECT_TRUE(row.ours == row.published || *row.why != 0) << row.term;
  }
  EXPECT_EQ(sum(theirs), published);
  EXPECT_EQ(found, ours);
  EXPECT_EQ(sum(found), bytes);
}

TEST(ActivationMemory, OfALayerIsThePublishedOneButForNamedTerms) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    expect(measured(c).layer, of_layer(c), published_of_layer(c));
  }
}

TEST(ActivationMemory, OfTheEndsIsThePublishedOneButForNamedTerms) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    expect(measured(c).ends, of_ends(c), published_of_ends(c));
  }
}

// At the peak, the kept activations of all layers are live, and nothing else that scales with depth.
TEST(ActivationMemory, IsWhatALayerMoreCosts) {
  for (const Case& c : cases()) EXPECT_EQ(measured(c).bound, sum(measured(c).layer)) << c.text();
}

}  // namespace
}  // namespace kintsugi::tests::activation_memory_test
