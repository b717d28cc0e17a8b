#include "kintsugi/run/enqueuer.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::run {

using bind::bytes_of;
using program::Instruction;
using program::Kind;
using program::Position;

namespace {

// "layer_norm of x (forward, layer 2" for profilers and errors.
std::string describe_kernel(const program::Program& p, const program::Body& body, const Instruction& i) {
  return fmt::format("{} of {} ({}{}", i.kernel, i.outs.empty() ? "" : p.buffer(i.outs[0]).name, body.name,
                     i.layer < 0 ? "" : fmt::format(", layer {}", i.layer));
}

// The range of a launch in a profiler, if one observes the device.
class NamedRange {
 public:
  NamedRange(device::Ranges* ranges, const program::Program& p, const program::Body& body, const Instruction& i)
      : ranges_(ranges) {
    if (ranges_) ranges_->begin((describe_kernel(p, body, i) + ")").c_str());
  }
  ~NamedRange() {
    if (ranges_) ranges_->end();
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  device::Ranges* ranges_;
};

}  // namespace

void Enqueuer::run(kernels::Numbers& numbers) {
  const DeviceSide::Watched watched(target_.side);
  const CallContext context = {.numbers = numbers,
                               .team = target_.team,
                               .tf32 = target_.tf32,
                               .stream = &target_.side.stream(),
                               .later = target_.side.numbers(),
                               .refused = target_.side.refused()};
  for (size_t c = 0; c < list_.bound.size(); ++c) {
    const BoundCall& call = list_.bound[c];
    wait_before({static_cast<int>(c), program::kBeforeInputs});
    const bool copies = copy_inputs(c);
    begin_call(numbers, call.call);
    if (target_.times && (c == 0 || copies)) target_.times->mark();
    for (size_t n = 0; n < call.instructions.size();) {
      const Instruction& i = call.body.instructions[n];
      const Position here = {static_cast<int>(c), static_cast<int>(n)};
      target_.side.watch_anew();
      wait_before(here);
      n += enqueue(call, n, here, context);
      if (target_.times) target_.times->mark();
      probe_.visited({list_.calls, call.call, call.body, i});
      if (i.kind == Kind::compute) target_.groups.progress_all();
    }
  }
  wait_before({static_cast<int>(list_.bound.size()), program::kBeforeInputs});
  if (target_.store) target_.store->join();
}

void Enqueuer::wait_before(Position here) {
  for (; next_wait_ < order_.waits.size() && order_.waits[next_wait_].before == here; ++next_wait_) {
    const Position at = order_.waits[next_wait_].wait;
    const BoundCall& call = list_.bound[static_cast<size_t>(at.call)];
    const Instruction& i = call.body.instructions[static_cast<size_t>(at.instruction)];
    const BoundInstruction& b = call.instructions[static_cast<size_t>(at.instruction)];
    DeviceTransfer& open = target_.open.of(i, call.call);
    if (b.communicator == nullptr)
      target_.store->wait(open.copy);
    else
      wait_for(target_.program, target_.rank, call.body, i, *b.communicator, open.communication);
  }
}

bool Enqueuer::copy_inputs(size_t call) {
  const size_t first = next_input_;
  for (; next_input_ < order_.inputs.size() && order_.inputs[next_input_].call == call; ++next_input_) {
    const program::StagedInput& input = order_.inputs[next_input_];
    std::byte* const to = bind::address_of(target_.program, input.buffer, list_.calls, list_.bound[call].call.slot,
                                           target_.rank, target_.side.memory());
    target_.side.stream().copy(to, target_.side.staged_on_device() + input.offset,
                               target_.program.buffer(input.buffer).bytes());
  }
  return next_input_ > first;
}

size_t Enqueuer::enqueue(const BoundCall& call, size_t n, Position here, const CallContext& context) {
  const Instruction& i = call.body.instructions[n];
  const BoundInstruction& b = call.instructions[n];
  switch (i.kind) {
    case Kind::wait:
      return 1;  // placed by wait_before()
    case Kind::collective:
      if (std::ranges::binary_search(order_.unordered, here)) b.communicator->next_waits(false);
      target_.open.of(i, call.call).communication = start(i, b);
      return 1;
    case Kind::copy:
      start_copy(i, b, call.call);
      return 1;
    case Kind::compute: {
      const size_t count = order_.joined ? static_cast<size_t>(i.launch) : 1;
      launch(call, n, count, context);
      return count;
    }
  }
  throw base::InternalError("run", "no kind of instruction {}", static_cast<int>(i.kind));
}

void Enqueuer::launch(const BoundCall& call, size_t n, size_t count, const CallContext& context) {
  const std::span<const Instruction> group = std::span(call.body.instructions).subspan(n, count);
  if (target_.side.stream().checks())
    for (size_t k = 0; k < count; ++k) announce(call, n + k);
  const NamedRange range(target_.side.device().ranges(), target_.program, call.body, group[0]);
  if (count == 1) {
    const BoundInstruction& b = call.instructions[n];
    b.kernel->run(call_of(group[0], b, context));
    return;
  }
  std::vector<kernels::KernelCall> calls;
  for (size_t k = 0; k < count; ++k) calls.push_back(call_of(group[k], call.instructions[n + k], context));
  const bool done = call.instructions[n + count - 1].kernel->together(calls);
  base::require(done, "run", "{}: the kernel does not perform {} instructions from {} on in one launch", call.body.name,
                count, n);
}

void Enqueuer::start_copy(const Instruction& i, const BoundInstruction& b, const program::Call& call) {
  DeviceStore::Copy& copy = target_.open.of(i, call).copy;
  if (!copy.done) copy = target_.store->make_copy();
  switch (i.copy) {
    case program::Copy::fetch:
      return target_.store->fetch(copy, target_.program.in_file(i.ins[0], call.micro_batch, target_.rank),
                                  bytes_of(b.outs[0]));
    case program::Copy::store:
      return target_.store->store(copy, target_.program.in_file(i.outs[0], call.micro_batch, target_.rank),
                                  bytes_of(b.ins[0]));
  }
  throw base::InternalError("run", "no copy {}", static_cast<int>(i.copy));
}

// Declares the accesses of a kernel, for a device that checks their order.
void Enqueuer::announce(const BoundCall& call, size_t n) const {
  const BoundInstruction& b = call.instructions[n];
  std::vector<std::span<const std::byte>> reads, writes;
  for (const tensor::View& v : b.ins)
    if (v.data != nullptr) reads.push_back(bytes_of(v));
  for (const tensor::View& v : b.outs)
    if (v.data != nullptr) writes.push_back(bytes_of(v));
  if (!b.workspace.empty()) writes.push_back(b.workspace);
  const std::string what =
      fmt::format("{}, rank {})", describe_kernel(target_.program, call.body, call.body.instructions[n]), target_.rank);
  target_.side.stream().announce({.what = what, .reads = reads, .writes = writes});
}

}  // namespace kintsugi::run
