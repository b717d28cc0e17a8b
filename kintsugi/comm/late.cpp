#include "kintsugi/comm/late.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kintsugi::comm {

std::string list_ranks(std::span<const int> ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, " "));
}

std::string describe(const Call& call, int self, std::span<const int> world_ranks) {
  if (call.kind == Kind::send) {
    return fmt::format("{} from rank {} to rank {}", call.text(), world_ranks[self], world_ranks[call.root]);
  }
  if (call.kind == Kind::receive) {
    return fmt::format("{} from rank {} to rank {}", call.text(), world_ranks[call.root], world_ranks[self]);
  }
  return fmt::format("{} among {}", call.text(), list_ranks(world_ranks));
}

Late late(const std::string& what, std::chrono::milliseconds limit, std::span<const int> world_ranks,
          std::span<const int> members, const std::vector<Came>& came) {
  Late result;
  const auto list = [&](Came which, const char* what) {
    std::vector<int> those;
    for (size_t i = 0; i < members.size(); ++i) {
      if (came[i] != which) continue;
      those.push_back(world_ranks[members[i]]);
      result.absent |= which == Came::no || which == Came::unknown;
      (which == Came::yes ? result.arrived : result.missing).push_back(members[i]);
    }
    return those.empty() ? "" : fmt::format("{}{}, ", list_ranks(those), what);
  };
  std::string who = list(Came::yes, " arrived") + list(Came::no, " did not") +
                    list(Came::stuck, " arrived and went no further") + list(Came::unknown, " said nothing");
  who.resize(who.size() - 2);
  if (result.missing.empty()) who = "all of them arrived";
  result.text = fmt::format("{} did not end within {:g} s: {}", what, static_cast<double>(limit.count()) / 1e3, who);
  return result;
}

void throw_late(const Late& late) {
  throw Timeout(late.text, late.arrived, late.missing);
}

}  // namespace kintsugi::comm
