#include "kintsugi/run/executor.h"

#include <sys/mman.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::run {

using program::BufferId;
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

Executor::Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team)
    : program_(std::move(program)), team_(team), arena_(program_.bytes()) {
  for (const program::Body& body : program_.bodies) {
    std::vector<Bound> list;
    for (const program::Instruction& i : body.instructions) list.push_back(bind(body, i, kernels));
    bound_.push_back(std::move(list));
  }
}

View Executor::view(BufferId id) const {
  const program::Buffer& place = program_.buffer(program_.root(id));
  const int64_t base = place.region == Region::state ? 0 : program_.state_bytes;
  return {arena_.data() + base + place.offset, program_.buffer(id).type};
}

Executor::Bound Executor::bind(const program::Body& body, const program::Instruction& i,
                               const kernels::KernelSet& kernels) const {
  Bound b;
  b.kernel = &kernels.find(i.kernel);
  for (BufferId id : i.ins) b.ins.push_back(view(id));
  for (BufferId id : i.outs) b.outs.push_back(view(id));
  const auto add_dims = [&](const View& v) {
    for (const tensor::Dim& d : v.shape()) {
      bool known = false;
      for (const kernels::NamedIndex& n : b.indices) known |= n.dim == d.name;
      if (!known) b.indices.push_back({d.name, tensor::DimIndex(d.size)});
    }
  };
  for (const View& v : b.ins) add_dims(v);
  for (const View& v : b.outs) add_dims(v);
  for (size_t d = 0; d < b.indices.size(); ++d)
    if (body.at_position && b.indices[d].dim == "seq") b.seq = static_cast<int>(d);
  if (i.workspace != kNoBuffer)
    b.workspace = {view(i.workspace).data, static_cast<size_t>(program_.buffer(i.workspace).bytes())};
  return b;
}

View Executor::state(std::string_view name) const {
  const program::StateInfo* s = program_.state(name);
  base::require(s != nullptr, "run", "no state \"{}\"", name);
  return view(s->buffer);
}

double& Executor::number(std::string_view name) const {
  return state(name).as<double>()[0];
}

BufferId Executor::find(std::string_view list, std::string_view name, bool input) const {
  for (const program::Call& call : program_.list(list).calls)
    for (const program::Instruction& i : program_.bodies[static_cast<size_t>(call.body)].instructions)
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
    const std::vector<program::Instruction>& instructions = program_.bodies[body].instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      Bound& b = bound_[body][i];
      if (b.seq >= 0) b.indices[static_cast<size_t>(b.seq)].index.begin_at(numbers.position);
      b.kernel->run({.ins = b.ins,
                     .outs = b.outs,
                     .attributes = instructions[i].attributes,
                     .indices = b.indices,
                     .accumulate = instructions[i].accumulate,
                     .workspace = b.workspace,
                     .numbers = numbers,
                     .team = team_});
      if (watch) watch(program_.bodies[body], instructions[i]);
    }
  }
}

}  // namespace kintsugi::run
