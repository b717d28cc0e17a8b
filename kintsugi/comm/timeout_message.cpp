#include "kintsugi/comm/timeout_message.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kintsugi::comm {

std::string list_ranks(std::span<const int> ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, " "));
}

std::string describe(const Operation& operation, int self, std::span<const int> world_ranks) {
  const auto message = [&](int from, int to) {
    return fmt::format("{} from rank {} to rank {}", operation.text(), world_ranks[from], world_ranks[to]);
  };
  if (operation.kind == Kind::send) return message(self, operation.root);
  if (operation.kind == Kind::receive) return message(operation.root, self);
  return fmt::format("{} among {}", operation.text(), list_ranks(world_ranks));
}

TimeoutMessage timeout_message(const std::string& what, std::chrono::milliseconds limit,
                               std::span<const int> world_ranks, std::span<const int> members,
                               const std::vector<Arrival>& arrivals) {
  TimeoutMessage result;
  const auto list = [&](Arrival which, const char* predicate) {
    std::vector<int> those;
    for (size_t i = 0; i < members.size(); ++i) {
      if (arrivals[i] != which) continue;
      those.push_back(world_ranks[members[i]]);
      result.absent |= which == Arrival::absent || which == Arrival::unknown;
      (which == Arrival::arrived ? result.arrived : result.missing).push_back(members[i]);
    }
    return those.empty() ? "" : fmt::format("{}{}, ", list_ranks(those), predicate);
  };
  std::string who = list(Arrival::arrived, " arrived") + list(Arrival::absent, " did not") +
                    list(Arrival::stuck, " arrived and made no progress") + list(Arrival::unknown, " did not report");
  who.resize(who.size() - 2);
  if (result.missing.empty()) who = "all of them arrived";
  result.text = fmt::format("{} did not end within {:g} s: {}", what, static_cast<double>(limit.count()) / 1e3, who);
  return result;
}

void throw_timeout(const TimeoutMessage& message) {
  throw Timeout(message.text, message.arrived, message.missing);
}

void throw_timeout_of(int rank, std::string_view doing, const Timeout& error) {
  constexpr std::string_view kWhere = "[comm] ";  // repeated by the new error
  std::string_view why = error.what();
  if (why.starts_with(kWhere)) why.remove_prefix(kWhere.size());
  throw Timeout(fmt::format("rank {}: {}: {}", rank, doing, why), error.arrived, error.missing);
}

}  // namespace kintsugi::comm
