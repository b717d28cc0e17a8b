#include "kintsugi/program/print.h"

#include <fmt/format.h>

#include <map>

#include "kintsugi/base/format.h"

namespace kintsugi::program {
namespace {

std::string operand(const Program& p, BufferId id) {
  const Buffer& b = p.buffer(id);
  return fmt::format("#{} {}{} {}", id, b.name, to_string(b.type.shape), tensor::name_of(b.type.dtype));
}

std::string line(const Program& p, size_t number, const Instruction& i) {
  std::string outs, ins;
  for (size_t j = 0; j < i.outs.size(); ++j)
    outs += fmt::format("{}{}{}", outs.empty() ? "" : ", ", (i.accumulate >> j) & 1u ? "+" : "", operand(p, i.outs[j]));
  for (BufferId b : i.ins) ins += fmt::format("{}#{}", ins.empty() ? "" : ", ", b);
  const std::string attributes = to_string(i.attributes);
  return fmt::format("  {:4} {} = {}({}){}{}{}   {:.3g} flops, {:.3g} bytes\n", number, outs, i.kernel, ins,
                     attributes.empty() ? "" : "  ", attributes,
                     i.workspace == kNoBuffer ? "" : fmt::format("  workspace #{}", i.workspace), i.flops, i.bytes);
}

}  // namespace

std::string print_totals(const Program& p) {
  std::map<std::string, int64_t> by_kind;
  for (const StateInfo& s : p.states) by_kind[s.kind] += p.buffer(s.buffer).bytes();
  std::string text = "memory\n";
  for (const auto& [kind, bytes] : by_kind) text += fmt::format("  {:24} {:>16} bytes\n", kind, bytes);
  text += fmt::format("  {:24} {:>16} bytes\n", "states, aligned", p.state_bytes);
  for (const CallList& l : p.lists)
    text +=
        fmt::format("  {:24} {:>16} bytes, lower bound {}\n", "arena of " + l.name, l.arena_bytes, l.lower_bound_bytes);
  text += fmt::format("  {:24} {:>16} bytes ({})\n", "peak", p.bytes(),
                      base::format_bytes(static_cast<uint64_t>(p.bytes())));
  text += "work\n";
  for (const CallList& l : p.lists) text += fmt::format("  {:24} {:.6g} flops\n", l.name, p.flops(l.name));
  return text;
}

std::string print(const Program& p) {
  std::string text = "buffers\n";
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const Buffer& b = p.buffers[i];
    if (b.same_as != kNoBuffer) {
      text += fmt::format("  {} is #{}\n", operand(p, static_cast<BufferId>(i)), b.same_as);
    } else {
      text += fmt::format("  {} at {}+{}, {} bytes{}{}\n", operand(p, static_cast<BufferId>(i)), name_of(b.region),
                          b.offset, b.bytes(), b.input.empty() ? "" : ", input ", b.input);
    }
  }
  for (const Body& body : p.bodies) {
    text += fmt::format("body {}\n", body.name);
    for (size_t i = 0; i < body.instructions.size(); ++i) text += line(p, i, body.instructions[i]);
  }
  for (const CallList& l : p.lists) {
    text += fmt::format("calls {}\n", l.name);
    for (const Call& c : l.calls)
      text += fmt::format("  {}{}\n", p.bodies[static_cast<size_t>(c.body)].name,
                          c.micro_batch < 0 ? "" : fmt::format(" micro-batch {}", c.micro_batch));
  }
  return text + print_totals(p);
}

}  // namespace kintsugi::program
