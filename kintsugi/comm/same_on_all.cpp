#include "kintsugi/comm/same_on_all.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <vector>

#include "kintsugi/base/format.h"
#include "kintsugi/comm/agree.h"

namespace kintsugi::comm {
namespace {

std::span<const std::byte> bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

std::span<std::byte> bytes(void* data, size_t size) {
  return {static_cast<std::byte*>(data), size};
}

// For texts that differ, the first differing line: `"train.seed = 5" instead of "train.seed = 1"`.
std::string first_difference(const std::string& one, const std::string& other) {
  std::istringstream a(one), b(other);
  std::string x, y;
  while (x == y && (a || b)) {
    if (!std::getline(a, x)) x.clear();
    if (!std::getline(b, y)) y.clear();
  }
  return fmt::format("\"{}\" instead of \"{}\"", base::one_line(x, 120), base::one_line(y, 120));
}

}  // namespace

std::unique_ptr<Communicator> group_of_all(World& world) {
  std::vector<int> ranks(static_cast<size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return world.group(ranks);
}

std::string text_of_rank_0(Communicator& all, const std::string& mine) {
  int64_t size = static_cast<int64_t>(mine.size());
  all.wait(all.broadcast(bytes(&size, sizeof size), 0));
  std::string text = all.rank() == 0 ? mine : std::string(static_cast<size_t>(size), '\0');
  if (size > 0) all.wait(all.broadcast(bytes(text.data(), text.size()), 0));
  return text;
}

void require_same(Communicator& all, std::string_view where, const std::string& what, const std::string& mine) {
  const std::string first = text_of_rank_0(all, mine);
  const int32_t differs = first == mine ? 0 : 1;
  std::vector<int32_t> flags(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(bytes(&differs, sizeof differs), bytes(flags.data(), flags.size() * sizeof(int32_t))));
  const auto other = std::find(flags.begin(), flags.end(), 1);
  if (other == flags.end()) return;
  const auto rank = static_cast<int>(other - flags.begin());
  std::array<char, 512> text = {};
  if (all.rank() == rank) first_difference(mine, first).copy(text.data(), text.size() - 1);
  all.wait(all.broadcast(bytes(text.data(), text.size()), rank));
  throw SharedError(where, "rank {} has another {} than rank 0: {}; start all ranks with one", rank, what, text.data());
}

}  // namespace kintsugi::comm
