#include "kintsugi/program/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/program/communication.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {
namespace {

// "/data", "/data.1,tensor", "/context zigzag"
std::string split_of(const Program& p, const Buffer& b, const std::string& dim) {
  const std::vector<mesh::Factor>& factors = b.layout.of(dim);
  if (factors.empty()) return "";
  std::string text = "/" + p.mesh.name_of(factors);
  std::replace(text.begin(), text.end(), ' ', ',');
  for (mesh::Factor f : factors)
    if (p.mesh.cut(dim, f).zigzag) return text + "(zigzag)";
  return text;
}

std::string partial_of(const Program& p, const Buffer& b) {
  std::string text;
  for (const mesh::Part& part : b.layout.partial())
    text += fmt::format(" {} over {}", part.combiner == mesh::Combiner::sum ? "partial" : name_of(part.combiner),
                        p.mesh.name_of(std::vector<mesh::Factor>{part.factor}));
  return text;
}

// #5 add[batch:2/data seq:8 embed:24] fp32 partial over tensor
std::string operand(const Program& p, BufferId id) {
  const Buffer& b = p.buffer(id);
  std::string dims;
  for (const tensor::Dim& d : b.type.shape)
    dims += fmt::format("{}{}:{}{}", dims.empty() ? "" : " ", d.name, d.size, split_of(p, b, d.name));
  std::string text = fmt::format("#{} {}[{}] {}{}", id, b.name, dims, tensor::name_of(b.type.dtype), partial_of(p, b));
  if (b.turn > 0) text += fmt::format(", of the rank {} further along {}", b.turn, p.mesh.name_of(b.ring));
  return text;
}

std::string view_of(const Program& p, const Buffer& b) {
  std::string text = fmt::format("#{}", b.same_as);
  if (b.shift > 0) text += fmt::format(" from byte {}", b.shift);
  if (!b.part.empty()) text += fmt::format(", the own part over {}", p.mesh.name_of(b.part));
  return text;
}

// start all_reduce #5 -> #6 add[batch:2/data embed:24] fp32 over tensor  sum, 4.1 MiB sent, "partial over tensor, ..."
std::string collective_line(const Program& p, const Instruction& i) {
  std::string text = fmt::format("{}{}", i.event < 0 ? "" : "start ", name_of(i.collective));
  if (!i.ins.empty()) text += i.outs.empty() ? " " + operand(p, i.ins[0]) : fmt::format(" #{}", i.ins[0]);
  if (!i.outs.empty()) text += " -> " + operand(p, i.outs[0]);
  text += fmt::format(" over {}", p.mesh.name_of(i.group));
  if (i.peer >= 0) text += fmt::format(", place {}", i.peer);
  if (!i.channel.empty()) text += fmt::format(", channel \"{}\"", i.channel);
  if (reduces(i)) text += fmt::format("  {},", name_of(i.reduction));
  return fmt::format("{}{}{} sent, \"{}\"", text, reduces(i) ? " " : "  ",
                     base::format_bytes(static_cast<uint64_t>(i.cost.wire_bytes)), i.reason);
}

// start fetch #5 -> #6 layer0.m[flat:1024] fp32  4.0 KiB, "lies in the file"
std::string copy_line(const Program& p, const Instruction& i) {
  return fmt::format("start {} #{} -> {}  {}, \"{}\"", name_of(i.copy), i.ins[0], operand(p, i.outs[0]),
                     base::format_bytes(static_cast<uint64_t>(i.cost.wire_bytes)), i.reason);
}

std::string wait_line(const Program& p, const Body& body, const Instruction& i) {
  size_t start = 0;
  while (start < body.instructions.size() &&
         (body.instructions[start].kind == Kind::wait || body.instructions[start].event != i.event))
    ++start;
  const std::string of = start < body.instructions.size() ? fmt::format("{}", start) : "an earlier call";
  return fmt::format("wait for {}: {} {}", of, name_of(i),
                     i.outs.empty() ? operand(p, i.ins[0]) : "-> " + operand(p, i.outs[0]));
}

std::string compute_line(const Program& p, const Instruction& i) {
  std::string outs, ins;
  for (size_t j = 0; j < i.outs.size(); ++j)
    outs += fmt::format("{}{}{}", outs.empty() ? "" : ", ", (i.accumulate >> j) & 1u ? "+" : "", operand(p, i.outs[j]));
  for (BufferId b : i.ins) ins += fmt::format("{}#{}", ins.empty() ? "" : ", ", b);
  std::string attributes = to_string(i.attributes);
  if (i.adds_in_tree) attributes += "in a tree";
  const std::string launch = i.launch == 1   ? ""
                             : i.launch == 0 ? "  in the same launch"
                                             : fmt::format("  launch of {}", i.launch);
  return fmt::format("{} = {}({}){}{}{}{}   {:.3g} flops, {:.3g} bytes", outs, i.kernel, ins,
                     attributes.empty() ? "" : "  ", attributes,
                     i.workspace == kNoBuffer ? "" : fmt::format("  workspace #{}", i.workspace), launch, i.cost.flops,
                     i.cost.memory_bytes);
}

std::string text_of(const Program& p, const Body& body, const Instruction& i) {
  switch (i.kind) {
    case Kind::compute:
      return compute_line(p, i);
    case Kind::collective:
      return collective_line(p, i);
    case Kind::copy:
      return copy_line(p, i);
    case Kind::wait:
      return wait_line(p, body, i);
  }
  throw base::InternalError("program", "no kind of instruction {}", static_cast<int>(i.kind));
}

std::string line(const Program& p, const Body& body, size_t number) {
  return fmt::format("  {:4} {}\n", number, text_of(p, body, body.instructions[number]));
}

std::string place(const CallList& list, const Position& at) {
  if (static_cast<size_t>(at.call) == list.calls.size()) return "the end";
  return at.instruction == kBeforeInputs ? fmt::format("the inputs of call {}", at.call)
                                         : fmt::format("{} of call {}", at.instruction, at.call);
}

// What a device is given besides the instructions in order. Waits at their instructions are omitted.
std::string print_order(const Program& p, const CallList& list) {
  const DeviceOrder& order = list.order;
  std::string text = fmt::format("order {}\n  exchange {}, {}\n", name_of(list.step), name_of(p.exchange),
                                 order.captured ? "captured" : "not captured");
  for (const StagedInput& input : order.inputs)
    text += fmt::format("  copy input {} before call {} from staging+{}\n", operand(p, input.buffer), input.call,
                        input.offset);
  for (const PlacedWait& w : order.waits)
    if (w.wait != w.before) text += fmt::format("  wait {} before {}\n", place(list, w.wait), place(list, w.before));
  for (const Position& start : order.unordered) text += fmt::format("  start {} unordered\n", place(list, start));
  return text;
}

}  // namespace

std::string print_totals(const Program& p) {
  const auto where = [](Region region) {
    return region == Region::file ? ", in the file" : region == Region::arena ? ", in the arena" : "";
  };
  std::map<std::string, int64_t> by_kind;
  std::set<BufferId> counted;  // states of one bucket share a buffer
  for (const StateInfo& s : p.states)
    if (counted.insert(p.root(s.buffer)).second)
      by_kind[std::string(name_of(s.kind)) + where(p.buffer(p.root(s.buffer)).region)] +=
          p.buffer(p.root(s.buffer)).bytes();
  std::string text = "memory\n";
  for (const auto& [kind, bytes] : by_kind) text += fmt::format("  {:24} {:>16} bytes\n", kind, bytes);
  // Before allocation, the following does not exist.
  const bool placed = p.bytes() > 0;
  if (placed) text += fmt::format("  {:24} {:>16} bytes\n", "states, aligned", p.state_bytes);
  for (const CallList& l : p.lists)
    if (placed && l.micro_batches == 0)
      text += fmt::format("  {:24} {:>16} bytes, lower bound {}\n", fmt::format("arena of {}", name_of(l.step)),
                          l.arena_bytes, l.lower_bound_bytes);
  if (p.sums_bytes > 0) text += fmt::format("  {:24} {:>16} bytes\n", "sums in order", p.sums_bytes);
  if (p.staged_bytes > 0) text += fmt::format("  {:24} {:>16} bytes\n", "staging", p.staged_bytes);
  if (placed)
    text += fmt::format("  {:24} {:>16} bytes ({})\n", "peak", p.bytes(),
                        base::format_bytes(static_cast<uint64_t>(p.bytes())));
  if (p.file_bytes > 0) text += fmt::format("  {:24} {:>16} bytes, not of memory\n", "file", p.file_bytes);
  text += "work\n";
  for (const CallList& l : p.lists)
    if (l.micro_batches == 0) text += fmt::format("  {:24} {:.6g} flops\n", name_of(l.step), p.flops(l.step));
  return text + print_traffic_totals(p);
}

namespace {

// "train", "train of 2 micro-batches".
std::string name_of_list(const CallList& l) {
  return l.micro_batches == 0 ? std::string(name_of(l.step))
                              : fmt::format("{} of {}", name_of(l.step), base::counted(l.micro_batches, "micro-batch"));
}

// "  forward x 3": consecutive calls of one body share a line.
std::string calls_in_words(const Program& p, const CallList& l) {
  std::string text;
  std::string_view last;
  int64_t times = 0;
  const auto end = [&] {
    if (times > 0) text += fmt::format("  {}{}\n", last, times > 1 ? fmt::format(" x {}", times) : "");
    times = 0;
  };
  for (const auto& [position, call, body] : walk(p, l)) {
    if (body.name != last) end();
    last = body.name;
    ++times;
  }
  end();
  return text;
}

}  // namespace

std::string print_outline(const Program& p) {
  int64_t views = 0;
  for (const Buffer& b : p.buffers) views += b.same_as != kNoBuffer;
  const auto buffers = std::ssize(p.buffers);
  std::string text = fmt::format("{}, {} of them views of others\nbodies\n", base::counted(buffers, "buffer"),
                                 base::group_digits(views));
  for (const Body& body : p.bodies) {
    double flops = 0, sent = 0;
    for (const Instruction& i : body.instructions) {
      flops += i.cost.flops;
      sent += i.cost.wire_bytes;
    }
    text += fmt::format("  {:24} {}, {:.6g} flops{}\n", body.name,
                        base::counted(std::ssize(body.instructions), "instruction"), flops,
                        sent > 0 ? fmt::format(", {} sent", base::format_bytes(static_cast<uint64_t>(sent))) : "");
  }
  for (const CallList& l : p.lists) text += fmt::format("calls {}\n{}", name_of_list(l), calls_in_words(p, l));
  return text + print_totals(p);
}

std::string print(const Program& p) {
  std::string text = "buffers\n";
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const Buffer& b = p.buffers[i];
    if (b.same_as != kNoBuffer) {
      text += fmt::format("  {} is {}\n", operand(p, static_cast<BufferId>(i)), view_of(p, b));
    } else {
      text += fmt::format(
          "  {} {}, {} bytes{}{}{}\n", operand(p, static_cast<BufferId>(i)),
          b.offset < 0 ? fmt::format("in {}", name_of(b.region)) : fmt::format("at {}+{}", name_of(b.region), b.offset),
          b.bytes(), b.copies > 0 ? fmt::format(" x {}", b.copies) : "", b.input.empty() ? "" : ", input ", b.input);
    }
  }
  for (const Body& body : p.bodies) {
    text += fmt::format("body {}\n", body.name);
    for (size_t i = 0; i < body.instructions.size(); ++i) text += line(p, body, i);
  }
  for (const CallList& l : p.lists) {
    text += fmt::format("calls {}\n", name_of_list(l));
    for (const auto& [position, call, body] : walk(p, l))
      text += fmt::format("  {}{}\n", body.name,
                          call.micro_batch < 0 ? "" : fmt::format(" micro-batch {}", call.micro_batch));
    if (l.order.joined) text += print_order(p, l);  // once it is determined
  }
  return text + print_totals(p);
}

}  // namespace kintsugi::program
