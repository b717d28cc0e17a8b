#include "kintsugi/run/bound_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/timeout_message.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/halo.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::run {

using bind::bytes_of;
using program::BufferId;
using program::Collective;
using program::Instruction;
using program::Kind;
using tensor::View;

namespace {

void bind_parts(const program::Program& p, const Instruction& i, int rank, BoundInstruction& b) {
  static_assert(program::kMostHaloMessages <= static_cast<int64_t>(comm::kMaxExchange));
  const auto row_bytes = [](const View& v) {
    return v.shape()[0].size == 0 ? 0 : static_cast<size_t>(v.type.bytes() / v.shape()[0].size);
  };
  const program::HaloRows rows = program::halo_rows(p.mesh, i.cuts, rank);
  const auto add = [&](const std::vector<program::HaloMessage>& messages, bool receives) {
    const size_t row = row_bytes(receives ? b.outs[0] : b.ins[0]);
    for (const program::HaloMessage& m : messages)
      b.parts.push_back({m.place, receives, static_cast<size_t>(m.first) * row, static_cast<size_t>(m.rows) * row});
  };
  add(rows.received, true);
  add(rows.sent, false);
}

// A collective, a copy, or a wait.
BoundInstruction bind_transfer(const program::Program& p, const Instruction& i, int rank, const Groups& groups,
                               const std::function<std::byte*(BufferId)>& address) {
  BoundInstruction b;
  const auto add = [&](const std::vector<BufferId>& operands, std::vector<View>& views) {
    for (const BufferId id : operands)
      if (p.buffer(p.root(id)).region != program::Region::file) views.push_back({address(id), p.buffer(id).type});
  };
  add(i.ins, b.ins);
  add(i.outs, b.outs);
  if (program::is_copy(i)) return b;
  b.communicator = &groups.of(i);
  if (program::starts(i, Collective::halo)) bind_parts(p, i, rank, b);
  return b;
}

comm::Reduction reduction_of(const Instruction& i) {
  switch (i.reduction) {
    case program::Reduction::sum:
      return comm::Reduction::sum;
    case program::Reduction::max:
      return comm::Reduction::max;
  }
  throw base::InternalError("run", "no reduction {}", static_cast<int>(i.reduction));
}

}  // namespace

BoundProgram::BoundProgram(const program::Program& p, int rank, std::byte* memory, const kernels::KernelSet& kernels,
                           const Groups& groups) {
  for (const program::CallList& list : p.lists) {
    const std::vector<bool> fills = program::fills(p, list);
    BoundList made = {list, {}};
    std::map<std::pair<int, int>, size_t> known;  // by body and slot
    for (const auto& [position, call, body] : program::walk(p, list)) {
      const auto [at, fresh] = known.try_emplace({call.body, call.slot}, bodies_.size());
      if (fresh) {
        const auto address = [&, slot = call.slot](BufferId id) {
          return bind::address_of(p, id, list, slot, rank, memory);
        };
        std::vector<BoundInstruction> bound;
        for (const Instruction& i : body.instructions)
          bound.push_back(i.kind == Kind::compute
                              ? BoundInstruction{bind::bind_kernel(p, body, i, kernels, rank, address)}
                              : bind_transfer(p, i, rank, groups, address));
        bodies_.push_back({body, std::move(bound)});
      }
      made.bound.push_back({call, body, bodies_[at->second].instructions, fills[position]});
    }
    lists_.push_back(std::move(made));
  }
}

const BoundList& BoundProgram::list(program::Step step, int64_t micro_batches) const {
  for (const BoundList& list : lists_)
    if (list.calls.step == step && list.calls.micro_batches == micro_batches) return list;
  throw base::InternalError("run", "no list of calls \"{}\"", name_of(step));
}

kernels::KernelCall call_of(const Instruction& i, const BoundInstruction& b, const CallContext& context) {
  return {.ins = b.ins,
          .outs = b.outs,
          .attributes = i.attributes,
          .indices = b.indices,
          .accumulate = b.accumulate,
          .workspace = b.workspace,
          .numbers = context.numbers,
          .team = context.team,
          .stream = context.stream,
          .later = context.later,
          .moved = context.later == nullptr ? std::string_view() : b.moved_dim(),
          .tf32 = context.tf32,
          .kind = b.kernel->kind,
          .refused = context.refused,
          .places = b.places};
}

comm::Event start(const Instruction& i, const BoundInstruction& b) {
  comm::Communicator& c = *b.communicator;
  const std::span<std::byte> in = b.ins.empty() ? std::span<std::byte>{} : bytes_of(b.ins[0]),
                             out = b.outs.empty() ? std::span<std::byte>{} : bytes_of(b.outs[0]);
  switch (i.collective) {
    case Collective::all_reduce:
      return c.all_reduce(in, out, b.ins[0].dtype(), reduction_of(i));
    case Collective::all_gather:
      return c.all_gather(in, out);
    case Collective::reduce_scatter:
      return c.reduce_scatter(in, out, b.ins[0].dtype(), reduction_of(i));
    case Collective::all_to_all:
      return c.all_to_all(in, out);
    case Collective::send:
      return c.send(in, 1 - c.rank());
    case Collective::receive:
      return c.receive(out, 1 - c.rank());
    case Collective::shift:
      return c.exchange(std::array{comm::Message::from((c.rank() + 1) % c.size(), out),
                                   comm::Message::to((c.rank() + c.size() - 1) % c.size(), in)});
    case Collective::halo: {
      std::array<comm::Message, comm::kMaxExchange> messages;
      for (size_t m = 0; m < b.parts.size(); ++m) {
        const BoundInstruction::Part& part = b.parts[m];
        messages[m] = part.receives ? comm::Message::from(part.rank, out.subspan(part.begin, part.bytes))
                                    : comm::Message::to(part.rank, in.subspan(part.begin, part.bytes));
      }
      return c.exchange({messages.data(), b.parts.size()});
    }
  }
  throw base::InternalError("run", "no collective {}", static_cast<int>(i.collective));
}

std::string describe_wait(const program::Program& p, const program::Body& body, const Instruction& i) {
  const BufferId value = i.ins.empty() ? i.outs[0] : i.ins[0];
  return fmt::format("{} of \"{}\" over {} ({}{})", name_of(i.collective), p.buffer(value).name,
                     p.mesh.name_of(i.group), body.name, i.layer < 0 ? "" : fmt::format(", layer {}", i.layer));
}

void wait_for(const program::Program& p, int rank, const program::Body& body, const Instruction& i,
              comm::Communicator& communicator, comm::Event event) {
  try {
    communicator.wait(event);
  } catch (const comm::Timeout& e) {
    comm::throw_timeout_of(rank, describe_wait(p, body, i), e);
  }
}

}  // namespace kintsugi::run
