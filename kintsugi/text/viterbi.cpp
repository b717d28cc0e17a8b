#include "kintsugi/text/viterbi.h"

#include <algorithm>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

// The best segment that ends at a position.
struct Best {
  double score = 0;
  uint32_t length = 0;  // of the segment; 0: no segment ends here
  int32_t id = -1;
};

constexpr size_t kFewBytes = 63;
constexpr size_t kLongestPart = 1 << 24;  // bounds the memory for a word

}  // namespace

void Viterbi::segment(std::string_view text, std::vector<Segment>& segments) const {
  Best few[kFewBytes + 1];
  std::vector<Best> many;
  Best* best = few;
  size_t done = 0;
  while (done < text.size()) {
    std::string_view part = text.substr(done, kLongestPart);
    part = part.substr(0, count_valid(part));
    if (part.size() > kFewBytes) {
      many.assign(part.size() + 1, {});
      best = many.data();
    } else {
      std::fill(few, few + part.size() + 1, Best());
      best = few;
    }
    for (size_t at = 0; at < part.size();) {
      const double before = best[at].score;
      const auto size = static_cast<size_t>(read_character(part.substr(at)).size);
      bool has_character = false;
      const auto offer = [&](size_t length, double score, int32_t id) {
        score += before;
        if (single_) score = static_cast<float>(score);
        Best& target = best[at + length];
        if (target.length == 0 || score > target.score) target = {score, static_cast<uint32_t>(length), id};
      };
      trie_.each(part.substr(at), [&](size_t length, int32_t id) {
        offer(length, scores_[id], id);
        has_character = has_character || length == size;
      });
      if (!has_character) offer(size, unknown_score_, -1);
      at += size;
    }
    const auto first = static_cast<ptrdiff_t>(segments.size());
    for (size_t end = part.size(); end > 0; end -= best[end].length)
      segments.push_back({done + end - best[end].length, done + end, best[end].id});
    std::reverse(segments.begin() + first, segments.end());
    done += part.size();
  }
}

}  // namespace kintsugi::text
