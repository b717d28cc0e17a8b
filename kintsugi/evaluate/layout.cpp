#include "kintsugi/evaluate/layout.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve_parallel.h"
#include "kintsugi/models/models.h"

namespace kintsugi::evaluate {
namespace {

// Keys of [parallel] on gradients or saved activations.
constexpr std::string_view kOfTraining[] = {"parallel.recompute",      "parallel.recompute_every", "parallel.offload",
                                            "parallel.offload_folder", "parallel.memory_per_rank", "parallel.wire",
                                            "parallel.keep_gathered",  "parallel.keep_logits",     "parallel.replicas"};

}  // namespace

config::Resolved read_layout(std::string_view verb, std::span<const std::string> sets, int64_t cores) {
  for (const std::string& set : sets) {
    const std::string section = set.substr(0, set.find_first_of(".="));
    const auto& known = config::sections();
    if (section == "parallel" || std::find(known.begin(), known.end(), section) == known.end()) continue;
    throw base::UserError(verb, "--set {}: only keys of [parallel] are set here; [{}] is that of the checkpoint",
                          base::one_line(set, 80), section);
  }
  config::Resolved layout{config::read_text("", "run.toml", models::catalog(), sets), {}};
  layout.settings.model.layers = INT32_MAX;  // checked when the checkpoint's model is split into stages
  config::derive_parallel(layout, cores);
  layout.settings.model.experts =
      layout.settings.parallel.expert;  // the checkpoint's number of experts is not known yet
  if (layout.settings.parallel.space > 1) layout.settings.model.family = "vit";  // nor whether it reads images
  config::check_parallel(layout);
  config::warn_of_parallel(layout, cores);
  for (const std::string_view key : kOfTraining)
    if (layout.origin(key).given())
      layout.warnings.push_back(
          fmt::format("{}{} has no effect where nothing is trained", config::place(layout, {key}), layout.say(key)));
  return layout;
}

config::Settings settings_now(config::Settings saved, const config::Parallel& layout, const std::string& dtype) {
  const bool reference = config::device(saved.parallel) == config::Device::reference;
  std::string device =
      reference && config::device(layout) == config::Device::automatic ? saved.parallel.device : layout.device;
  saved.parallel = layout;
  saved.parallel.device = std::move(device);
  if (!dtype.empty()) saved.train.dtype = dtype;
  return saved;
}

namespace {

// The first rule that splits the tokens of a text, or the end.
auto rule_of_tokens(const plan::Plan& plan) {
  return std::find_if(plan.rules.begin(), plan.rules.end(),
                      [](const plan::Rule& r) { return r.dim == "seq" || r.dim == "key_seq"; });
}

}  // namespace

bool keeps_samples_whole(const plan::Plan& plan) {
  return rule_of_tokens(plan) == plan.rules.end();
}

void require_whole_samples(const plan::Plan& plan, const config::Parallel& parallel) {
  const auto rule = rule_of_tokens(plan);
  if (rule == plan.rules.end()) return;
  const auto own = std::find(parallel.rules.begin(), parallel.rules.end(), to_string(*rule));
  const std::string what = own != parallel.rules.end() ? fmt::format("rule \"{}\"", to_string(*rule))
                           : parallel.context > 1      ? fmt::format("parallel.context = {}", parallel.context)
                                                       : "parallel.sequence_parallel";
  throw base::UserError("generate",
                        "{} splits the tokens of a text, of which generation makes one at a time; leave it out, and "
                        "split weights and caches by parallel.tensor or parallel.pipe",
                        what);
}

std::vector<std::string> repeated_axes(std::span<const program::Program> stages) {
  std::vector<std::string> names;
  const mesh::Mesh& mesh = stages[0].mesh;
  for (const mesh::Axis& axis : mesh.axes()) {
    if (axis.cuts_layers) continue;
    const auto splits = [&](mesh::Factor f) {
      return std::any_of(stages.begin(), stages.end(), [&](const program::Program& p) {
        return std::any_of(p.buffers.begin(), p.buffers.end(),
                           [&](const program::Buffer& b) { return b.layout.is_split(f); });
      });
    };
    const std::vector<mesh::Factor> factors = mesh.expand(std::vector<std::string>{axis.name});
    if (!std::all_of(factors.begin(), factors.end(), splits)) names.push_back(axis.name);
  }
  return names;
}

}  // namespace kintsugi::evaluate
