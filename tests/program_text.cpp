#include "tests/program_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/program_words.h"

namespace kintsugi::tests {
namespace {

using program::Buffer;
using program::Program;

std::string number(double x) {
  return fmt::format("{:.17g}", x);
}

template <typename T>
std::string list_text(const std::vector<T>& all) {
  return fmt::format("[{}]", fmt::join(all, " "));
}

std::string type_text(const tensor::Type& t) {
  return fmt::format("{}{}", tensor::name_of(t.dtype), to_string(t.shape));
}

std::string layout_text(const mesh::Layout& l) {
  std::string text;
  for (const mesh::Split& s : l.splits()) text += fmt::format(" {}/{}", s.dim, list_text(s.factors));
  for (const mesh::Part& p : l.partial()) text += fmt::format(" {}@{}", name_of(p.combiner), p.factor);
  return text.empty() ? "" : "{" + text.substr(1) + "}";
}

std::string attributes_text(const tensor::Attributes& a) {
  std::string text;
  for (const auto& [name, value] : a.list()) {
    if (const auto* n = std::get_if<int64_t>(&value)) text += fmt::format(" {}:{}", name, *n);
    if (const auto* x = std::get_if<double>(&value)) text += fmt::format(" {}:{}f", name, number(*x));
    if (const auto* t = std::get_if<std::string>(&value)) text += fmt::format(" {}:\"{}\"", name, *t);
  }
  return text.empty() ? "" : "{" + text.substr(1) + "}";
}

const char* kind_text(program::Kind k) {
  switch (k) {
    case program::Kind::compute:
      return "compute";
    case program::Kind::collective:
      return "collective";
    case program::Kind::copy:
      return "copy";
    case program::Kind::wait:
      return "wait";
  }
  return "?";
}

// A line of fields.
class Line {
 public:
  explicit Line(std::string begin) : text_(std::move(begin)) {}

  Line& word(const char* name, const std::string& value) {
    return value.empty() ? *this : put(name, fmt::format("\"{}\"", value));
  }
  Line& plain(const char* name, const std::string& value) { return value.empty() ? *this : put(name, value); }
  Line& number(const char* name, double value) { return value == 0 ? *this : put(name, tests::number(value)); }
  Line& integer(const char* name, int64_t value, int64_t none = 0) {
    return value == none ? *this : put(name, fmt::format("{}", value));
  }
  Line& flag(const char* name, bool value) { return value ? put(name, "yes") : *this; }
  template <typename T>
  Line& list(const char* name, const std::vector<T>& all) {
    return all.empty() ? *this : put(name, list_text(all));
  }
  std::string end() const { return text_ + "\n"; }

 private:
  Line& put(const char* name, const std::string& value) {
    text_ += fmt::format(" {}={}", name, value);
    return *this;
  }
  std::string text_;
};

std::string text_of(const Buffer& b, size_t id) {
  return Line(fmt::format("buffer #{} \"{}\" {} in {}", id, b.name, type_text(b.type), program::name_of(b.region)))
      .integer("same_as", b.same_as, program::kNoBuffer)
      .integer("shift", b.shift)
      .list("part", b.part)
      .integer("offset", b.offset, -1)
      .integer("segment", b.segment, -1)
      .integer("copies", b.copies)
      .plain("whole", to_string(b.whole))
      .plain("layout", layout_text(b.layout))
      .list("ring", b.ring)
      .integer("turn", b.turn)
      .word("input", b.input)
      .word("output", b.output)
      .end();
}

std::string text_of(const program::StateInfo& s) {
  return Line(fmt::format("state \"{}\" {} {}", s.name, kind_word(s), type_text(s.whole)))
      .integer("buffer", s.buffer, program::kNoBuffer)
      .integer("reduced", s.reduced, program::kNoBuffer)
      .plain("layout", layout_text(s.layout))
      .flag("in_bucket", s.in_bucket)
      .integer("first", s.first)
      .integer("layer", s.layer)
      .flag("copy", is_copy_of_other_stage(s))
      .word("init", init_word(s))
      .number("init_value", init_value(s))
      .flag("saved", s.saved)
      .end();
}

std::string text_of(const program::Instruction& i) {
  return Line(fmt::format("  {} {} {} -> {}", kind_text(i.kind), kernel_word(i), list_text(i.ins), list_text(i.outs)))
      .plain("attributes", i.adds_in_tree ? "{tree:1}" : attributes_text(i.attributes))
      .integer("accumulate", i.accumulate)
      .integer("begins", i.begins)
      .integer("completes", i.completes)
      .integer("workspace", i.workspace, program::kNoBuffer)
      .integer("layer", i.layer)
      .word("phase", phase_word(i))
      .number("flops", flops_of(i))
      .number("bytes", bytes_of(i))
      .word("cut", i.cuts.dim)
      .integer("cut_length", i.cuts.length)
      .list("cut_factors", i.cuts.factors)
      .list("group", i.group)
      .integer("peer", i.peer, -1)
      .word("channel", i.channel)
      .word("reduction", reduction_word(i))
      .word("reason", i.reason)
      .integer("event", i.event, -1)
      .end();
}

std::string text_of(const program::Body& b, size_t number) {
  std::string text = Line(fmt::format("body {} \"{}\"", number, b.name))
                         .word("work", work_word(b))
                         .integer("chunk", b.chunk)
                         .integer("stage", b.stage)
                         .integer("variant_of", b.variant_of, -1)
                         .flag("at_position", is_at_position(b))
                         .end();
  for (const program::Instruction& i : b.instructions) text += text_of(i);
  return text;
}

std::string text_of(const program::CallList& l) {
  std::string text = fmt::format("list \"{}\" arena {} bound {}\n", step_word(l), l.arena_bytes, l.lower_bound_bytes);
  for (size_t s = 0; s < l.slots.size(); ++s) text += fmt::format("  slot {} {}\n", s, list_text(l.slots[s]));
  for (const program::Call& c : l.calls)
    text += fmt::format("  call {} micro_batch {} slot {}\n", c.body, c.micro_batch, c.slot);
  return text;
}

}  // namespace

std::string program_text(const Program& p) {
  std::string text = fmt::format("program of stage {}: state {} arena {} file {}\n", p.stage, p.state_bytes,
                                 p.arena_bytes, p.file_bytes);
  for (const mesh::Axis& a : p.mesh.axes())
    text += Line(fmt::format("axis \"{}\" {}", a.name, a.size)).list("zigzag", a.zigzag).end();
  for (size_t b = 0; b < p.buffers.size(); ++b) text += text_of(p.buffers[b], b);
  for (const program::StateInfo& s : p.states) text += text_of(s);
  for (size_t b = 0; b < p.bodies.size(); ++b) text += text_of(p.bodies[b], b);
  for (const program::CallList& l : p.lists) text += text_of(l);
  return text;
}

}  // namespace kintsugi::tests
