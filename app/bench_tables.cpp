#include "app/bench_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "app/fold.h"
#include "app/table.h"
#include "kintsugi/base/format.h"

namespace kintsugi::app {
namespace {

using simulate::MeasuredKernel;

constexpr size_t kMostRows = 24;  // of products, and of others

double peak_of(const simulate::Device& limits, tensor::DType type) {
  const auto found = limits.peak.find(type);
  return found == limits.peak.end() ? limits.peak.begin()->second : found->second;
}

std::string size_text(const MeasuredKernel& m) {
  if (!m.key.size) return bytes_cell(m.key.bytes);
  const simulate::ProductSize& s = *m.key.size;
  return fmt::format("{:.0f}x{:.0f}x{:.0f}{} {}", s.rows, s.columns, s.depth,
                     s.times == 1 ? "" : fmt::format("x{:.0f}", s.times), m.key.form);
}

std::string rows_of(std::vector<MeasuredKernel> kernels, const simulate::Device& limits) {
  std::ranges::stable_sort(kernels, std::greater<>(), &MeasuredKernel::seconds);
  std::vector<std::vector<std::string>> cells = {{"kernel", "type", "size", "a call", "flops", "memory", "of limit"}};
  for (const MeasuredKernel& m : kernels) {
    if (cells.size() > kMostRows) break;
    const double flops = m.key.flops / m.seconds, bytes = m.key.bytes / m.seconds;
    const double arithmetic = flops / peak_of(limits, m.key.type), memory = bytes / limits.memory_bandwidth;
    cells.push_back(
        {m.key.kernel, std::string(name_of(m.key.type)), size_text(m), base::format_time(m.seconds),
         m.key.flops > 0 ? base::format_rate(flops, "FLOP/s") : "", base::format_rate(bytes, "B/s"),
         fmt::format("{:.0f}% {}", 100 * std::max(arithmetic, memory), arithmetic >= memory ? "flops" : "memory")});
  }
  const size_t shown = cells.size() - 1;
  return table_within(kColumns, cells) +
         (shown < kernels.size() ? fmt::format("  and {} that take less\n", kernels.size() - shown) : std::string());
}

}  // namespace

std::vector<int64_t> standard_sizes() {
  std::vector<int64_t> sizes;
  for (int64_t bytes = 1024; bytes <= int64_t{64} << 20; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

std::string cores_table(const std::vector<calibrate::CoreRates>& rates) {
  std::vector<std::vector<std::string>> cells = {{"cores", "fp32", "bf16 products", "memory"}};
  for (const calibrate::CoreRates& r : rates)
    cells.push_back({fmt::format("{}", r.cores), base::format_rate(r.fp32, "FLOP/s"),
                     base::format_rate(r.bf16, "FLOP/s"), base::format_rate(r.memory, "B/s")});
  return table_within(kColumns, cells);
}

std::string kernels_table(const std::vector<MeasuredKernel>& kernels, const simulate::Device& limits) {
  std::vector<MeasuredKernel> products, others;
  for (const MeasuredKernel& m : kernels) (m.key.size ? products : others).push_back(m);
  std::string text =
      "products: rows x columns x depth, neighbours of the operands along depth and columns (n) or not (t)\n";
  return text + rows_of(products, limits) + "other kernels\n" + rows_of(others, limits);
}

std::string collectives_table(const std::vector<calibrate::CollectiveTime>& times, double memory) {
  std::vector<std::vector<std::string>> cells = {{"operation", "value", "time", "sent by a rank", "of memory"}};
  for (const calibrate::CollectiveTime& t : times) {
    const auto bytes = static_cast<double>(t.bytes);
    const double moved = moved_bytes(t.operation, t.ranks, bytes);
    cells.push_back({std::string(name_of(t.operation)),
                     moved > 0 ? base::format_bytes(static_cast<uint64_t>(t.bytes)) : "", base::format_time(t.seconds),
                     moved > 0 ? base::format_rate(sent_bytes(t.operation, t.ranks, bytes) / t.seconds, "B/s") : "",
                     moved > 0 ? fmt::format("{:.0f}%", 100 * moved / t.seconds / memory) : ""});
  }
  return table_within(kColumns, cells);
}

}  // namespace kintsugi::app
