#include "kintsugi/models/step.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/graph/differentiate.h"
#include "kintsugi/models/averages.h"
#include "kintsugi/models/freeze.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/rates.h"
#include "kintsugi/models/update.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::models {

using graph::Phase;
using graph::State;
using graph::StateId;
using graph::StateKind;
using graph::StateTable;

namespace {

DType dtype_of(const config::Settings& s) {
  return tensor::dtype_from(s.train.dtype);
}

// Throws UserError for sizes that depend on data that was not opened, and for axes of other data.
void require_sizes(const config::Settings& s) {
  const config::Model& m = s.model;
  if (s.parallel.space > 1 && reads_tokens(m))
    throw base::UserError("model",
                          "parallel.space = {} splits images, and a {} model reads tokens, which parallel.context "
                          "splits",
                          s.parallel.space, m.family);
  const auto require = [&](std::string_view key, int64_t size) {
    if (size < 1)
      throw base::UserError("model", "model.{} of the {} model is {}: set it, or name the data that it follows from",
                            key, m.family, size);
  };
  if (reads_tokens(m)) return require("vocab", m.vocab);
  require("outputs", m.outputs);
  if (!reads_images(m)) return require("features", m.features);
  require("image_channels", m.image_channels);
  require("image_height", m.image_height);
  require("image_width", m.image_width);
  if (m.patch > 0)
    for (const auto& [key, size] : {std::pair{"image_depth", m.image_depth}, std::pair{"image_height", m.image_height},
                                    std::pair{"image_width", m.image_width}})
      if (size % m.patch != 0)
        throw base::UserError("model", "model.{} = {} is not a multiple of model.patch = {}; nearest: {}", key, size,
                              m.patch, config::multiples_around(size, m.patch));
}

Graph empty(std::string name, const StateTable& states, const graph::OpTable& operations = ops::operations()) {
  return Graph(std::move(name), operations, states);
}

// Of the sum of a weight's gradients.
DType accumulator_dtype(const config::Settings& s, DType weight) {
  const DType wide = graph::wide(weight), asked = tensor::dtype_from(s.train.gradient_dtype);
  return wide == DType::f32 ? asked : wide;
}

// x [... embed] times the head, to dims `out`, in the wide dtype.
ValueId logits(Graph& g, const Trunk& trunk, ValueId x, std::string_view out) {
  const DType wide = graph::wide(g.type(x).dtype);
  const ValueId y = g.contract(x, trunk.head, out, wide);
  if (trunk.bias == graph::kNone) return y;
  const ValueId bias = g.type(trunk.bias).dtype == wide
                           ? trunk.bias
                           : g.op("cast", {trunk.bias}, {{"dtype", std::string(name_of(wide))}});
  return g.add({y, bias});
}

// A sum over a pass that is measured and not differentiated.
struct Measured {
  std::string_view name;
  ValueId sum = graph::kNone;
};

struct Loss {
  ValueId sum = graph::kNone, count = graph::kNone;
  std::vector<Measured> measured = {};
};

std::vector<ValueId> head_of(Builder& b, const Trunk& trunk, ValueId labels) {
  return b.graph().apply("head", {trunk.x, trunk.head, labels, trunk.bias});
}

Loss loss_of_tokens(Builder& b, const Trunk& trunk) {
  Graph& g = b.graph();
  const ValueId labels = b.input("labels");
  const std::vector<ValueId> statistics = head_of(b, trunk, labels);
  const std::vector<ValueId> loss = g.apply("cross_entropy", {statistics[0], statistics[1], labels}, {}, "loss");
  return {loss[0], loss[1]};
}

// A number per token: [batch seq] fp32.
ValueId token_numbers(Builder& b, std::string_view name) {
  return b.input(name, {b.batch(), {"seq", b.pass().sequence}}, DType::f32);
}

// The log-likelihood of the chosen answer minus that of the rejected one: [batch] fp64. Both are in one sample, and
// their labels have the weights 1 and -1.
ValueId pair_margin(Builder& b, const Trunk& trunk) {
  const ValueId labels = b.input("labels");
  const std::vector<ValueId> statistics = head_of(b, trunk, labels);
  return b.graph().op("weighted_scores", {statistics[0], statistics[1], labels, token_numbers(b, "token_weights")});
}

Loss loss_of_pairs(Builder& b, const Trunk& trunk, double beta) {
  const ValueId margin = pair_margin(b, trunk), reference = b.input("reference", {b.batch()}, DType::f64);
  const std::vector<ValueId> loss = b.graph().apply("preference_loss", {margin, reference}, {{"beta", beta}}, "loss");
  return {loss[0], loss[1], {{"correct", loss[2]}, {"reward", loss[3]}}};
}

// Of sampled answers, whose labels are weighted by their advantages.
Loss loss_of_rollouts(Builder& b, const Trunk& trunk, double clip) {
  const ValueId labels = b.input("labels");
  const std::vector<ValueId> statistics = head_of(b, trunk, labels);
  tensor::Attributes attributes;
  if (clip > 0.0) attributes.set("clip", clip);
  const std::vector<ValueId> loss = b.graph().apply(
      "policy_loss",
      {statistics[0], statistics[1], labels, token_numbers(b, "token_weights"), token_numbers(b, "sampled")},
      attributes, "loss");
  return {loss[0], loss[1], {{"gap", loss[2]}}};
}

// The labels of samples, or of each pixel: the dims of the logits except the last.
ValueId class_labels(Builder& b, const Trunk& trunk) {
  std::vector<tensor::Dim> dims = b.graph().shape(trunk.classes).dims();
  dims.pop_back();
  const bool pixels = dims.size() > 1;
  return b.input(pixels ? "pixel_classes" : "classes", Shape(dims), DType::i32);
}

// How the classes of a training step are learned.
struct ClassOptions {
  double smoothing = 0.0;  // of labels
  bool mixed = false;      // a sample has a second class, with a weight (train.mixup)
};

Loss loss_of_classes(Builder& b, const Trunk& trunk, const ClassOptions& options) {
  Graph& g = b.graph();
  tensor::Attributes attributes;
  if (options.smoothing > 0.0) attributes.set("smoothing", options.smoothing);
  const auto loss_of_labels = [&](ValueId labels, const std::string& weights, const std::string& name) -> Loss {
    const std::vector<ValueId> loss =
        g.apply("class_loss", {trunk.classes, labels, b.input(weights, {b.batch()}, DType::f32)}, attributes, name);
    return {loss[0], loss[1]};
  };
  const Loss loss = loss_of_labels(class_labels(b, trunk), "weights", "class_loss");
  if (!options.mixed) return loss;
  const Loss other =
      loss_of_labels(b.input("mixed_classes", {b.batch()}, DType::i32), "mixed_weights", "mixed_class_loss");
  return {g.add({loss.sum, other.sum}), g.add({loss.count, other.count})};
}

ValueId targets_of(Builder& b, const Trunk& trunk) {
  return b.input("targets", b.graph().shape(trunk.numbers), DType::f32);
}

Loss loss_of_numbers(Builder& b, const Trunk& trunk) {
  const std::vector<ValueId> loss = b.graph().apply("squared_error", {trunk.numbers, targets_of(b, trunk)}, {}, "loss");
  return {loss[0], loss[1]};
}

Loss loss_of_fields(Builder& b, const Trunk& trunk, config::FieldLoss which) {
  if (which == config::FieldLoss::mse) return loss_of_numbers(b, trunk);
  Graph& g = b.graph();
  const std::vector<ValueId> sums = g.apply("field_errors", {trunk.numbers, targets_of(b, trunk)}, {}, "loss"),
                             loss = g.apply("relative_error", sums, {}, "loss");
  return {loss[0], loss[1]};
}

Loss loss_of_objective(Builder& b, const Trunk& trunk, const config::Settings& s, const ClassOptions& options) {
  switch (config::objective(b.model())) {
    case config::Objective::next:
    case config::Objective::masked:
      return loss_of_tokens(b, trunk);
    case config::Objective::masked_next: {
      // The class of each sample weighs as much as all of its masked tokens (`weights`), and only these are counted:
      // the mean is the sum of the two means.
      const Loss masked = loss_of_tokens(b, trunk), next = loss_of_classes(b, trunk, {});
      return {b.graph().add({masked.sum, next.sum}), masked.count};
    }
    case config::Objective::classes:
    case config::Objective::pixels:
      return loss_of_classes(b, trunk, options);
    case config::Objective::numbers:
      return loss_of_numbers(b, trunk);
    case config::Objective::fields:
      return loss_of_fields(b, trunk, config::field_loss(s.train));
  }
  throw base::InternalError("models", "an unknown objective");
}

Loss loss_of(Builder& b, const Trunk& trunk, const config::Settings& s, const ClassOptions& options = {}) {
  switch (config::method(s.train)) {
    case config::Method::likelihood:
      return loss_of_objective(b, trunk, s, options);
    case config::Method::dpo:
      return loss_of_pairs(b, trunk, s.dpo.beta);
    case config::Method::grpo:
      return loss_of_rollouts(b, trunk, s.grpo.clip);
  }
  throw base::InternalError("models", "an unknown method");
}

// A differentiated loss and its weight.
struct WeightedLoss {
  ValueId sum = graph::kNone;
  double weight = 1.0;
};

// Each use of a further loss accumulates into a state of its layer.
StateId further_parts(const Graph& g, StateTable& states, const FurtherLoss& loss) {
  const int layer = g.op_at(static_cast<size_t>(g.value(loss.sum).op)).layer;
  return states.add({.name = fmt::format("{}{}.{}", kFurtherParts, loss.name, layer),
                     .type = ops::scalar(),
                     .kind = StateKind::statistic,
                     .layer = layer,
                     .saved = false,
                     .parts = true});
}

Pass evaluation_pass(const config::Settings& s, int64_t batch, int64_t sequence) {
  return {.purpose = Purpose::evaluate,
          .batch = batch,
          .sequence = sequence,
          .documents = config::separates_documents(s) && reads_tokens(s.model),
          .lora = &s.lora};
}

// The squared differences of each channel. No rule splits the state: its dim has another name.
void add_errors(Graph& g, StateTable& states, ValueId y, ValueId targets) {
  const Shape& shape = g.shape(y);
  const tensor::Type sums = {{shape[shape.rank() - 1]}, DType::f64};
  const ValueId errors =
      g.rename(g.make("field_errors", {y, targets}, {sums, sums})[0], sums.shape[0].name, "measured");
  const StateId state = states.add({.name = std::string(kEvaluateErrors),
                                    .type = g.type(errors),
                                    .kind = StateKind::statistic,
                                    .layer = g.layer,
                                    .saved = false});
  g.accumulate(errors, state);
}

Graph evaluation_graph(const config::Settings& s, StateTable& states, int64_t batch, int64_t sequence, BuildTrunk build,
                       const graph::OpTable& operations = ops::operations()) {
  Graph g = empty("evaluate", states, operations);
  const Pass pass = evaluation_pass(s, batch, sequence);
  require_sizes(s);
  Builder b(g, states, s.model, pass, dtype_of(s));
  const Trunk trunk = build(b);
  // Rollouts have no labels to evaluate: their validation samples answers.
  const bool samples = config::method(s.train) == config::Method::grpo;
  const Loss loss = samples ? loss_of_tokens(b, trunk) : loss_of(b, trunk, s);
  const auto add = [&](ValueId value, std::string name) {
    g.accumulate(value, number(states, std::move(name), 0.0, g.layer, false));
  };
  add(loss.sum, std::string(kEvaluateSum));
  add(loss.count, std::string(kEvaluateCount));
  for (const Measured& measured : loss.measured)
    add(measured.sum, fmt::format("{}{}", kEvaluateMeasured, measured.name));
  if (config::objective(s.model) == config::Objective::classes ||
      config::objective(s.model) == config::Objective::pixels) {
    const std::vector<ValueId> hits = g.apply("class_hits", {trunk.classes, class_labels(b, trunk)});
    g.accumulate(hits[0], number(states, std::string(kEvaluateTop1), 0.0, g.layer, false));
    g.accumulate(hits[1], number(states, std::string(kEvaluateTop5), 0.0, g.layer, false));
  }
  if (config::objective(s.model) == config::Objective::fields)
    add_errors(g, states, trunk.numbers, targets_of(b, trunk));
  return g;
}

Graph scoring_graph(const config::Settings& s, StateTable& states, const std::string& name, int64_t batch,
                    int64_t sequence) {
  Graph g = empty(name, states);
  Pass pass = evaluation_pass(s, batch, sequence);
  pass.documents = false;  // a sample is a single text
  Builder b(g, states, s.model, pass, dtype_of(s));
  const Trunk trunk = family(s.model.family).build(b);
  const ValueId labels = b.input("labels");
  const tensor::Type statistic = {g.shape(labels), graph::wide(g.type(trunk.x).dtype)};
  const std::vector<ValueId> statistics =
      g.make("head", {trunk.x, trunk.head, labels, trunk.bias}, {statistic, statistic, graph::kAbsent, statistic});
  const std::vector<ValueId> scores =
      g.apply("sample_scores", {statistics[0], statistics[1], labels, statistics[2]}, {}, "scores");
  const std::string_view names[] = {kSampleLogLikelihood, kSampleCount, kSampleMisses};
  for (size_t i = 0; i < scores.size(); ++i) g.make("output", {scores[i]}, {}, {{"name", std::string(names[i])}});
  return g;
}

// The margin of each pair, which the reference model computes once.
Graph margin_graph(const config::Settings& s, StateTable& states, BuildTrunk build, const graph::OpTable& operations) {
  Graph g = empty("score", states, operations);
  const Pass pass = evaluation_pass(s, s.train.micro_batch * config::data_ranks(s.parallel), s.train.sequence);
  Builder b(g, states, s.model, pass, dtype_of(s));
  g.make("output", {pair_margin(b, build(b))}, {}, {{"name", std::string(kPairMargin)}});
  return g;
}

Graph generation_graph(const config::Settings& s, StateTable& states, const std::string& name, Pass pass) {
  pass.lora = &s.lora;
  Graph g = empty(name, states);
  require_sizes(s);
  Builder b(g, states, s.model, pass, dtype_of(s));
  const Trunk trunk = family(s.model.family).build(b);
  const ValueId x = g.op("take", {trunk.x});
  g.make("output", {logits(g, trunk, x, "batch vocab")}, {}, {{"name", "logits"}});
  return g;
}

bool samples_answers(const config::Settings& s) {
  return config::method(s.train) == config::Method::grpo;
}

// Whether ranks may split the tokens of a text, of which generation with caches makes one at a time.
bool may_split_tokens(const config::Parallel& p) {
  return p.context > 1 || p.sequence_parallel || !p.rules.empty();
}

// The graphs of build_generation for sampled answers: a text has at most train.sequence tokens that are read.
void add_answer_graphs(const config::Settings& s, StateTable& states, Graphs& graphs) {
  constexpr int64_t kMostAtOnce = 512;
  const int64_t batch = s.train.micro_batch * config::data_ranks(s.parallel), cache = s.train.sequence,
                prompt = std::clamp<int64_t>(cache + 1 - s.grpo.length, 1, kMostAtOnce);
  graphs.prefill = generation_graph(s, states, "prefill",
                                    {.purpose = Purpose::prefill, .batch = batch, .sequence = prompt, .cache = cache});
  graphs.decode = generation_graph(s, states, "decode",
                                   {.purpose = Purpose::decode, .batch = batch, .sequence = 1, .cache = cache});
}

Graph sample_graph(const config::Settings& s, StateTable& states) {
  return generation_graph(s, states, "sample",
                          {.purpose = Purpose::evaluate,
                           .batch = samples_answers(s) ? s.train.micro_batch * config::data_ranks(s.parallel)
                                                       : static_cast<int64_t>(s.train.prompts.size()),
                           .sequence = sample_window(s)});
}

// A state that keeps the value after a step for inspection.
void keep(Graph& g, StateTable& states, ValueId value, std::string_view name) {
  g.assign(value, states.add({.name = std::string(name),
                              .type = g.type(value),
                              .kind = StateKind::statistic,
                              .layer = g.layer,
                              .saved = false}));
}

// Returns all losses, the objective's first.
std::vector<WeightedLoss> add_forward(Graph& g, const config::Settings& s, StateTable& states, Logits kept,
                                      BuildTrunk build) {
  const bool balanced_by_loss = s.model.experts > 0 && config::has_balance_loss(config::balance(s.train));
  const bool of_labels =
      config::of_tokens(config::objective(s.model)) && config::method(s.train) != config::Method::dpo;
  const Pass pass = {.purpose = Purpose::train,
                     .batch = s.train.micro_batch * config::data_ranks(s.parallel),
                     .sequence = s.train.sequence,
                     .documents = config::separates_documents(s) && reads_tokens(s.model),
                     .lora = &s.lora,
                     .expert_bound = s.train.expert_bound,
                     .drops = s.train.expert_overflow == "drop",
                     .balance_weight = balanced_by_loss ? s.train.balance_weight : 0.0,
                     .balances_steps = balanced_by_loss && config::balance(s.train) == config::Balance::global,
                     .counts_labels = of_labels,
                     .z_loss = s.train.z_loss,
                     .norm_group = config::batch_norm_group(s)};
  require_sizes(s);
  Builder b(g, states, s.model, pass, dtype_of(s));
  const Trunk trunk = build(b);
  const auto parts = [&](std::string name) {
    return states.add({.name = std::move(name),
                       .type = ops::scalar(),
                       .kind = StateKind::statistic,
                       .layer = g.layer,
                       .saved = false,
                       .parts = true});
  };
  const StateId sum = parts(std::string(kLossParts)), count = parts(std::string(kCountParts));
  const ClassOptions options = {
      .smoothing = s.train.label_smoothing,
      .mixed = s.train.mixup > 0.0 && config::objective(s.model) == config::Objective::classes};
  const Loss loss = loss_of(b, trunk, s, options);
  g.accumulate(loss.sum, sum);
  g.accumulate(loss.count, count);
  for (const Measured& measured : loss.measured)
    g.accumulate(measured.sum, parts(fmt::format("{}{}", kMeasuredParts, measured.name)));
  std::vector<WeightedLoss> losses = {{loss.sum}};
  const int layer = g.layer;
  for (const FurtherLoss& further : trunk.losses) {
    g.layer = g.op_at(static_cast<size_t>(g.value(further.sum).op)).layer;
    g.accumulate(further.sum, further_parts(g, states, further));
    losses.push_back({further.sum, further.weight});
  }
  g.layer = layer;
  if (kept == Logits::none) return losses;
  if (trunk.x != graph::kNone) keep(g, states, logits(g, trunk, trunk.x, "batch seq vocab"), kLogits);
  for (const ValueId outputs : {trunk.classes, trunk.numbers})
    if (outputs != graph::kNone) keep(g, states, outputs, kSampleOutputs);
  return losses;
}

}  // namespace

std::string_view further_loss_of(const State& state) {
  const std::string_view name = state.name;
  if (!name.starts_with(kFurtherParts)) return {};
  return name.substr(kFurtherParts.size(), name.rfind('.') - kFurtherParts.size());
}

Graph build_forward(const config::Settings& s, StateTable& states, Logits kept) {
  Graph g = empty("micro-batch", states);
  add_forward(g, s, states, kept, family(s.model.family).build);
  return g;
}

int64_t sample_window(const config::Settings& s) {
  if (samples_answers(s) || may_split_tokens(s.parallel)) return s.train.sequence;
  size_t longest = 1;  // in bytes; a token has at least one
  for (const std::string& prompt : s.train.prompts) longest = std::max(longest, prompt.size() + 1);
  return std::min(s.train.sequence, static_cast<int64_t>(longest) + s.train.sample_length);
}

Graphs build_training(const config::Settings& s, Logits kept, BuildTrunk build) {
  return build_training(s, optimizer(s.train.optimizer), ops::operations(), kept, build);
}

Graphs build_training(const config::Settings& s, const Optimizer& optimizer, const graph::OpTable& operations,
                      Logits kept, BuildTrunk build) {
  if (!build) build = family(s.model.family).build;
  Graphs graphs;
  graphs.states = std::make_unique<StateTable>();
  StateTable& states = *graphs.states;
  Graph g = empty("micro-batch", states, operations);
  const std::vector<WeightedLoss> losses = add_forward(g, s, states, kept, build);
  freeze(states, s);
  set_rates(states, s.train);
  const bool scaled = s.train.dtype == "fp16";
  // The loss is summed over tokens, so a scale of 2^16 for the mean is 2^16 / tokens for the sum; 64 is close to that
  // for a thousand tokens, and the scale adapts in either direction.
  std::vector<graph::Root> roots;
  for (const WeightedLoss& loss : losses) {
    ValueId seed = scaled ? g.read(number(states, std::string(kLossScale), 64.0, g.layer, true))
                          : g.fill(loss.weight, g.type(loss.sum));
    if (scaled && loss.weight != 1.0) seed = g.scale(seed, loss.weight);
    roots.push_back({loss.sum, seed});
  }
  differentiate(g, roots, [&](const graph::StateGradient& found) {
    const State weight = states[found.state];
    StateId accumulator = states.gradient_of(found.state);
    if (accumulator == graph::kNone)
      accumulator = states.add({.name = weight.name + ".gradient",
                                .type = {weight.type.shape, accumulator_dtype(s, weight.type.dtype)},
                                .kind = StateKind::gradient,
                                .weight = found.state,
                                .layer = weight.layer,
                                .saved = false});
    g.accumulate(found.gradient, accumulator);
  });
  graphs.micro = std::move(g);
  graphs.update = build_update(s.train, states, optimizer, operations);
  graphs.evaluate = evaluation_graph(s, states, s.train.micro_batch * config::data_ranks(s.parallel), s.train.sequence,
                                     build, operations);
  if (s.train.ema_decay > 0) graphs.evaluate = with_averages(*graphs.evaluate);
  if (config::method(s.train) == config::Method::dpo) graphs.score = margin_graph(s, states, build, operations);
  if (samples_answers(s) && !may_split_tokens(s.parallel))
    add_answer_graphs(s, states, graphs);
  else if (s.train.sample_every > 0 || samples_answers(s))
    graphs.sample = sample_graph(s, states);
  if (!s.evaluate.tasks.empty())
    graphs.tasks =
        scoring_graph(s, states, "tasks", s.train.micro_batch * config::data_ranks(s.parallel), s.train.sequence);
  return graphs;
}

Graphs build_evaluation(const config::Settings& settings, int64_t batch, int64_t sequence) {
  config::Settings s = settings;
  s.train.method = "likelihood";
  Graphs graphs;
  graphs.states = std::make_unique<StateTable>();
  graphs.evaluate = evaluation_graph(s, *graphs.states, batch, sequence, family(s.model.family).build);
  return graphs;
}

Graphs build_scoring(const config::Settings& s, int64_t batch, int64_t sequence) {
  if (config::objective(s.model) != config::Objective::next)
    throw base::UserError("evaluate",
                          "a {} model with the objective \"{}\" does not score continuations; \"next\" does",
                          s.model.family, s.model.objective);
  Graphs graphs;
  graphs.states = std::make_unique<StateTable>();
  graphs.evaluate = scoring_graph(s, *graphs.states, "evaluate", batch, sequence);
  return graphs;
}

namespace {

void require_next(const config::Settings& s) {
  if (config::objective(s.model) != config::Objective::next)
    throw base::UserError("generate", "a {} model with the objective \"{}\" does not continue texts; \"next\" does",
                          s.model.family, s.model.objective);
}

}  // namespace

Graphs build_generation(const config::Settings& s, int64_t batch, int64_t prompt, int64_t cache) {
  require_next(s);
  Graphs graphs;
  graphs.states = std::make_unique<StateTable>();
  graphs.prefill = generation_graph(s, *graphs.states, "prefill",
                                    {.purpose = Purpose::prefill, .batch = batch, .sequence = prompt, .cache = cache});
  graphs.decode = generation_graph(s, *graphs.states, "decode",
                                   {.purpose = Purpose::decode, .batch = batch, .sequence = 1, .cache = cache});
  return graphs;
}

ServingRows serving_rows(int64_t texts, int64_t rows) {
  ServingRows few;
  if (texts > 1) few.decode_one = 1;
  if (texts / 4 > 1) few.decode_quarter = texts / 4;
  if (texts / 2 > 1) few.decode_half = texts / 2;
  if (rows / 4 > texts) few.prefill_quarter = rows / 4;
  return few;
}

Graphs build_serving(const config::Settings& s, int64_t texts, int64_t rows, int64_t cache) {
  require_next(s);
  Graphs graphs;
  graphs.states = std::make_unique<StateTable>();
  const auto build = [&](const std::string& name, Purpose purpose, int64_t batch, bool all) {
    const Pass pass = {
        .purpose = purpose, .batch = batch, .sequence = 1, .cache = cache, .texts = texts, .lora = &s.lora};
    Graph g = empty(name, *graphs.states);
    require_sizes(s);
    Builder b(g, *graphs.states, s.model, pass, dtype_of(s));
    const Trunk trunk = family(s.model.family).build(b);
    if (all) {
      g.make("output", {logits(g, trunk, trunk.x, "batch seq vocab")}, {}, {{"name", "logits"}});
    } else {
      const ValueId x = g.op("take_rows", {trunk.x, b.input("rows", {{"row", std::min(texts, batch)}}, DType::i32)});
      g.make("output", {logits(g, trunk, x, "row vocab")}, {}, {{"name", "logits"}});
    }
    return g;
  };
  graphs.prefill = build("prefill", Purpose::prefill, rows, false);
  graphs.score = build("score", Purpose::prefill, rows, true);
  graphs.decode = build("decode", Purpose::decode, texts, false);
  const ServingRows few = serving_rows(texts, rows);
  if (few.prefill_quarter > 0)
    graphs.prefill_quarter = build("prefill_quarter", Purpose::prefill, few.prefill_quarter, false);
  if (few.decode_half > 0) graphs.decode_half = build("decode_half", Purpose::decode, few.decode_half, false);
  if (few.decode_quarter > 0)
    graphs.decode_quarter = build("decode_quarter", Purpose::decode, few.decode_quarter, false);
  if (few.decode_one > 0) graphs.decode_one = build("decode_one", Purpose::decode, few.decode_one, false);
  return graphs;
}

}  // namespace kintsugi::models
