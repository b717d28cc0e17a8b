#include "kintsugi/lower/partition/emit.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/program/halo.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::lower {

using mesh::Factor;
using program::Buffer;
using program::Collective;
using program::Cuts;
using program::Instruction;
using program::Kind;
using program::Work;
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
    case Move::slice:
    case Move::all_gather:
      return fmt::format("{} split over {}, needed whole", s.from, over);
    case Move::halo:
      return fmt::format("{} split over {}, needed with halo", s.to, over);
    case Move::halo_sum:
      return fmt::format("{} split over {} and partial in its halo", s.from, over);
  }
  throw base::InternalError("partition", "no move {}", static_cast<int>(s.move));
}

}  // namespace

BodyId Emitter::body_for(Work work, int chunk) {
  for (size_t i = 0; i < p_.bodies.size(); ++i)
    if (p_.bodies[i].work == work && p_.bodies[i].chunk == chunk) return static_cast<BodyId>(i);
  p_.bodies.push_back(
      {.name = stages_.chunks() > 1 ? fmt::format("{}.{}", name_of(work), chunk) : std::string(name_of(work)),
       .position_dim = generates(work) ? "seq" : "",
       .instructions = {},
       .work = work,
       .chunk = chunk,
       .stage = chunk % stages_.stages});
  return static_cast<BodyId>(p_.bodies.size()) - 1;
}

BufferId Emitter::message(BufferId b, BodyId from, const Site& site) {
  const int sender = stage(from), receiver = stage(site.body);
  const Buffer sent = p_.buffer(b);
  const BufferId got = block(sent.name, {sent.whole, sent.type.dtype}, sent.layout);
  const std::string channel = channel_of(site.body, sender);
  const auto write = [&](BodyId in, Collective kind, int peer) -> Instruction& {
    Instruction& i = emit({.body = in, .by = site.by, .phase = site.phase, .layer = site.layer});
    i.kind = Kind::collective;
    i.collective = kind;
    i.group = mesh().stage_factors();
    i.peer = peer;
    i.channel = channel;
    i.reason = fmt::format("on stage {}, needed on {}, by {}", sender, receiver, site.by);
    return i;
  };
  Instruction& send = write(from, Collective::send, receiver);
  send.ins = {b};
  send.cost.wire_bytes = static_cast<double>(sent.bytes());
  write(site.body, Collective::receive, sender).outs = {got};
  return got;
}

// Each value of a pass has a channel, so that a rank can start all receives of a call before the previous one: a
// channel starts a message only when the one before has completed, and two stages that send several values to each
// other, as the skip connections of a U-Net and their gradients, would wait for each other. An update is called once.
std::string Emitter::channel_of(BodyId receiver, int sender) const {
  const program::Body& to = body(receiver);
  const std::string name = fmt::format("{} from {}", to.name, sender);
  if (to.does(Work::update)) return name;
  const auto known = std::ranges::count_if(
      to.instructions, [&](const Instruction& i) { return starts(i, Collective::receive) && i.peer == sender; });
  return known == 0 ? name : fmt::format("{}, value {}", name, known + 1);
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

Instruction& Emitter::emit(const Site& site) {
  if (!writes_) return unwritten_ = {};
  std::vector<Instruction>& list = p_.bodies[static_cast<size_t>(site.body)].instructions;
  Instruction i;
  i.layer = site.layer;
  i.phase = site.phase;
  list.push_back(std::move(i));
  return list.back();
}

Instruction& Emitter::compute(const Site& site, const graph::OpRow& row, const tensor::Attributes& attributes,
                              std::vector<BufferId> ins, std::vector<BufferId> outs, tensor::Absent absent) {
  if (!writes_) return emit(site);
  std::vector<Type> in_types, out_types;
  in_types.reserve(ins.size());
  out_types.reserve(outs.size());
  for (BufferId b : ins) in_types.push_back(p_.buffer(b).type);
  for (BufferId b : outs) out_types.push_back(p_.buffer(b).type);
  const graph::Cost c = graph::cost(row, in_types, out_types, attributes, absent);
  Instruction& i = emit(site);
  i.kernel = row.kind;
  i.ins = std::move(ins);
  i.outs = std::move(outs);
  i.absent = absent;
  if (!row.windowed.empty()) {
    for (size_t k = 0; k < i.ins.size(); ++k)
      i.windowed.ins |= static_cast<uint32_t>(row.is_windowed(row.ins.at(k, absent.ins).name)) << k;
    for (size_t k = 0; k < i.outs.size(); ++k)
      i.windowed.outs |= static_cast<uint32_t>(row.is_windowed(row.outs.at(k, absent.outs).name)) << k;
  }
  i.attributes = attributes;
  i.cost = {.flops = c.flops, .memory_bytes = c.memory_bytes, .cost_class = c.cost_class};
  return i;
}

void Emitter::add_to(const Site& site, BufferId from, BufferId to) {
  compute(site, row("accumulate"), {}, {from}, {to}).accumulate = 1;
}

void Emitter::replace(const Site& site, BufferId from, BufferId to) {
  compute(site, row("accumulate"), {}, {from}, {to});
}

void Emitter::rearrange(const Site& site, std::string_view kind, BufferId in, BufferId out, Cuts cuts) {
  const std::string dim = cuts.dim;
  compute(site, row(kind), {{"dim", dim}}, {in}, {out}).cuts = std::move(cuts);
}

void Emitter::collective(const Site& site, Collective kind, BufferId in, BufferId out, const Step& step) {
  if (!writes_) return;
  const auto n = static_cast<double>(mesh().count(step.factors));
  const double size = static_cast<double>(std::max(p_.buffer(in).bytes(), p_.buffer(out).bytes()));
  Instruction& i = emit(site);
  i.kind = Kind::collective;
  i.collective = kind;
  i.ins = {in};
  i.outs = {out};
  i.group = step.factors;
  i.reduction = step.combiner == mesh::Combiner::max ? program::Reduction::max : program::Reduction::sum;
  i.reason = fmt::format("{}, by {}", why(mesh(), step), site.by);
  i.cost.wire_bytes = size * (n - 1) / n * (kind == Collective::all_reduce ? 2 : 1);
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
  std::vector<Dim> dims = {{std::string(tensor::kPart), parts}};
  dims.insert(dims.end(), block.begin(), block.end());
  const std::string name = p_.buffer(like).name + ".parts";
  return add({.name = name, .type = {Shape(std::move(dims)), p_.buffer(like).type.dtype}});
}

BufferId Emitter::move(BufferId from, const Step& s, const Site& site, bool destroy) {
  const Buffer source = p_.buffer(from);  // copied because buffers are added below
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
      rearrange(site, "stack", from, to, cuts(s.to, before));
      return to;
    }
    case Move::reduce_scatter: {
      const bool direct = contiguous(before, s.to, s.factors);
      const BufferId to = direct && destroy ? part(from, s.after, s.factors) : result();
      if (!direct) {
        const BufferId pieces = stacked(from, after, parts);
        rearrange(site, "stack", from, pieces, cuts(s.to, before));
        from = pieces;
      }
      collective(site, Collective::reduce_scatter, from, to, s);
      return to;
    }
    case Move::all_reduce: {
      if (s.combiner == mesh::Combiner::logsumexp) {
        const BufferId pieces = stacked(from, before, parts);
        collective(site, Collective::all_gather, from, pieces, s);
        const BufferId to = result();
        compute(site, row("logsumexp"), {}, {pieces}, {to});
        return to;
      }
      BufferId to = from;
      if (destroy) {
        to = view(from, source.name, whole, s.after, 0);
      } else {
        to = result();
      }
      collective(site, Collective::all_reduce, from, to, s);
      return to;
    }
    case Move::all_gather: {
      const BufferId to = result();
      const bool direct = contiguous(after, s.from, s.factors);
      const BufferId pieces = direct ? to : stacked(from, before, parts);
      collective(site, Collective::all_gather, from, pieces, s);
      if (!direct) rearrange(site, "unstack", pieces, to, cuts(s.from, after));
      return to;
    }
    case Move::all_to_all: {
      const Shape block = resized(before, s.to, after.size(s.to));  // what one rank sends to another
      const bool cut = contiguous(before, s.to, s.factors), joined = contiguous(after, s.from, s.factors);
      if (!cut) {
        const BufferId pieces = stacked(from, block, parts);
        rearrange(site, "stack", from, pieces, cuts(s.to, before));
        from = pieces;
      }
      const BufferId to = result();
      const BufferId pieces = joined ? to : stacked(to, block, parts);
      collective(site, Collective::all_to_all, from, pieces, s);
      if (!joined) rearrange(site, "unstack", pieces, to, cuts(s.from, after));
      return to;
    }
    case Move::halo:
    case Move::halo_sum:
      return exchange_halo(from, s, site);
  }
  throw base::InternalError("partition", "no such move");
}

// Packs rows, exchanges them, and places them in a new block together with the rank's own.
BufferId Emitter::exchange_halo(BufferId from, const Step& s, const Site& site) {
  const Buffer source = p_.buffer(from);
  const Type whole = {source.whole, source.type.dtype};
  const Cuts cuts = halo_cuts(source.whole, s);
  if (!cuts.exchanges) {  // from a whole dim
    const BufferId to = block(source.name, whole, s.after);
    rearrange(site, "stack", from, to, cuts);
    return to;
  }
  if (program::is_plain(mesh(), cuts)) return view(from, source.name, whole, s.after, 0);
  const auto packed = [&](int64_t rows) {
    return add({.name = source.name + ".halo",
                .type = {program::packed_shape(source.type.shape, cuts.dim, rows), source.type.dtype}});
  };
  std::vector<BufferId> ins = {from};
  const program::HaloSizes sizes = program::halo_sizes(mesh(), cuts);
  if (sizes.messages > program::kMostHaloMessages)
    throw base::UserError("partition",
                          "windows along \"{}\" of size {} reach the rows of {} other ranks on both sides together; at "
                          "most {} are possible: split {} over fewer than {} ranks",
                          cuts.dim, cuts.length, sizes.messages / 2, program::kMostHaloMessages / 2, cuts.dim,
                          mesh().count(cuts.factors));
  if (sizes.sent > 0) {
    const BufferId sent = packed(sizes.sent), received = packed(sizes.received);
    compute(site, row("halo_pack"), {{"dim", cuts.dim}}, {from}, {sent}).cuts = cuts;
    if (writes_) {
      Instruction& i = emit(site);
      i.kind = Kind::collective;
      i.collective = Collective::halo;
      i.ins = {sent};
      i.outs = {received};
      i.group = cuts.factors;
      i.cuts = cuts;
      i.reason = fmt::format("{}, by {}", why(mesh(), s), site.by);
      i.cost.wire_bytes = static_cast<double>(p_.buffer(sent).bytes());
    }
    ins.push_back(received);
  }
  const BufferId to = block(source.name, whole, s.after);
  const tensor::Absent absent = {.ins = ins.size() == 1 ? 0b10u : 0u};  // `received`
  compute(site, row(s.move == Move::halo ? "halo_place" : "halo_add"), {{"dim", cuts.dim}}, ins, {to}, absent).cuts =
      cuts;
  return to;
}

void Emitter::gather_in_place(BufferId mine, BufferId to, const Step& s, const Site& site) {
  collective(site, Collective::all_gather, mine, to, s);
}

BufferId Emitter::shift(BufferId from, const std::vector<Factor>& factors, const Site& site) {
  const Buffer source = p_.buffer(from);
  const BufferId to = block(source.name, {source.whole, source.type.dtype}, source.layout);
  p_.buffer(to).ring = factors;
  p_.buffer(to).turn = source.turn + 1;
  Instruction& i = emit(site);
  i.kind = Kind::collective;
  i.collective = Collective::shift;
  i.ins = {from};
  i.outs = {to};
  i.group = factors;
  i.reason = fmt::format("taken in steps round {}, by {}", mesh().name_of(factors), site.by);
  i.cost.wire_bytes = static_cast<double>(source.bytes());
  return to;
}

}  // namespace kintsugi::lower
