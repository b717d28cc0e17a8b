#include "kintsugi/run/executor.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::run {

using program::BufferId;
using program::Instruction;
using program::Kind;
using program::kNoBuffer;
using program::Region;
using tensor::View;

Arena::Arena(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw base::UserError(
        "run", "the system does not give the {} that the program needs; a smaller train.micro_batch needs less",
        base::format_bytes(static_cast<uint64_t>(bytes)));
  ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint; without it all is as right
  data_ = static_cast<std::byte*>(data);
}

Arena::~Arena() {
  if (data_) ::munmap(data_, static_cast<size_t>(bytes_));
}

Executor::Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team,
                   comm::World* world)
    : program_(std::move(program)),
      team_(team),
      rank_(world ? world->rank() : 0),
      world_(world),
      arena_(program_.bytes()) {
  const int ranks = world ? world->size() : 1;
  base::require(program_.mesh.ranks() == ranks, "run", "a program for {} ranks on {}", program_.mesh.ranks(), ranks);
  for (const program::Body& body : program_.bodies) {
    std::vector<Bound> list;
    for (const Instruction& i : body.instructions) {
      running_.resize(std::max(running_.size(), static_cast<size_t>(i.event + 1)));
      list.push_back(bind(body, i, kernels));
    }
    bound_.push_back(std::move(list));
  }
  bind_inputs();
}

View Executor::view(BufferId id) const {
  const program::Buffer& place = program_.buffer(program_.root(id));
  const int64_t base = place.region == Region::state ? 0 : program_.state_bytes;
  return {arena_.data() + base + place.offset + program_.begin(id, rank_), program_.buffer(id).type};
}

Executor::Bound Executor::bind(const program::Body& body, const Instruction& i, const kernels::KernelSet& kernels) {
  Bound b;
  for (BufferId id : i.ins) b.ins.push_back(view(id));
  for (BufferId id : i.outs) b.outs.push_back(view(id));
  if (i.kind != Kind::compute) {
    std::unique_ptr<comm::Communicator>& group = groups_[i.group];
    if (!group) group = world_->group(program_.mesh.group(rank_, i.group));
    b.communicator = group.get();
    return b;
  }
  b.kernel = &kernels.find(i.kernel);
  bind_indices(body, i, b);
  if (i.workspace != kNoBuffer) b.workspace = bytes_of(view(i.workspace));
  return b;
}

void Executor::bind_indices(const program::Body& body, const Instruction& i, Bound& b) const {
  if (!i.cuts.dim.empty()) {  // stack, unstack: the positions of each part, or of the own one
    const mesh::Mesh& mesh = program_.mesh;
    const bool all = (i.kernel == "stack" ? b.outs[0] : b.ins[0]).shape().has("part");
    for (int rank : all ? mesh.group(rank_, i.cuts.factors) : std::vector<int>{rank_})
      b.indices.push_back({i.cuts.dim, mesh::local_index(mesh, i.cuts.dim, i.cuts.length, i.cuts.factors, rank)});
    return;
  }
  for (const auto* list : {&i.ins, &i.outs})
    for (BufferId id : *list)
      for (const tensor::Dim& d : program_.buffer(id).type.shape) {
        bool known = false;
        for (const kernels::NamedIndex& n : b.indices) known |= n.dim == d.name;
        if (!known) b.indices.push_back({d.name, program_.index(id, d.name, rank_)});
      }
  for (size_t d = 0; d < b.indices.size(); ++d)
    if (body.at_position && b.indices[d].dim == "seq") {
      b.seq = static_cast<int>(d);
      b.seq_begin = b.indices[d].index.segments().front().global;
    }
}

void Executor::enqueue(const Instruction& i, Bound& b) {
  comm::Communicator& c = *b.communicator;
  const std::span<std::byte> in = b.ins.empty() ? std::span<std::byte>{} : bytes_of(b.ins[0]),
                             out = b.outs.empty() ? std::span<std::byte>{} : bytes_of(b.outs[0]);
  const comm::Reduction reduction = i.reduction == "max" ? comm::Reduction::max : comm::Reduction::sum;
  Running& r = running_[static_cast<size_t>(i.event)];
  if (i.kernel == "all_reduce") {
    r.first = c.all_reduce(in, out, b.ins[0].dtype(), reduction);
  } else if (i.kernel == "all_gather") {
    r.first = c.all_gather(in, out);
  } else if (i.kernel == "reduce_scatter") {
    r.first = c.reduce_scatter(in, out, b.ins[0].dtype(), reduction);
  } else if (i.kernel == "all_to_all") {
    r.first = c.all_to_all(in, out);
  } else if (i.kernel == "send") {
    r.first = c.send(in, static_cast<int>(i.peer));
  } else if (i.kernel == "receive") {
    r.first = c.receive(out, static_cast<int>(i.peer));
  } else {
    base::require(i.kernel == "shift", "run", "no collective \"{}\"", i.kernel);
    r.first = c.receive(out, (c.rank() + 1) % c.size());
    r.second = c.send(in, (c.rank() + c.size() - 1) % c.size());
  }
}

void Executor::wait(const program::Body& body, const Instruction& i, Bound& b) {
  const Running& r = running_[static_cast<size_t>(i.event)];
  try {
    b.communicator->wait(r.first);
    if (i.kernel == "shift") b.communicator->wait(r.second);
  } catch (const comm::Timeout& e) {
    const BufferId value = i.ins.empty() ? i.outs[0] : i.ins[0];
    std::string_view why = e.what();
    if (why.starts_with("[comm] ")) why.remove_prefix(7);
    throw comm::Timeout(fmt::format("rank {}: {} of \"{}\" over {} ({}{}): {}", rank_, i.kernel,
                                    program_.buffer(value).name, program_.mesh.name_of(i.group), body.name,
                                    i.layer < 0 ? "" : fmt::format(", layer {}", i.layer), why),
                        e.arrived, e.missing);
  }
}

View Executor::state(std::string_view name) const {
  const program::StateInfo* s = program_.state(name);
  base::require(s != nullptr, "run", "no state \"{}\"", name);
  const View whole = view(s->buffer);
  if (!s->in_bucket) return whole;
  base::require(program_.buffer(s->buffer).layout.of("flat").empty(), "run", "state \"{}\" is split along its bucket",
                name);
  return {whole.data + s->first * tensor::size_of(whole.dtype()),
          {mesh::local_shape(program_.mesh, s->whole.shape, s->layout), whole.dtype()}};
}

double& Executor::number(std::string_view name) const {
  return state(name).as<double>()[0];
}

BufferId Executor::find(std::string_view list, std::string_view name, bool input) const {
  for (const program::Call& call : program_.list(list).calls)
    for (const Instruction& i : program_.bodies[static_cast<size_t>(call.body)].instructions)
      for (BufferId b : input ? i.ins : i.outs)
        if ((input ? program_.buffer(b).input : program_.buffer(b).output) == name) return b;
  return kNoBuffer;
}

View Executor::input(std::string_view list, std::string_view name) const {
  const BufferId b = find(list, name, true);
  base::require(b != kNoBuffer, "run", "{} has no input \"{}\"", list, name);
  return view(b);
}

View Executor::output(std::string_view list, std::string_view name) const {
  const BufferId b = find(list, name, false);
  base::require(b != kNoBuffer, "run", "{} has no output \"{}\"", list, name);
  return view(b);
}

bool Executor::has_input(std::string_view list, std::string_view name) const {
  return find(list, name, true) != kNoBuffer;
}

void Executor::run(std::string_view list, kernels::Numbers& numbers, Fill fill, const void* context) {
  int64_t micro_batch = -1;
  for (const program::Call& call : program_.list(list).calls) {
    if (call.micro_batch > micro_batch) fill(context, micro_batch = call.micro_batch);
    const auto body = static_cast<size_t>(call.body);
    const std::vector<Instruction>& instructions = program_.bodies[body].instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      Bound& b = bound_[body][i];
      if (instructions[i].kind != Kind::compute) {
        if (instructions[i].kind == Kind::collective) {
          enqueue(instructions[i], b);
        } else {
          wait(program_.bodies[body], instructions[i], b);
          if (watch) watch(program_.bodies[body], instructions[i]);
        }
        continue;
      }
      if (b.seq >= 0) b.indices[static_cast<size_t>(b.seq)].index.begin_at(b.seq_begin + numbers.position);
      b.kernel->run({.ins = b.ins,
                     .outs = b.outs,
                     .attributes = instructions[i].attributes,
                     .indices = b.indices,
                     .accumulate = instructions[i].accumulate,
                     .workspace = b.workspace,
                     .numbers = numbers,
                     .team = team_});
      if (watch) watch(program_.bodies[body], instructions[i]);
      if (!groups_.empty())
        for (auto& [factors, group] : groups_) group->progress();
    }
  }
}

}  // namespace kintsugi::run
