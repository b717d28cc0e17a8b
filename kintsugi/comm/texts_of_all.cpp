#include "kintsugi/comm/texts_of_all.h"

#include <algorithm>

namespace kintsugi::comm {
namespace {

// The lengths of all texts, and a buffer for the longest that holds the text of this rank.
struct Padded {
  std::vector<int64_t> lengths;
  std::string mine;

  Padded(Communicator& all, const std::string& text) : lengths(static_cast<size_t>(all.size())), mine(text) {
    const int64_t length = std::ssize(text);
    all.wait(all.all_gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths))));
    mine.resize(static_cast<size_t>(*std::ranges::max_element(lengths)));
  }

  std::vector<std::string> cut(const std::string& joined) const {
    std::vector<std::string> texts;
    for (size_t rank = 0; rank < lengths.size(); ++rank)
      texts.push_back(joined.substr(rank * mine.size(), static_cast<size_t>(lengths[rank])));
    return texts;
  }
};

}  // namespace

std::vector<std::string> texts_of_all(Communicator& all, const std::string& mine) {
  const Padded padded(all, mine);
  std::string joined(padded.mine.size() * padded.lengths.size(), '\0');
  if (!joined.empty())
    all.wait(all.all_gather(std::as_bytes(std::span(padded.mine)), std::as_writable_bytes(std::span(joined))));
  return padded.cut(joined);
}

std::vector<std::string> texts_on_rank_0(Communicator& all, const std::string& mine) {
  const Padded padded(all, mine);
  std::string joined(all.rank() == 0 ? padded.mine.size() * padded.lengths.size() : 0, '\0');
  if (!padded.mine.empty())
    all.wait(all.gather(std::as_bytes(std::span(padded.mine)), std::as_writable_bytes(std::span(joined)), 0));
  return all.rank() == 0 ? padded.cut(joined) : std::vector<std::string>();
}

}  // namespace kintsugi::comm
