#include "kintsugi/program/stage_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kintsugi/base/format.h"

namespace kintsugi::program {
namespace {

constexpr MemoryPart kMemoryParts[] = {
    {.name = "weights", .bytes = &MemoryTable::weights, .state = true},
    {.name = "gradients", .bytes = &MemoryTable::gradients, .state = true, .always = false},
    {.name = "optimizer", .bytes = &MemoryTable::optimizer, .state = true},
    {.name = "statistics", .bytes = &MemoryTable::statistics, .state = true, .always = false},
    {.name = "caches", .bytes = &MemoryTable::caches, .state = true, .always = false},
    {.name = "live gradients", .bytes = &MemoryTable::live_gradients, .always = false},
    {.name = "activations", .bytes = &MemoryTable::activations},
    {.name = "communication", .bytes = &MemoryTable::communication},
    {.name = "workspace", .bytes = &MemoryTable::workspace},
    {.name = "sums in order", .bytes = &MemoryTable::sums, .always = false},
    {.name = "staging", .bytes = &MemoryTable::staging, .always = false},
    {.name = "packing", .bytes = &MemoryTable::packing},
    {.name = "other lists", .bytes = &MemoryTable::others, .always = false}};

}  // namespace

std::span<const MemoryPart> memory_parts() {
  return kMemoryParts;
}

std::string parts_in_words(const MemoryTable& table) {
  std::vector<std::string> parts;
  for (const MemoryPart& part : kMemoryParts)
    if (const int64_t bytes = table.*part.bytes; bytes > 0)
      parts.push_back(fmt::format("{} {}", part.name, base::format_bytes(static_cast<uint64_t>(bytes))));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string layers_in_words(const std::vector<int>& layers, int64_t all) {
  std::vector<std::string> parts, runs;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < 0 || layers[i] >= all) continue;
    size_t end = i;
    while (end + 1 < layers.size() && layers[end + 1] == layers[end] + 1 && layers[end + 1] < all) ++end;
    runs.push_back(end == i ? fmt::format("{}", layers[i]) : fmt::format("{}-{}", layers[i], layers[end]));
    i = end;
  }
  if (!layers.empty() && layers.front() < 0) parts.push_back("embedding");
  if (!runs.empty())
    parts.push_back(fmt::format("layer{} {}", runs.size() == 1 && runs[0].find('-') == std::string::npos ? "" : "s",
                                fmt::join(runs, " ")));
  if (!layers.empty() && layers.back() >= all) parts.push_back("head");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<int> ranks_of(const Program& p) {
  std::vector<int> ranks;
  for (int rank = 0; rank < p.mesh.ranks(); ++rank)
    if (p.mesh.stage_of(rank) == p.stage) ranks.push_back(rank);
  return ranks;
}

}  // namespace kintsugi::program
