#include "kintsugi/samples/conversation_samples.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::samples {
namespace {

// Samples with remaining room considered when packing a conversation: it goes to the fullest in which it fits.
constexpr size_t kOpenSamples = 256;

}  // namespace

ConversationSamples::ConversationSamples(std::shared_ptr<const data::Conversations> conversations,
                                         ConversationOptions options)
    : conversations_(std::move(conversations)),
      options_(options),
      parts_{tokens_part(options.sequence), labels_part(options.sequence), starts_part(options.sequence)} {
  const data::Conversations& all = *conversations_;
  const auto room = static_cast<size_t>(options_.sequence);
  size_t longest = 0, too_long = 0;
  struct Sample {
    std::vector<uint32_t> members;
    size_t left;
  };
  std::vector<Sample> samples;
  size_t open = 0;  // the first that may have room
  for (size_t i = 0; i < all.size(); ++i) {
    const std::span<const uint8_t> answers = all.answers(i);
    size_t positions = answers.size() - 1;
    if (positions > room) {
      ++too_long;
      if (positions > all.ids(longest).size() - 1) longest = i;
      const bool any = std::ranges::count(answers.first(room + 1), 1) > 0;
      if (options_.too_long != TooLong::cut || !any) {
        ++dropped_;
        continue;
      }
      ++cut_;
      positions = room;
    }
    Sample* best = nullptr;
    for (size_t s = open; options_.packed && s < samples.size(); ++s)
      if (samples[s].left >= positions && (!best || samples[s].left < best->left)) best = &samples[s];
    if (!best) {
      samples.push_back({.members = {}, .left = room});
      best = &samples.back();
      open = std::max(open, samples.size() > kOpenSamples ? samples.size() - kOpenSamples : 0);
    }
    best->members.push_back(static_cast<uint32_t>(i));
    best->left -= positions;
  }
  const std::string name = base::in_quotes(all.path().string());
  if (options_.too_long == TooLong::refuse && too_long > 0)
    throw base::UserError(
        "data",
        "{}: {} of {} conversations are longer than train.sequence {}; the longest, in line {}, has {} "
        "tokens: raise train.sequence, or set data.long_conversations to \"drop\" or \"cut\"",
        name, too_long, all.size(), options_.sequence, all.line(longest), all.ids(longest).size());
  if (samples.empty())
    throw base::UserError("data", "{}: none of {} conversations is left within train.sequence {}; raise it", name,
                          all.size(), options_.sequence);
  for (const Sample& sample : samples) {
    members_.insert(members_.end(), sample.members.begin(), sample.members.end());
    begins_.push_back(members_.size());
  }
}

void ConversationSamples::fill(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, parts_, [&](uint64_t at, const BatchView& view) {
    const uint64_t sample = options_.order(first + at, num_samples());
    const std::span<int32_t> tokens = view.get<int32_t>("tokens"), labels = view.get<int32_t>("labels"),
                             starts = view.get<int32_t>("starts");
    const size_t room = static_cast<size_t>(options_.sequence);
    size_t used = 0;
    const bool ended = sample >= num_samples();
    for (size_t m = ended ? 0 : begins_[sample]; !ended && m < begins_[sample + 1]; ++m) {
      const std::span<const int32_t> ids = conversations_->ids(members_[m]);
      const std::span<const uint8_t> answers = conversations_->answers(members_[m]);
      const size_t begin = used;
      for (size_t i = 0; i + 1 < ids.size() && used < room; ++i, ++used) {
        if (!tokens.empty()) tokens[used] = ids[i];
        if (!labels.empty()) labels[used] = answers[i + 1] ? ids[i + 1] : kIgnored;
        if (!starts.empty()) starts[used] = static_cast<int32_t>(begin);
      }
    }
    const auto pad = [&](std::span<int32_t> part, int32_t value) {
      if (!part.empty()) std::ranges::fill(part.subspan(used), value);
    };
    pad(tokens, -1), pad(labels, kIgnored), pad(starts, static_cast<int32_t>(used));
  });
}

}  // namespace kintsugi::samples
