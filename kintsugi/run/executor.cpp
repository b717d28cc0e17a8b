#include "kintsugi/run/executor.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/program/describe.h"

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

namespace {

// The other end of a channel.
int peer_in(const program::Program& p, const std::pair<std::vector<mesh::Factor>, std::string>& key, int rank) {
  for (const program::Body& body : p.bodies)
    for (const Instruction& i : body.instructions)
      if (i.kind == Kind::collective && i.group == key.first && i.channel == key.second && i.peer >= 0)
        return p.mesh.group(rank, i.group)[static_cast<size_t>(i.peer)];
  throw base::InternalError("run", "channel \"{}\" has no message", key.second);
}

// By factors and channel: how many of its messages this rank has open at one time, at most.
std::map<std::pair<std::vector<mesh::Factor>, std::string>, size_t> open_messages(const program::Program& p) {
  std::map<std::pair<std::vector<mesh::Factor>, std::string>, size_t> now, most;
  for (const program::CallList& list : p.lists)
    for (const program::Call& call : list.calls)
      for (const Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) {
        if (i.channel.empty()) continue;
        size_t& open = now[{i.group, i.channel}];
        open += i.kind == Kind::wait ? -1 : 1;
        most[{i.group, i.channel}] = std::max(most[{i.group, i.channel}], open);
      }
  return most;
}

}  // namespace

Executor::Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team,
                   const Place& place)
    : program_(std::move(program)),
      team_(team),
      rank_(place.world ? place.world->rank() : 0),
      world_(place.world),
      arena_(program_.bytes()) {
  const int ranks = world_ ? world_->size() : 1;
  base::require(program_.mesh.ranks() == ranks, "run", "a program for {} ranks on {}", program_.mesh.ranks(), ranks);
  if (program_.file_bytes > 0) file_ = std::make_unique<FileStore>(place.offload_folder, program_.file_bytes, rank_);
  int events = 0;
  for (const program::Body& body : program_.bodies)
    for (const Instruction& i : body.instructions) events = std::max(events, i.event + 1);
  for (const program::CallList& list : program_.lists)
    for (const program::Call& call : list.calls) micro_batches_ = std::max(micro_batches_, call.micro_batch + 1);
  running_.resize(static_cast<size_t>(events * micro_batches_));
  make_groups();
  for (const program::CallList& list : program_.lists) {
    bind_inputs(list);
    bind_list(list, kernels);
  }
}

// All ranks make their groups in the same order, so that none waits for another's.
void Executor::make_groups() {
  for (const program::Body& body : program_.bodies)
    for (const Instruction& i : body.instructions)
      if (i.kind == Kind::collective) groups_[{i.group, i.channel}] = nullptr;
  auto open = open_messages(program_);
  for (auto& [key, group] : groups_) {
    const auto& [factors, channel] = key;
    // A message is open until both ranks have waited for it, so that there may be as many of the other rank as of this.
    comm::GroupOptions options;
    std::vector<int> ranks = program_.mesh.group(rank_, factors);
    if (!channel.empty()) {
      ranks = {rank_, peer_in(program_, key, rank_)};
      std::sort(ranks.begin(), ranks.end());
      options = {.collectives = 0, .messages = 2 * std::max<size_t>(1, open[key])};
    }
    group = world_->group(ranks, options);
  }
}

void Executor::bind_list(const program::CallList& list, const kernels::KernelSet& kernels) {
  List made = {.calls = &list, .bound = {}};
  std::map<std::pair<int, int>, size_t> known;  // by body and slot
  std::set<std::pair<BufferId, int64_t>> filled;
  now_ = &list;
  for (const program::Call& call : list.calls) {
    const auto [at, fresh] = known.try_emplace({call.body, call.slot}, bound_.size());
    const program::Body& body = program_.bodies[static_cast<size_t>(call.body)];
    call_ = &call;
    if (fresh) {
      std::vector<Bound> bound;
      for (const Instruction& i : body.instructions) bound.push_back(bind(body, i, kernels));
      bound_.push_back(std::move(bound));
    }
    bool inputs = false;
    for (const Instruction& i : body.instructions)
      for (BufferId b : i.ins)
        if (!program_.buffer(program_.root(b)).input.empty())
          inputs |= filled.insert({program_.root(b), call.micro_batch}).second;
    made.bound.push_back({at->second, inputs});
  }
  std::set<int64_t> seen;  // micro-batches that are filled
  for (size_t c = 0; c < list.calls.size(); ++c)
    if (made.bound[c].fills) seen.insert(list.calls[c].micro_batch);
  for (size_t c = 0; c < list.calls.size(); ++c)
    if (list.calls[c].micro_batch >= 0) made.bound[c].fills |= seen.insert(list.calls[c].micro_batch).second;
  call_ = nullptr;
  lists_.push_back(std::move(made));
}

comm::Communicator& Executor::group_of(const Instruction& i) {
  return *groups_.at({i.group, i.channel});
}

// That of the call that is run; after a list, of the last call that had the segment.
int Executor::slot_of(int segment) const {
  if (call_) return call_->slot;
  for (auto call = now_->calls.rbegin(); call != now_->calls.rend(); ++call) {
    const std::vector<int64_t>& begins = now_->slots[static_cast<size_t>(call->slot)];
    if (static_cast<size_t>(segment) < begins.size() && begins[static_cast<size_t>(segment)] >= 0) return call->slot;
  }
  throw base::InternalError("run", "{} has no segment {}", now_->name, segment);
}

View Executor::view(BufferId id) const {
  const program::Buffer& place = program_.buffer(program_.root(id));
  base::require(place.region != Region::file, "run", "\"{}\" lies in the file", place.name);
  const int64_t base = place.region == Region::state ? 0 : program_.state_bytes;
  const int64_t offset =
      place.segment < 0 || !now_ ? place.offset : program_.offset(program_.root(id), *now_, slot_of(place.segment));
  return {arena_.data() + base + offset + program_.begin(id, rank_), program_.buffer(id).type};
}

Executor::Bound Executor::bind(const program::Body& body, const Instruction& i, const kernels::KernelSet& kernels) {
  Bound b;
  for (BufferId id : i.ins)
    if (!in_file(id)) b.ins.push_back(view(id));
  for (BufferId id : i.outs)
    if (!in_file(id)) b.outs.push_back(view(id));
  if (program::is_copy(i)) return b;
  if (i.kind != Kind::compute) {
    b.communicator = &group_of(i);
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

void Executor::enqueue(const Instruction& i, Bound& b, Running& r) {
  comm::Communicator& c = *b.communicator;
  const std::span<std::byte> in = b.ins.empty() ? std::span<std::byte>{} : bytes_of(b.ins[0]),
                             out = b.outs.empty() ? std::span<std::byte>{} : bytes_of(b.outs[0]);
  const comm::Reduction reduction = i.reduction == "max" ? comm::Reduction::max : comm::Reduction::sum;
  if (i.kernel == "all_reduce") {
    r.communication = c.all_reduce(in, out, b.ins[0].dtype(), reduction);
  } else if (i.kernel == "all_gather") {
    r.communication = c.all_gather(in, out);
  } else if (i.kernel == "reduce_scatter") {
    r.communication = c.reduce_scatter(in, out, b.ins[0].dtype(), reduction);
  } else if (i.kernel == "all_to_all") {
    r.communication = c.all_to_all(in, out);
  } else if (i.kernel == "send") {
    r.communication = c.send(in, 1 - c.rank());
  } else if (i.kernel == "receive") {
    r.communication = c.receive(out, 1 - c.rank());
  } else {
    base::require(i.kernel == "shift", "run", "no collective \"{}\"", i.kernel);
    const int from = (c.rank() + 1) % c.size(), to = (c.rank() + c.size() - 1) % c.size();
    r.communication = c.exchange(std::array{comm::Message::from(from, out), comm::Message::to(to, in)});
  }
}

void Executor::enqueue_copy(const Instruction& i, const Bound& b, Running& r) {
  const bool fetches = i.kernel == "fetch";
  const int64_t at = program_.in_file(fetches ? i.ins[0] : i.outs[0], call_->micro_batch, rank_);
  r.ticket = fetches ? file_->read(at, bytes_of(b.outs[0])) : file_->write(at, bytes_of(b.ins[0]));
}

void Executor::wait(const program::Body& body, const Instruction& i, Bound& b, const Running& r) {
  if (!b.communicator) return file_->wait(r.ticket);
  try {
    b.communicator->wait(r.communication);
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

const Executor::List& Executor::list_of(std::string_view name) const {
  for (const List& list : lists_)
    if (list.calls->name == name) return list;
  throw base::InternalError("run", "no list of calls \"{}\"", name);
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

bool Executor::has_output(std::string_view list, std::string_view name) const {
  return find(list, name, false) != kNoBuffer;
}

void Executor::run(std::string_view name, kernels::Numbers& numbers, Fill fill, const void* context) {
  const List& list = list_of(name);
  now_ = list.calls;
  for (size_t c = 0; c < list.bound.size(); ++c) {
    call_ = &list.calls->calls[c];
    if (list.bound[c].fills) fill(context, call_->micro_batch);
    if (numbers.batch_rows > 0) numbers.batch_offset = numbers.batch_rows * std::max<int64_t>(0, call_->micro_batch);
    run_call(list, c, numbers);
  }
  call_ = nullptr;
}

void Executor::run_call(const List& list, size_t number, kernels::Numbers& numbers) {
  const program::Call& call = list.calls->calls[number];
  const program::Body& body = program_.bodies[static_cast<size_t>(call.body)];
  std::vector<Bound>& bound = bound_[list.bound[number].bound];
  for (size_t i = 0; i < bound.size(); ++i) {
    const Instruction& instruction = body.instructions[i];
    Bound& b = bound[i];
    if (instruction.kind == Kind::collective) {
      enqueue(instruction, b, running(instruction, call.micro_batch));
      continue;
    }
    if (instruction.kind == Kind::copy) {
      enqueue_copy(instruction, b, running(instruction, call.micro_batch));
      continue;
    }
    if (instruction.kind == Kind::wait) {
      wait(body, instruction, b, running(instruction, call.micro_batch));
      if (watch) watch(body, instruction);
      continue;
    }
    if (b.seq >= 0) b.indices[static_cast<size_t>(b.seq)].index.begin_at(b.seq_begin + numbers.position);
    b.kernel->run({.ins = b.ins,
                   .outs = b.outs,
                   .attributes = instruction.attributes,
                   .indices = b.indices,
                   .accumulate = instruction.accumulate,
                   .workspace = b.workspace,
                   .numbers = numbers,
                   .team = team_});
    if (watch) watch(body, instruction);
    if (!groups_.empty()) groups_.begin()->second->progress();  // that of all groups
  }
}

}  // namespace kintsugi::run
