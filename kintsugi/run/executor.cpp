#include "kintsugi/run/executor.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/bind/bound_kernel.h"
#include "kintsugi/run/device_runner.h"
#include "kintsugi/run/host_runner.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::run {

using program::BufferId;
using program::Instruction;
using program::Region;
using tensor::View;

namespace {

std::unique_ptr<Runner> make_runner(const program::Program& p, const kernels::KernelSet& kernels,
                                    base::ThreadTeam& team, const Place& place) {
  const int ranks = place.world ? place.world->size() : 1;
  base::require(p.mesh.ranks() == ranks, "run", "a program for {} ranks on {}", p.mesh.ranks(), ranks);
  base::require(p.on_device == (kernels.device() != nullptr), "run", "a program for {} is run by \"{}\"",
                p.on_device ? "a device" : "the host", kernels.name());
  if (p.on_device) return std::make_unique<DeviceRunner>(p, kernels, team, place);
  return std::make_unique<HostRunner>(p, kernels, team, place);
}

}  // namespace

Executor::Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team,
                   const Place& place)
    : program_(std::move(program)),
      team_(team),
      rank_(place.rank()),
      exchange_(program_.on_device ? place.exchange.said : ""),
      runner_(make_runner(program_, kernels, team, place)) {
  for (const program::CallList& list : program_.lists) bind_inputs(list);
}

View Executor::view(BufferId id, const program::CallList& list, int slot) const {
  return {bind::address_of(program_, id, list, slot, rank_, runner_->memory()), program_.buffer(id).type};
}

View Executor::state_view(BufferId id) const {
  const BufferId root = program_.root(id);
  const program::Buffer& of = program_.buffer(root);
  base::require(of.region != Region::file, "run", "\"{}\" is in the file", of.name);
  if (of.region == Region::state)
    return {runner_->memory() + of.offset + program_.begin(id, rank_), program_.buffer(id).type};
  const program::CallList& train = program_.list(program::Step::train);
  const auto touches = [&](const program::Call& call) {
    const auto has = [&](const std::vector<BufferId>& list) {
      return std::any_of(list.begin(), list.end(), [&](BufferId b) { return program_.root(b) == root; });
    };
    const std::vector<Instruction>& all = body_of(call).instructions;
    return std::any_of(all.begin(), all.end(), [&](const Instruction& i) { return has(i.ins) || has(i.outs); });
  };
  const auto last = std::find_if(train.calls.rbegin(), train.calls.rend(), touches);
  base::require(last != train.calls.rend(), "run", "no call touches \"{}\"", of.name);
  return view(id, train, last->slot);
}

View Executor::state(std::string_view name) const {
  const program::StateInfo* s = program_.state(name);
  base::require(s != nullptr, "run", "no state \"{}\"", name);
  const View whole = state_view(s->buffer);
  if (!s->in_bucket) return whole;
  base::require(program_.buffer(s->buffer).layout.of(tensor::kFlat).empty(), "run",
                "state \"{}\" is split along its bucket", name);
  return {whole.data + s->first * tensor::size_of(whole.dtype()),
          {mesh::local_shape(program_.mesh, s->whole.shape, s->layout), whole.dtype()}};
}

double Executor::number(std::string_view name) const {
  double value = 0;
  numbers({&name, 1}, {&value, 1});
  return value;
}

void Executor::numbers(std::span<const std::string_view> names, std::span<double> values) const {
  std::vector<const std::byte*> at;
  for (const std::string_view name : names) at.push_back(state(name).data);
  runner_->read(at, values);
}

void Executor::ask(std::span<const std::string_view> names) {
  std::vector<const std::byte*> at;
  for (const std::string_view name : names) at.push_back(state(name).data);
  runner_->ask(at);
}

void Executor::answer(std::span<double> values) {
  runner_->answer(values);
}

void Executor::set_number(std::string_view name, double value) {
  runner_->write(state(name).data, std::as_bytes(std::span(&value, 1)));
}

std::vector<double> Executor::list(std::string_view name) const {
  const View elements = state(name);
  std::vector<double> values(static_cast<size_t>(elements.elements()));
  std::vector<const std::byte*> at;
  for (size_t i = 0; i < values.size(); ++i) at.push_back(elements.data + i * sizeof(double));
  runner_->read(at, values);
  return values;
}

void Executor::set_list(std::string_view name, double value) {
  const View elements = state(name);
  const std::vector<double> values(static_cast<size_t>(elements.elements()), value);
  runner_->write(elements.data, std::as_bytes(std::span(values)));
}

Executor::Found Executor::find_input(const program::CallList& list, std::string_view name) const {
  for (const program::Call& call : list.calls)
    for (const Instruction& i : body_of(call).instructions)
      for (BufferId b : i.ins)
        if (program_.buffer(b).input == name) return {b, &call};
  return {};
}

Executor::Found Executor::find_output(const program::CallList& list, std::string_view name) const {
  Found found;
  for (const program::Call& call : list.calls)
    for (const Instruction& i : body_of(call).instructions)
      for (BufferId b : i.outs)
        if (program_.buffer(b).output == name) found = {b, &call};
  return found;
}

View Executor::output(program::Step step, std::string_view name) const {
  const program::CallList& list = program_.list(step);
  const Found found = find_output(list, name);
  base::require(found.call != nullptr, "run", "{} has no output \"{}\"", name_of(step), name);
  return runner_->on_host(view(found.buffer, list, found.call->slot));
}

bool Executor::has_input(program::Step step, std::string_view name) const {
  return find_input(program_.list(step), name).call != nullptr;
}

bool Executor::has_output(program::Step step, std::string_view name) const {
  return find_output(program_.list(step), name).call != nullptr;
}

class Executor::InputFiller : public Filler {
 public:
  InputFiller(const Executor& executor, Fill fill, const void* context)
      : executor_(executor), fill_(fill), context_(context) {}
  void fill(const program::CallList& list, const program::Call& call) const override {
    executor_.fill_inputs(list, call, fill_, context_);
  }

 private:
  const Executor& executor_;
  const Fill fill_;
  const void* const context_;
};

void Executor::run(program::Step step, kernels::Numbers& numbers, Fill fill, const void* context) {
  runner_->run(step, numbers, InputFiller(*this, fill, context),
               {.recorder = recorder && recorder->step() == step && numbers.micro_batches == 0 ? recorder : nullptr,
                .watch = watch ? &watch : nullptr});
}

}  // namespace kintsugi::run
