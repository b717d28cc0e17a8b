#include "kintsugi/device/emulated/access_order.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::device {

size_t AccessOrder::number_of(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  names_.emplace_back(name);
  return numbers_.emplace(name, names_.size() - 1).first->second;
}

// Splits the entry that contains `at` in two.
void AccessOrder::cut(uintptr_t at) {
  auto after = memory_.upper_bound(at);
  if (after == memory_.begin()) return;
  const auto before = std::prev(after);
  if (before->first == at || before->second.end <= at) return;
  Bytes rest = before->second;
  before->second.end = at;
  memory_.emplace_hint(after, at, std::move(rest));
}

std::pair<AccessOrder::Memory::iterator, AccessOrder::Memory::iterator> AccessOrder::range(uintptr_t begin,
                                                                                           uintptr_t end) {
  cut(begin);
  cut(end);
  uintptr_t at = begin;
  for (auto i = memory_.lower_bound(begin); at < end;) {
    if (i == memory_.end() || i->first > at) {
      const uintptr_t next = i == memory_.end() ? end : std::min(end, i->first);
      i = memory_.emplace_hint(i, at, Bytes{.end = next});
    }
    at = i->second.end;
    ++i;
  }
  return {memory_.lower_bound(begin), memory_.lower_bound(end)};
}

bool AccessOrder::looks_at(std::span<const std::byte> bytes) const {
  if (bytes.empty()) return false;
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  const auto after = known_.upper_bound(at);
  return after != known_.begin() && at < std::prev(after)->second;
}

void AccessOrder::access(size_t stream, const VectorClock& clock, const Access& access) {
  const size_t name = number_of(access.what);
  const Known own = {stream, clock.of(stream), name};
  const auto require_order = [&](const Known& other, const char* does, const char* did) {
    if (clock.of(other.stream) < other.tick)
      throw base::InternalError("device", "{} {} memory that {} {}, and nothing orders the two", access.what, does,
                                names_[other.name], did);
  };
  const auto address = [](std::span<const std::byte> bytes) { return reinterpret_cast<uintptr_t>(bytes.data()); };
  for (const std::span<const std::byte> read : access.reads) {
    if (!looks_at(read)) continue;
    const auto [first, last] = range(address(read), address(read) + read.size());
    for (auto i = first; i != last; ++i) {
      Bytes& bytes = i->second;
      if (bytes.written) require_order(bytes.write, "reads", "writes");
      const auto same =
          std::find_if(bytes.reads.begin(), bytes.reads.end(), [&](const Known& r) { return r.stream == stream; });
      if (same == bytes.reads.end()) {
        bytes.reads.push_back(own);
      } else {
        *same = own;
      }
    }
  }
  for (const std::span<const std::byte> written : access.writes) {
    if (!looks_at(written)) continue;
    const uintptr_t begin = address(written), end = begin + written.size();
    const auto [first, last] = range(begin, end);
    for (auto i = first; i != last; ++i) {
      if (i->second.written) require_order(i->second.write, "writes", "writes");
      for (const Known& r : i->second.reads) require_order(r, "writes", "reads");
    }
    memory_.erase(first, last);
    memory_[begin] = {.end = end, .written = true, .write = own, .reads = {}};
  }
}

void AccessOrder::look_at(const std::byte* begin, int64_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  known_[from] = from + static_cast<uintptr_t>(bytes);
}

void AccessOrder::forget(const std::byte* begin, int64_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  known_.erase(from);
  const auto [first, last] = range(from, from + static_cast<uintptr_t>(bytes));
  memory_.erase(first, last);
}

}  // namespace kintsugi::device
