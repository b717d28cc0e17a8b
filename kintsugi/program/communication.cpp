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
  const std::vector<Traffic> all = traffic(p, Step::train);
  if (all.empty()) return fmt::format("communication of a step: none ({})\n", to_string(p.mesh));
  size_t value = 5, kind = 4, axes = 4, phase = 4;
  double bytes = 0;
  int64_t calls = 0;
  for (const Traffic& t : all) {
    value = std::max(value, t.value.size());
    kind = std::max(kind, name_of(t.kind).size());
    axes = std::max(axes, t.axes.size());
    phase = std::max(phase, name_of(t.phase).size());
    bytes += t.total();
    calls += t.calls;
  }
  std::string text = fmt::format("communication of a step ({}), in bytes that each rank sends\n", to_string(p.mesh));
  const auto row = [&](std::string_view a, std::string_view b, std::string_view c, std::string_view d, auto&& e,
                       auto&& f, auto&& g, std::string_view why) {
    std::string line = fmt::format("  {:{}}  {:{}}  {:{}}  {:{}}  {:>8}  {:>6}  {:>8}  {}", a, value, b, kind, c, axes,
                                   d, phase, e, f, g, why);
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  row("value", "kind", "over", "when", "a call", "calls", "a step", "why");
  for (const Traffic& t : all)
    row(t.value, name_of(t.kind), t.axes, name_of(t.phase), size_text(t.bytes), t.calls, size_text(t.total()),
        t.reason);
  row("all", "", "", "", "", calls, size_text(bytes), "");
  return text;
}

std::string print_traffic_totals(const Program& p) {
  std::string text;
  for (const CallList& list : p.lists) {
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
