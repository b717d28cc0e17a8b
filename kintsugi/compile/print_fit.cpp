// The text about a rank that needs more memory than it may use. Here rather than in app/, since train throws it on all
// ranks, while plan only warns.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kintsugi/base/format.h"
#include "kintsugi/compile/fit.h"

namespace kintsugi::compile {
namespace {

std::string in_words(int64_t bytes) {
  return base::format_bytes(static_cast<uint64_t>(bytes));
}

std::string exactly(int64_t bytes) {
  return fmt::format("{} bytes ({})", base::group_digits(bytes), in_words(bytes));
}

// "[parallel] memory_per_rank", "this machine's 15.5 GiB over 2 ranks"
std::string in_words(const MemoryLimit& limit) {
  using Source = MemoryLimit::Source;
  if (limit.source == Source::memory_per_rank) return "[parallel] memory_per_rank";
  const std::string over = limit.ranks == 1 ? "" : fmt::format(" over {} ranks", limit.ranks);
  if (limit.source == Source::device)
    return fmt::format("the {} that are free of the device's {}{}", in_words(limit.shared), in_words(limit.of), over);
  const std::string_view whose = limit.source == Source::machine ? "this machine's" : "the control group's";
  return fmt::format("{} {}{}", whose, in_words(limit.shared), over);
}

std::string in_words(const Saving& saving) {
  return fmt::format("{} saves {} and fits", plan::to_string(saving.sets), exactly(saving.bytes));
}

}  // namespace

std::vector<std::string> describe(const Excess& e) {
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : e.largest) parts.push_back(fmt::format("{} {}", name, in_words(bytes)));
  std::vector<std::string> lines = {
      fmt::format("rank {}{} needs {} but only {} is available, {}; most of it is {}", e.rank,
                  e.stages > 1 ? fmt::format(" (stage {} of {})", e.stage, e.stages) : "", exactly(e.bytes),
                  exactly(e.limit.bytes), in_words(e.limit), fmt::join(parts, ", "))};
  for (const Saving& saving : e.fitting) lines.push_back(in_words(saving));
  if (e.together) {
    lines.push_back("no single change fits; all of them together do: " + in_words(*e.together));
  } else if (e.fitting.empty()) {
    lines.push_back(e.not_tried > 0
                        ? "no change that was tried makes it fit"
                        : "nothing that could be changed here makes it fit; it needs more ranks or more memory");
  }
  if (e.not_tried > 0)
    lines.push_back(base::counted(e.not_tried, "change") + " not tried, because compiling this model takes too long");
  return lines;
}

std::string one_line(const Excess& e) {
  return fmt::format("{}", fmt::join(describe(e), "; "));
}

}  // namespace kintsugi::compile
