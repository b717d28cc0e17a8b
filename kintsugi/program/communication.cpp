#include "kintsugi/program/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "kintsugi/base/format.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "layer12.ffn" -> "layer*.ffn"
std::string any_layer(const std::string& text) {
  constexpr std::string_view word = "layer";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t digits = i + word.size();
    if (text.compare(i, word.size(), word) == 0 && digits < text.size() && is_digit(text[digits])) {
      out += "layer*";
      for (i = digits; i < text.size() && is_digit(text[i]);) ++i;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string value_name(const Program& p, const Instruction& i) {
  std::string name = any_layer(p.buffer(value_of(i)).name);
  constexpr std::string_view stacked = ".parts";
  if (name.ends_with(stacked)) name.resize(name.size() - stacked.size());
  return name;
}

std::string size_text(double bytes) {
  return base::format_bytes(static_cast<uint64_t>(bytes + 0.5));
}

}  // namespace

std::vector<Traffic> traffic(const Program& p, Step step) {
  const CallList& list = p.list(step);
  const std::vector<int64_t> calls = num_calls(p, list);
  std::vector<Traffic> all;
  std::map<std::tuple<std::string, Collective, std::string, Phase, std::string, double>, size_t> known;
  for (const auto& [position, call, body] : first_calls(p, list))
    for (const Instruction& i : body.instructions) {
      if (i.kind != Kind::collective) continue;
      Traffic t = {
          value_name(p, i), i.collective, p.mesh.name_of(i.group), i.phase, any_layer(i.reason), i.cost.wire_bytes, 0};
      const auto at = known.try_emplace({t.value, t.kind, t.axes, t.phase, t.reason, t.bytes}, all.size()).first;
      if (at->second == all.size()) all.push_back(std::move(t));
      all[at->second].calls += calls[static_cast<size_t>(call.body)];
    }
  std::stable_sort(all.begin(), all.end(), [](const Traffic& a, const Traffic& b) { return a.total() > b.total(); });
  return all;
}

std::string print_communication(const Program& p) {
  constexpr size_t kLine = 76;  // of a name or a reason, below its row
  const std::vector<Traffic> all = traffic(p, Step::train);
  if (all.empty()) return fmt::format("communication of a step: none ({})\n", to_string(p.mesh));
  double bytes = 0;
  int64_t calls = 0;
  for (const Traffic& t : all) {
    bytes += t.total();
    calls += t.calls;
  }
  std::string text = fmt::format("communication of a step ({}), in bytes that each rank sends\n", to_string(p.mesh));
  const auto row = [&](std::string_view total, const auto& number, std::string_view each, std::string_view what) {
    const std::string line = fmt::format("  {:>8}  {:>6}  {:>8}  {}", total, number, each, what);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  row("a step", "calls", "a call", "");
  row(size_text(bytes), calls, "", "all");
  for (const Traffic& t : all) {
    row(size_text(t.total()), t.calls, size_text(t.bytes),
        fmt::format("{} over {}, {}", name_of(t.kind), t.axes, name_of(t.phase)));
    for (const std::string& more : {t.value, t.reason})
      if (!more.empty()) text += fmt::format("    {}\n", base::without_middle(more, kLine));
  }
  return text;
}

std::string print_traffic_totals(const Program& p) {
  std::string text;
  for (const CallList& list : p.lists) {
    if (list.micro_batches > 0) continue;
    std::map<std::pair<std::string, std::string_view>, std::pair<double, int64_t>>
        sums;  // (axes, kind) -> (bytes, calls)
    for (const Traffic& t : traffic(p, list.step)) {
      auto& [bytes, calls] = sums[{t.axes, name_of(t.kind)}];
      bytes += t.total();
      calls += t.calls;
    }
    if (!sums.empty()) text += fmt::format("sent by each rank in {}\n", name_of(list.step));
    for (const auto& [key, sum] : sums)
      text += fmt::format("  {:24} {:>16.0f} bytes, {} {}\n", fmt::format("{} over {}", key.second, key.first),
                          sum.first, sum.second, sum.second == 1 ? "call" : "calls");
  }
  return text;
}

}  // namespace kintsugi::program
