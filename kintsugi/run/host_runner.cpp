#include "kintsugi/run/host_runner.h"

#include <algorithm>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::run {

using bind::bytes_of;
using program::Instruction;
using program::Kind;

HostRunner::HostRunner(const program::Program& p, const kernels::KernelSet& kernels, base::ThreadTeam& team,
                       const Place& place)
    : p_(p),
      team_(team),
      rank_(place.rank()),
      tf32_(kernels.tf32()),
      arena_(p.bytes()),
      file_(p.file_bytes > 0 ? std::make_unique<FileStore>(place.offload_folder, p.file_bytes, rank_) : nullptr),
      groups_(p, rank_, place.time_limit, nullptr,
              [&](std::span<const int> ranks, const comm::GroupOptions& options, const program::OpenTransfers&) {
                return place.world->group(ranks, options);
              }),
      bound_(p, rank_, arena_.data(), kernels, groups_),
      open_(p) {}

void HostRunner::read(const std::byte* from, std::span<std::byte> to) const {
  std::memcpy(to.data(), from, to.size());
}

void HostRunner::write(std::byte* to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), from.size());
}

void HostRunner::read(std::span<const std::byte* const> from, std::span<double> to) const {
  for (size_t i = 0; i < from.size(); ++i) std::memcpy(&to[i], from[i], sizeof(double));
}

void HostRunner::ask(std::span<const std::byte* const> from) {
  const size_t before = answers_.size();
  answers_.resize(before + from.size());
  read(from, std::span(answers_).subspan(before));
}

void HostRunner::answer(std::span<double> to) {
  base::require(to.size() <= answers_.size(), "run", "no open request for {} scalars", to.size());
  std::copy_n(answers_.begin(), to.size(), to.begin());
  answers_.erase(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(to.size()));
}

std::byte* HostRunner::input_address(const program::CallList& list, const program::Call& call,
                                     program::BufferId buffer) const {
  return bind::address_of(p_, buffer, list, call.slot, rank_, memory());
}

void HostRunner::run(program::Step step, kernels::Numbers& numbers, const Filler& filler, const Probe& probe) {
  const BoundList& list = bound_.list(step, numbers.micro_batches);
  profile::Recorder* const recorder = probe.recorder;
  if (recorder) recorder->begin_list();
  for (size_t c = 0; c < list.bound.size(); ++c) {
    const BoundCall& call = list.bound[c];
    if (call.fills) {
      if (recorder) recorder->begin_inputs(c);
      filler.fill(list.calls, call.call);
      if (recorder) recorder->end_inputs(c);
    }
    begin_call(numbers, call.call);
    run_call(list, call, {.numbers = numbers, .team = team_, .tf32 = tf32_}, probe);
  }
  if (recorder) recorder->end_list();
}

void HostRunner::run_call(const BoundList& list, const BoundCall& call, const CallContext& context,
                          const Probe& probe) {
  profile::Recorder* const recorder = probe.recorder;
  if (recorder) recorder->begin_call();
  for (size_t n = 0; n < call.instructions.size(); ++n) {
    const Instruction& i = call.body.instructions[n];
    BoundInstruction& b = call.instructions[n];
    switch (i.kind) {
      case Kind::wait:
        wait(call, i, b);
        break;
      case Kind::collective:
        open_.of(i, call.call).communication = start(i, b);
        break;
      case Kind::copy:
        start_copy(i, b, call.call);
        break;
      case Kind::compute:
        if (b.seq >= 0) b.indices[static_cast<size_t>(b.seq)].index.begin_at(b.seq_begin + context.numbers.position);
        b.kernel->run(call_of(i, b, context));
        break;
    }
    if (recorder) recorder->end_instruction();
    probe.visited({list.calls, call.call, call.body, i});
    if (i.kind != Kind::compute || groups_.empty()) continue;
    groups_.progress_all();
    if (recorder) recorder->end_progress();
  }
}

void HostRunner::start_copy(const Instruction& i, const BoundInstruction& b, const program::Call& call) {
  Open& open = open_.of(i, call);
  switch (i.copy) {
    case program::Copy::fetch:
      open.ticket = file_->read(p_.in_file(i.ins[0], call.micro_batch, rank_), bytes_of(b.outs[0]));
      return;
    case program::Copy::store:
      open.ticket = file_->write(p_.in_file(i.outs[0], call.micro_batch, rank_), bytes_of(b.ins[0]));
      return;
  }
  throw base::InternalError("run", "no copy {}", static_cast<int>(i.copy));
}

void HostRunner::wait(const BoundCall& call, const Instruction& i, const BoundInstruction& b) {
  const Open& open = open_.of(i, call.call);
  if (b.communicator == nullptr) return file_->wait(open.ticket);
  const int64_t began = profile::now();
  wait_for(p_, rank_, call.body, i, *b.communicator, open.communication);
  waited_ += profile::now() - began;
}

}  // namespace kintsugi::run
