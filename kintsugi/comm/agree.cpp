#include "kintsugi/comm/agree.h"

#include <xxhash.h>

#include <new>
#include <span>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/memory.h"

namespace kintsugi::comm {
namespace {

constexpr std::string_view kWhere = "comm";  // for errors that name no module

template <typename T>
std::span<std::byte> bytes_of(T& data) {
  return std::as_writable_bytes(std::span(data));
}

// Splits "[where] what".
std::pair<std::string, std::string> parts_of(const std::string& text) {
  const size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  if (end == std::string::npos) return {std::string(kWhere), text};
  return {text.substr(1, end - 1), text.substr(end + 2)};
}

}  // namespace

std::optional<std::string> failure_of(Communicator& all, const std::function<void()>& f) {
  std::string text;
  try {
    f();
  } catch (const base::InternalError&) {
    throw;  // a bug: no rank continues, and the rank that detects it ends the run
  } catch (const std::bad_alloc&) {
    text = base::kNoMemory;
  } catch (const std::exception& error) {
    text = error.what();
    if (text.empty()) text = "an error without a text";
  }
  // Length and checksum: 0 on success, and equal for equal texts.
  std::vector<uint64_t> mine = {text.size(), XXH3_64bits(text.data(), text.size())};
  std::vector<uint64_t> every(2 * static_cast<size_t>(all.size()));
  all.wait(all.all_gather(bytes_of(mine), bytes_of(every)));
  int failed = 0;
  while (failed < all.size() && every[2 * static_cast<size_t>(failed)] == 0) ++failed;
  if (failed == all.size()) return std::nullopt;
  const uint64_t length = every[2 * static_cast<size_t>(failed)], sum = every[2 * static_cast<size_t>(failed) + 1];
  bool alike = true;
  for (size_t r = 0; r < every.size(); r += 2) alike &= every[r] == length && every[r + 1] == sum;
  if (alike) return text;
  text.resize(length);
  all.wait(all.broadcast(bytes_of(text), failed));
  const auto [where, what] = parts_of(text);
  return fmt::format("[{}] rank {}: {}", where, failed, what);
}

void together(Communicator& all, const std::function<void()>& f) {
  const std::optional<std::string> failure = failure_of(all, f);
  if (!failure) return;
  const auto [where, what] = parts_of(*failure);
  throw SharedError(where, "{}", what);
}

int64_t of_rank_0(Communicator& all, int64_t value) {
  std::vector<int64_t> data = {value};
  all.wait(all.broadcast(bytes_of(data), 0));
  return data[0];
}

bool on_any(Communicator& all, bool mine) {
  const std::vector<int32_t> flag = {mine ? 1 : 0};
  std::vector<int32_t> most = {0};
  all.wait(all.all_reduce(std::as_bytes(std::span(flag)), std::as_writable_bytes(std::span(most)), tensor::DType::i32,
                          Reduction::max));
  return most[0] != 0;
}

void require_rank_order(const World& world, std::string_view what) {
  if (world.backend().adds_in_rank_order) return;
  throw SharedError(
      "comm",
      "{} needs sums in the order of ranks, which transport \"{}\" does not guarantee; leave it out, or use "
      "transport = \"threads\" or \"mpi\"",
      what, world.backend().name);
}

}  // namespace kintsugi::comm
