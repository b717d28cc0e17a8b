#include "kintsugi/config/axes.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/config/origin.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::config {
namespace {

constexpr int64_t kMost = 1'000'000'000'000;  // ranks; a product with one more size does not overflow

template <auto Member>
Axis axis(Axis row) {
  row.size = [](const Parallel& p) { return p.*Member; };
  row.set_size = [](Parallel& p, int64_t size) { p.*Member = size; };
  return row;
}

void check_shard_group(const Given& given) {
  const Parallel& p = given.settings.parallel;
  if (p.shard_group > 0 && p.data % p.shard_group != 0)
    throw base::UserError("config", "{}{} does not divide mesh axis \"data\" of size {}; nearest: {}",
                          place(given, {"parallel.shard_group", "parallel.data"}), given.say("parallel.shard_group"),
                          p.data, divisors_around(p.data, p.shard_group));
}

// Checks that the list of layers is numeric and there are enough layers; lower/stages checks it against the model.
void check_stages(const Given& given) {
  const Parallel& p = given.settings.parallel;
  for (const std::string& word : tensor::words(p.stages))
    if (word.find_first_not_of("0123456789") != std::string::npos || word.size() > 9)
      throw base::UserError("config",
                            "{}{}: \"{}\" is not a number of layers; write how many layers each chunk has: \"5 7\"",
                            place(given, {"parallel.stages"}), given.say("parallel.stages"), word);
  const int64_t parts = p.pipe * p.chunks, layers = given.settings.model.layers;
  if (p.pipe > 1 && parts > layers)
    throw base::UserError("config", "{}{}{} makes {} parts of {}; at most pipe = {}{}",
                          place(given, {"parallel.pipe", "parallel.chunks", "model.layers"}),
                          given.say("parallel.pipe"), p.chunks > 1 ? " with " + given.say("parallel.chunks") : "",
                          parts, given.say("model.layers"), std::max<int64_t>(1, layers / p.chunks),
                          p.chunks > 1 && layers >= p.pipe ? fmt::format(" or chunks = {}", layers / p.pipe) : "");
}

void check_expert_ranks(const Given& given) {
  const int64_t ranks = given.settings.parallel.expert, experts = given.settings.model.experts;
  if (ranks == 1) return;
  const std::string at = place(given, {"parallel.expert", "model.experts", "model.name", "model.family"});
  if (experts == 0)
    throw base::UserError("config", "{}{} divides experts, and the model has none; set model.experts, or leave {} out",
                          at, given.say("parallel.expert"), "expert");
  if (experts % ranks != 0)
    throw base::UserError("config", "{}{} is {}; nearest: {}", at, given.say("parallel.expert"),
                          ranks > experts ? fmt::format("more than {}", given.say("model.experts"))
                                          : fmt::format("no divisor of {}", given.say("model.experts")),
                          divisors_around(experts, ranks));
}

// The tokens of a sample: of a text, or of the patches of an image.
int64_t tokens_of(const Settings& s) {
  const Model& m = s.model;
  if (m.patch == 0) return m.image_height == 0 ? s.train.sequence : 0;
  return std::max<int64_t>(m.image_depth / m.patch, 1) * (m.image_height / m.patch) * (m.image_width / m.patch);
}

void check_space(const Given& given) {
  if (given.settings.parallel.space > 1 && reads_tokens(given))
    throw base::UserError("config", "{}{} splits images, and a {} model reads tokens, which parallel.context splits",
                          place(given, {"parallel.space", "model.family"}), given.say("parallel.space"),
                          given.settings.model.family);
  for (const std::string& dim : tensor::words(given.settings.parallel.space_dims))
    if (dim != "height" && dim != "width" && dim != "depth")
      throw base::UserError("config",
                            "{}{}: \"{}\" is no dim of images; write height, width or depth, separated by spaces",
                            place(given, {"parallel.space_dims"}), given.say("parallel.space_dims"), dim);
}

int64_t longest_side(const Model& m) {
  return std::max({m.image_height, m.image_width, m.image_depth});
}

}  // namespace

std::string Axis::key() const {
  return fmt::format("parallel.{}", name);
}

const std::vector<Axis>& axes() {
  static const std::vector<Axis> kAxes = {
      axis<&Parallel::data>({.name = "data",
                             .nearness = 10,
                             .shares_samples = true,
                             .check = check_shard_group,
                             .help = "mesh axis: splits the samples of a step (data parallelism)",
                             .others = "dp data_parallel data_parallel_size dp_size replicas"}),
      axis<&Parallel::tensor>({.name = "tensor",
                               .nearness = 30,
                               .keys = {"parallel.sequence_parallel"},
                               .help = "mesh axis: splits heads, ffn and vocabulary (tensor parallelism)",
                               .others = "tp tensor_parallel tensor_model_parallel_size tensor_parallel_size tp_size"}),
      axis<&Parallel::context>({.name = "context",
                                .nearness = 20,
                                .keys = {"parallel.context_method", "parallel.context_balance"},
                                .fits = [](const Settings& s, int64_t n) { return n <= tokens_of(s); },
                                .help = "mesh axis: splits the tokens of each sample (context parallelism)",
                                .others = "cp context_parallel context_parallel_size cp_size"}),
      axis<&Parallel::space>({.name = "space",
                              .nearness = 25,
                              .optional = true,
                              .keys = {"parallel.space_dims"},
                              .check = check_space,
                              .fits = [](const Settings& s, int64_t n) { return n <= longest_side(s.model); },
                              .help = "mesh axis: splits height, width or depth of each image, or the tokens of its "
                                      "patches (spatial parallelism)",
                              .others = "spatial spatial_parallel halo"}),
      axis<&Parallel::expert>(
          {.name = "expert",
           .nearness = 22,
           .optional = true,
           .shares_samples = true,
           .check = check_expert_ranks,
           .fits = [](const Settings& s, int64_t n) { return s.model.experts > 0 && s.model.experts % n == 0; },
           .help = "mesh axis: splits experts, and samples elsewhere (expert parallelism)",
           .others = "ep expert_parallel expert_parallel_size expert_model_parallel_size ep_size"}),
      axis<&Parallel::pipe>({.name = "pipe",
                             .nearness = 0,
                             .optional = true,
                             .cuts_layers = true,
                             .keys = {"parallel.schedule", "parallel.chunks", "parallel.stages"},
                             .check = check_stages,
                             .fits = [](const Settings& s, int64_t n) { return n <= s.model.layers; },
                             .help = "mesh axis: splits the layers into stages (pipeline parallelism)",
                             .others = "pp pipeline pipeline_parallel pipeline_model_parallel_size pp_size"}),
  };
  return kAxes;
}

const Axis& axis_of(int64_t Parallel::*size) {
  for (const Axis& axis : axes()) {
    Parallel p;
    axis.set_size(p, 2);
    if (p.*size == 2) return axis;
  }
  throw base::InternalError("config", "no axis has this size");
}

std::vector<const Axis*> axes_of_product() {
  std::vector<const Axis*> list;
  for (const Axis& axis : axes()) list.push_back(&axis);
  std::ranges::stable_partition(list, [](const Axis* axis) { return axis->cuts_layers; });
  return list;
}

std::vector<const Axis*> axes_by_nearness() {
  std::vector<const Axis*> list;
  for (const Axis& axis : axes()) list.push_back(&axis);
  std::ranges::stable_sort(list, {}, &Axis::nearness);
  return list;
}

const std::string& default_mesh_order() {
  static const std::string kOrder = [] {
    std::string order;
    for (const Axis* axis : axes_by_nearness()) order += (order.empty() ? "" : " ") + std::string(axis->name);
    return order;
  }();
  return kOrder;
}

int64_t data_ranks(const Parallel& parallel) {
  int64_t ranks = 1;
  for (const Axis& axis : axes())
    if (axis.shares_samples) ranks = std::min(ranks * axis.size(parallel), kMost);
  return ranks;
}

int64_t ranks_of(const Parallel& parallel) {
  int64_t ranks = 1;
  for (const Axis& axis : axes()) ranks = std::min(ranks * axis.size(parallel), kMost);
  return ranks;
}

}  // namespace kintsugi::config
