#include "kintsugi/lower/emit.h"

#include <fmt/format.h>

#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower {

using mesh::Factor;
using program::Buffer;
using program::Cuts;
using program::Instruction;
using program::Kind;
using tensor::Dim;
using tensor::Shape;
using tensor::Type;

namespace {

Shape resized(const Shape& shape, const std::string& dim, int64_t size) {
  std::vector<Dim> dims = shape.dims();
  for (Dim& d : dims)
    if (d.name == dim) d.size = size;
  return Shape(std::move(dims));
}

std::string why(const mesh::Mesh& mesh, const Step& s) {
  const std::string over = mesh.name_of(s.factors);
  switch (s.move) {
    case Move::all_reduce:
      return fmt::format("{} over {}, needed whole",
                         s.combiner == mesh::Combiner::sum ? "partial" : name_of(s.combiner), over);
    case Move::reduce_scatter:
      return fmt::format("partial over {}, needed split along {}", over, s.to);
    case Move::all_to_all:
      return fmt::format("{} split over {}, needed split along {}", s.from, over, s.to);
    default:
      return fmt::format("{} split over {}, needed whole", s.from, over);
  }
}

}  // namespace

void Emitter::enter(const std::string& work, int chunk, bool at_position) {
  for (size_t i = 0; i < p_.bodies.size(); ++i)
    if (p_.bodies[i].work == work && p_.bodies[i].chunk == chunk) {
      body_ = static_cast<int>(i);
      return;
    }
  body_ = static_cast<int>(p_.bodies.size());
  p_.bodies.push_back({.name = stages_.chunks() > 1 ? fmt::format("{}.{}", work, chunk) : work,
                       .at_position = at_position,
                       .instructions = {},
                       .work = work,
                       .chunk = chunk,
                       .stage = chunk % stages_.stages});
}

void Emitter::select(const std::string& name) {
  for (size_t i = 0; i < p_.bodies.size(); ++i)
    if (p_.bodies[i].name == name) body_ = static_cast<int>(i);
  base::require(selected() == name, "partition", "no body \"{}\"", name);
}

BufferId Emitter::message(BufferId b, const std::string& from, const Asked& asked) {
  const std::string to = selected();
  const int receiver = stage();
  select(from);
  const int sender = stage();
  const Buffer sent = p_.buffer(b);
  const BufferId got = block(sent.name, {sent.whole, sent.type.dtype}, sent.layout);
  const auto write = [&](const char* kind, int peer) -> Instruction& {
    Instruction& i = emit(asked);
    i.kind = Kind::collective;
    i.kernel = kind;
    i.group = program::pipe_of(mesh());
    i.peer = peer;
    i.channel = fmt::format("{} from {}", to, sender);
    i.reason = fmt::format("on stage {}, needed on {}, by {}", sender, receiver, asked.by);
    return i;
  };
  Instruction& send = write("send", receiver);
  send.ins = {b};
  send.bytes = static_cast<double>(sent.bytes());
  select(to);
  write("receive", sender).outs = {got};
  return got;
}

BufferId Emitter::add(Buffer b) {
  p_.buffers.push_back(std::move(b));
  return static_cast<BufferId>(p_.buffers.size()) - 1;
}

BufferId Emitter::block(const std::string& name, const Type& whole, const Layout& layout) {
  return add({.name = name,
              .type = {mesh::local_shape(mesh(), whole.shape, layout), whole.dtype},
              .whole = whole.shape,
              .layout = layout});
}

BufferId Emitter::view(BufferId of, const std::string& name, const Type& whole, const Layout& layout, int64_t shift) {
  return add({.name = name,
              .type = {mesh::local_shape(mesh(), whole.shape, layout), whole.dtype},
              .region = p_.buffer(of).region,
              .same_as = of,
              .shift = shift,
              .whole = whole.shape,
              .layout = layout});
}

BufferId Emitter::part(BufferId of, const Layout& layout, std::vector<Factor> factors) {
  const Buffer source = p_.buffer(of);
  const BufferId b = view(of, source.name, {source.whole, source.type.dtype}, layout, 0);
  p_.buffer(b).part = std::move(factors);
  p_.buffer(b).ring = source.ring;
  p_.buffer(b).turn = source.turn;
  return b;
}

Instruction& Emitter::emit(const Asked& asked) {
  std::vector<Instruction>& list = p_.bodies[static_cast<size_t>(body_)].instructions;
  Instruction i;
  i.layer = asked.layer;
  i.phase = asked.phase;
  list.push_back(std::move(i));
  return list.back();
}

void Emitter::compute(const Asked& asked, const graph::OpRow& row, const tensor::Attributes& attributes,
                      std::vector<BufferId> ins, std::vector<BufferId> outs, std::string kernel, uint32_t accumulate,
                      tensor::Absent absent) {
  std::vector<Type> in_types, out_types;
  for (BufferId b : ins) in_types.push_back(p_.buffer(b).type);
  for (BufferId b : outs) out_types.push_back(p_.buffer(b).type);
  const graph::Cost c = graph::cost(row, in_types, out_types, attributes, absent);
  Instruction& i = emit(asked);
  i.kernel = kernel.empty() ? std::string(row.kind) : std::move(kernel);
  i.ins = std::move(ins);
  i.outs = std::move(outs);
  i.attributes = attributes;
  i.accumulate = accumulate;
  i.absent = absent;
  i.flops = c.flops;
  i.bytes = c.bytes;
}

void Emitter::rearrange(const Asked& asked, const char* kernel, BufferId in, BufferId out, Cuts cuts) {
  const std::string dim = cuts.dim;
  compute(asked, ops::operations().find(kernel), {{"dim", dim}}, {in}, {out});
  p_.bodies[static_cast<size_t>(body_)].instructions.back().cuts = std::move(cuts);
}

void Emitter::collective(const Asked& asked, const char* kind, BufferId in, BufferId out, const Step& step) {
  const auto n = static_cast<double>(mesh().count(step.factors));
  const double size = static_cast<double>(std::max(p_.buffer(in).bytes(), p_.buffer(out).bytes()));
  Instruction& i = emit(asked);
  i.kind = Kind::collective;
  i.kernel = kind;
  i.ins = {in};
  i.outs = {out};
  i.group = step.factors;
  i.reduction = step.combiner == mesh::Combiner::max ? "max" : "sum";
  i.reason = fmt::format("{}, by {}", why(mesh(), step), asked.by);
  i.bytes = size * (n - 1) / n * (i.kernel == "all_reduce" ? 2 : 1);
}

bool Emitter::contiguous(const Shape& joined, const std::string& dim, const std::vector<Factor>& factors) const {
  const int64_t length = joined.size(dim);
  for (const Dim& d : joined) {
    if (d.name == dim) break;
    if (d.size != 1) return false;
  }
  for (Factor f : factors)
    if (mesh().cut(dim, f).zigzag) return false;
  return length % mesh().count(factors) == 0;
}

BufferId Emitter::stacked(BufferId like, const Shape& block, int64_t parts) {
  std::vector<Dim> dims = {{"part", parts}};
  dims.insert(dims.end(), block.begin(), block.end());
  const std::string name = p_.buffer(like).name + ".parts";
  return add({.name = name, .type = {Shape(std::move(dims)), p_.buffer(like).type.dtype}});
}

BufferId Emitter::move(BufferId from, const Step& s, const Asked& asked, bool destroy) {
  const Buffer source = p_.buffer(from);  // a copy: buffers are added below
  const Type whole = {source.whole, source.type.dtype};
  const Shape before = source.type.shape, after = mesh::local_shape(mesh(), source.whole, s.after);
  const int64_t parts = mesh().count(s.factors);
  const auto cuts = [&](const std::string& dim, const Shape& joined) { return Cuts{dim, joined.size(dim), s.factors}; };
  const auto result = [&] {
    const BufferId b = block(source.name, whole, s.after);
    p_.buffer(b).ring = source.ring;
    p_.buffer(b).turn = source.turn;
    return b;
  };
  switch (s.move) {
    case Move::slice: {
      if (contiguous(before, s.to, s.factors)) return part(from, s.after, s.factors);
      const BufferId to = result();
      rearrange(asked, "stack", from, to, cuts(s.to, before));
      return to;
    }
    case Move::reduce_scatter: {
      const bool direct = contiguous(before, s.to, s.factors);
      const BufferId to = direct && destroy ? part(from, s.after, s.factors) : result();
      if (!direct) {
        const BufferId pieces = stacked(from, after, parts);
        rearrange(asked, "stack", from, pieces, cuts(s.to, before));
        from = pieces;
      }
      collective(asked, "reduce_scatter", from, to, s);
      return to;
    }
    case Move::all_reduce: {
      if (s.combiner == mesh::Combiner::logsumexp) {
        const BufferId pieces = stacked(from, before, parts);
        collective(asked, "all_gather", from, pieces, s);
        const BufferId to = result();
        compute(asked, ops::operations().find("logsumexp"), {}, {pieces}, {to});
        return to;
      }
      BufferId to = from;
      if (destroy) {
        to = view(from, source.name, whole, s.after, 0);
      } else {
        to = result();
      }
      collective(asked, "all_reduce", from, to, s);
      return to;
    }
    case Move::all_gather: {
      const BufferId to = result();
      const bool direct = contiguous(after, s.from, s.factors);
      const BufferId pieces = direct ? to : stacked(from, before, parts);
      collective(asked, "all_gather", from, pieces, s);
      if (!direct) rearrange(asked, "unstack", pieces, to, cuts(s.from, after));
      return to;
    }
    case Move::all_to_all: {
      const Shape block = resized(before, s.to, after.size(s.to));  // what one rank sends to one other
      const bool cut = contiguous(before, s.to, s.factors), joined = contiguous(after, s.from, s.factors);
      if (!cut) {
        const BufferId pieces = stacked(from, block, parts);
        rearrange(asked, "stack", from, pieces, cuts(s.to, before));
        from = pieces;
      }
      const BufferId to = result();
      const BufferId pieces = joined ? to : stacked(to, block, parts);
      collective(asked, "all_to_all", from, pieces, s);
      if (!joined) rearrange(asked, "unstack", pieces, to, cuts(s.from, after));
      return to;
    }
  }
  throw base::InternalError("partition", "no such move");
}

void Emitter::gather_in_place(BufferId mine, BufferId to, const Step& s, const Asked& asked) {
  collective(asked, "all_gather", mine, to, s);
}

BufferId Emitter::shift(BufferId from, const std::vector<Factor>& factors, const Asked& asked) {
  const Buffer source = p_.buffer(from);
  const BufferId to = block(source.name, {source.whole, source.type.dtype}, source.layout);
  p_.buffer(to).ring = factors;
  p_.buffer(to).turn = source.turn + 1;
  Instruction& i = emit(asked);
  i.kind = Kind::collective;
  i.kernel = "shift";
  i.ins = {from};
  i.outs = {to};
  i.group = factors;
  i.reason = fmt::format("taken in steps round {}, by {}", mesh().name_of(factors), asked.by);
  i.bytes = static_cast<double>(source.bytes());
  return to;
}

}  // namespace kintsugi::lower
