#include "kintsugi/plan/changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/config/choices.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::plan {
namespace {

using config::Recomputed;
using config::Settings;

// Over the data axis; each ZeRO stage stores less than the previous one.
Sets zero(const Settings& s, int64_t stage) {
  if (s.parallel.data == 1 || s.parallel.zero >= stage) return {};
  return {{"parallel.zero", stage}};
}

Sets sequence_parallel(const Settings& s) {
  if (s.parallel.tensor == 1 || s.parallel.sequence_parallel) return {};
  return {{"parallel.sequence_parallel", true}};
}

Sets make_logits_again(const Settings& s) {
  if (s.parallel.tensor == 1 || !s.parallel.keep_logits) return {};
  return {{"parallel.keep_logits", false}};
}

Sets half_a_micro_batch(const Settings& s) {
  if (s.train.micro_batch % 2 != 0 || s.train.reproducible > 0) return {};
  const int64_t group = config::batch_norm_group(s);  // stays as it is
  if (group > 0 && s.train.micro_batch / 2 % group != 0) return {};
  return {{"train.micro_batch", s.train.micro_batch / 2}};
}

// In every layer, unless more is already recomputed.
Sets recompute(const Settings& s, Recomputed what) {
  const config::Parallel& p = s.parallel;
  const Recomputed now = recomputed(p);
  if (now > what || (now == what && p.recompute_every == 1)) return {};
  Sets sets = {{"parallel.recompute", std::string(name_of(what))}};
  if (p.recompute_every > 1) sets.push_back({"parallel.recompute_every", int64_t{1}});
  return sets;
}

// Doubles an axis: on ranks that replicate the model, if there are any, else on twice the ranks.
Sets twice(const Settings& s, const char* axis, int64_t size) {
  Sets sets = {{axis, 2 * size}};
  if (s.parallel.data % 2 == 0) {
    sets.push_back({"parallel.data", s.parallel.data / 2});
  } else {
    sets.push_back({"parallel.ranks", 2 * s.parallel.ranks});
  }
  return sets;
}

Sets twice_tensor(const Settings& s) {
  return twice(s, "parallel.tensor", s.parallel.tensor);
}

Sets twice_pipe(const Settings& s) {
  if (!s.parallel.stages.empty()) return {};  // the user has set the layers of each stage
  return twice(s, "parallel.pipe", s.parallel.pipe);
}

Sets offload(const Settings& s) {
  config::Offloaded what = offloaded(s.parallel);
  if (what.optimizer) return {};
  what.optimizer = true;
  return {{"parallel.offload", std::string(name_of(what))}};
}

constexpr Change kChanges[] = {
    [](const Settings& s) { return zero(s, 1); },  // same communication volume
    sequence_parallel,
    make_logits_again,
    half_a_micro_batch,
    [](const Settings& s) { return recompute(s, Recomputed::light); },
    [](const Settings& s) { return recompute(s, Recomputed::attention); },
    [](const Settings& s) { return zero(s, 2); },
    [](const Settings& s) { return recompute(s, Recomputed::layers); },
    [](const Settings& s) { return zero(s, 3); },
    twice_tensor,
    twice_pipe,
    offload,
};

}  // namespace

std::span<const Change> changes() {
  return kChanges;
}

Settings with(Settings s, const Sets& sets) {
  for (const auto& [key, value] : sets) config::keys()[static_cast<size_t>(config::key_index(key))].set(s, value);
  return s;
}

void append(Sets& sets, const Sets& later, const Settings& made) {
  for (const auto& set : later) {
    std::erase_if(sets, [&](const auto& known) { return known.first == set.first; });
    sets.push_back(set);
  }
  // ZeRO shards over the data axis.
  if (made.parallel.data == 1) std::erase_if(sets, [](const auto& set) { return set.first == "parallel.zero"; });
}

std::string to_string(const Sets& sets) {
  std::string text;
  for (const auto& [key, value] : sets)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, config::to_toml(value));
  return text;
}

}  // namespace kintsugi::plan
