#include "kintsugi/samples/preference_samples.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::samples {

PreferenceSamples::PreferenceSamples(std::shared_ptr<const data::Preferences> preferences,
                                     const PreferenceOptions& options)
    : preferences_(std::move(preferences)),
      options_(options),
      parts_{tokens_part(options.sequence), labels_part(options.sequence), starts_part(options.sequence),
             token_weights_part(options.sequence), reference_part()} {
  const std::vector<data::Preferences::Pair>& pairs = preferences_->pairs();
  const auto room = static_cast<size_t>(options_.sequence);
  size_t longest = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].positions() > pairs[longest].positions()) longest = i;
    if (pairs[i].positions() <= room) members_.push_back(static_cast<uint32_t>(i));
  }
  const std::string name = base::in_quotes(preferences_->path().string());
  if (dropped() > 0 && options_.too_long != TooLong::drop)
    throw base::UserError("data",
                          "{}: {} of {} pairs are longer than train.sequence {}, which holds both answers with their "
                          "prompt; the longest, in line {}, has {} tokens: raise train.sequence, or set "
                          "data.long_conversations to \"drop\"",
                          name, dropped(), pairs.size(), options_.sequence, pairs[longest].line,
                          pairs[longest].positions() + 2);
  if (members_.empty())
    throw base::UserError("data", "{}: none of {} pairs is left within train.sequence {}; raise it", name, pairs.size(),
                          options_.sequence);
  reference_.resize(members_.size(), 0.0);
}

void PreferenceSamples::set_reference(std::span<const double> margins) {
  base::require(margins.size() == members_.size(), "samples", "{} margins of {} pairs", margins.size(),
                members_.size());
  reference_.assign(margins.begin(), margins.end());
}

void PreferenceSamples::fill_row(uint64_t sample, const BatchView& view) const {
  const std::span<int32_t> tokens = view.get<int32_t>("tokens"), labels = view.get<int32_t>("labels"),
                           starts = view.get<int32_t>("starts");
  const std::span<float> weights = view.get<float>("token_weights");
  size_t used = 0;
  const auto add = [&](const data::ChatIds& chat, float weight) {
    const size_t begin = used;
    for (size_t i = 0; i + 1 < chat.ids.size(); ++i, ++used) {
      const bool counts = chat.answers[i + 1] != 0;
      if (!tokens.empty()) tokens[used] = chat.ids[i];
      if (!labels.empty()) labels[used] = counts ? chat.ids[i + 1] : kIgnored;
      if (!starts.empty()) starts[used] = static_cast<int32_t>(begin);
      if (!weights.empty()) weights[used] = counts ? weight : 0.0f;
    }
  };
  const bool ended = sample >= num_samples();
  if (!ended) {
    const data::Preferences::Pair& pair = preferences_->pairs()[members_[sample]];
    add(pair.chosen, 1.0f);
    add(pair.rejected, -1.0f);
  }
  const auto pad = [&](auto part, auto value) {
    if (!part.empty()) std::ranges::fill(part.subspan(used), value);
  };
  pad(tokens, -1), pad(labels, kIgnored), pad(starts, static_cast<int32_t>(used)), pad(weights, 0.0f);
  for (double& reference : view.get<double>("reference"))
    reference = ended ? std::numeric_limits<double>::quiet_NaN() : reference_[sample];
}

void PreferenceSamples::fill(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, parts_,
               [&](uint64_t at, const BatchView& view) { fill_row(options_.order(first + at, num_samples()), view); });
}

void PreferenceSamples::fill_in_order(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, parts_, [&](uint64_t at, const BatchView& view) { fill_row(first + at, view); });
}

}  // namespace kintsugi::samples
