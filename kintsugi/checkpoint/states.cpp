#include "kintsugi/checkpoint/states.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/read_parts.h"
#include "kintsugi/checkpoint/shards.h"
#include "kintsugi/checkpoint/state_pieces.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/program/state_runs.h"
#include "kintsugi/run/state_blocks.h"
#include "kintsugi/tensor/state_blocks.h"

namespace kintsugi::checkpoint {
namespace {

using program::Program;
using program::StateInfo;

constexpr int64_t kRead = int64_t{4} << 20;  // bytes buffered during the transfer

void write(CheckpointWriter& writer, const run::Executor& executor) {
  add_states(writer, executor);
  writer.write();
}

// The name in the checkpoint of a state to load. Where only weights are loaded, a moving average begins as its weight.
std::string source_name(const StateInfo& s, Load what) {
  return what == Load::weights && s.part == tensor::OptimizerPart::average ? s.weight : stored_name(s);
}

// Whether the checkpoint stores the scales of a weight's blocks in one dim, as earlier versions did.
bool is_in_one_dim(const tensor::Shape& stored, const tensor::Shape& wanted) {
  return stored != wanted && stored.rank() == 1 && stored[0].name == tensor::kStateBlockDim &&
         stored.elements() == wanted.elements();
}

// The layers, as prefixes of names, of which the checkpoint lacks a state or has it in another shape.
std::set<std::string> other_layers(const Program& p, const TensorSource& source, Load what, const LeftOut& left_out) {
  std::set<std::string> layers;
  for (const StateInfo& s : p.states) {
    if (!s.saved || stored_kind(s) != Kind::weight) continue;
    const std::string name = source_name(s, what);
    if (left_out && left_out(name)) continue;
    bool same = false;
    try {
      const tensor::Shape& stored = source.type(name).shape;
      same = stored == s.whole.shape || is_in_one_dim(stored, s.whole.shape);
    } catch (const base::UserError&) {  // not there
    }
    if (!same) layers.insert(name.substr(0, name.rfind('.')));
  }
  return layers;
}

// What would be right where the shape of a state differs: another [model], or only a new head.
std::string shape_advice(const Program& p, const TensorSource& source, Load what, const LeftOut& left_out) {
  constexpr int64_t kMostNew = 2;
  const std::set<std::string> layers = other_layers(p, source, what, left_out);
  if (!left_out) return "[model] must be that of the checkpoint";
  if (std::ssize(layers) > kMostNew)
    return fmt::format("{} layers differ: [model] must be that of the checkpoint", layers.size());
  return fmt::format("[model] must be that of the checkpoint, or train.init_new = [\"{}\"] initializes {} anew",
                     fmt::join(layers, "\", \""), layers.size() == 1 ? "it" : "them");
}

// The states to load; throws UserError if the checkpoint does not hold them.
std::vector<const StateInfo*> wanted_states(const Program& p, const TensorSource& source, Load what,
                                            const LeftOut& left_out) {
  std::vector<const StateInfo*> list;
  for (const StateInfo& s : p.states) {
    const bool average = s.part == tensor::OptimizerPart::average;
    if (!s.saved || (what == Load::weights && stored_kind(s) != Kind::weight && !average)) continue;
    const std::string name = source_name(s, what);
    if (left_out && left_out(name)) continue;
    const tensor::Shape& stored = source.type(name).shape;
    if (stored != s.whole.shape && !is_in_one_dim(stored, s.whole.shape))
      throw base::UserError("checkpoint", "\"{}\" holds {} {}, the model needs {}: {}", source.folder().string(), name,
                            to_string(stored), to_string(s.whole.shape), shape_advice(p, source, what, left_out));
    list.push_back(&s);
  }
  return list;
}

// Address of the shard's elements if they are one run in host-writable memory, else null.
std::byte* in_place(const Shard& shard, const run::Executor& executor, program::BufferId state) {
  int64_t spans = 0, begin = 0;
  for_each_span(shard, [&](int64_t at, int64_t) { spans++ == 0 ? void(begin = at) : void(); });
  if (spans != 1 || !executor.on_host(state)) return nullptr;
  return executor.state_view(state).data + begin * size_of(executor.program().buffer(state).type.dtype);
}

// Reads through a staging buffer.
void read(const TensorSource& source, const std::string& name, const Shard& shard, run::Executor& executor,
          program::BufferId state) {
  const tensor::DType dtype = executor.program().buffer(state).type.dtype;
  const int64_t size = size_of(dtype);
  std::vector<std::byte> buffer;
  const Range& all = shard.part.flat;
  const int64_t count = kRead / size;
  for (int64_t from = all.begin; from < all.end; from += count) {
    Shard some = shard;
    some.part.flat = {from, std::min(from + count, all.end)};
    buffer.resize(static_cast<size_t>(some.part.flat.size() * size));
    source.read({.name = name, .box = some.part.box, .flat = some.part.flat}, dtype, buffer);
    const std::byte* next = buffer.data();
    for_each_span(some, [&](int64_t at, int64_t elements) {
      run::write_state(executor, state, at * size, {next, static_cast<size_t>(elements * size)});
      next += elements * size;
    });
  }
}

// Reads all of a state that is stored in one dim, and keeps what the rank holds.
void read_in_one_dim(const TensorSource& source, const std::string& name, const StateInfo& s, run::Executor& executor) {
  const tensor::DType dtype = executor.program().buffer(s.buffer).type.dtype;
  const int64_t size = size_of(dtype), elements = s.whole.shape.elements();
  std::vector<std::byte> all(static_cast<size_t>(elements * size));
  source.read({.name = name, .box = Box{{0}, {elements}}, .flat = {}}, dtype, all);
  program::for_each_run(executor.program(), s, executor.rank(), [&](const program::Run& run) {
    run::write_state(
        executor, s.buffer, run.at * size,
        std::span(all).subspan(static_cast<size_t>(run.whole * size), static_cast<size_t>(run.count * size)));
  });
}

void read_all(run::Executor& executor, const TensorSource& source, const std::vector<const StateInfo*>& states,
              Load what) {
  std::vector<WantedPart> direct;
  for (const StateInfo* s : states) {
    if (is_in_one_dim(source.type(source_name(*s, what)).shape, s->whole.shape)) {
      read_in_one_dim(source, source_name(*s, what), *s, executor);
      continue;
    }
    for (const Shard& shard : shards_of(executor.program(), *s, executor.rank())) {
      const tensor::DType dtype = executor.program().buffer(s->buffer).type.dtype;
      if (std::byte* const at = in_place(shard, executor, s->buffer))
        direct.push_back({source_name(*s, what), shard.part, dtype, at});
      else
        read(source, source_name(*s, what), shard, executor, s->buffer);
    }
  }
  read_parts(source, direct, executor.team());
}

}  // namespace

void add_states(CheckpointWriter& writer, const run::Executor& executor) {
  add_states(writer, executor.program(), executor.rank(),
             [&executor](program::BufferId state, int64_t begin, int64_t bytes, const Sink& sink) {
               if (executor.on_host(state))
                 return sink({executor.state_view(state).data + begin, static_cast<size_t>(bytes)});
               std::vector<std::byte> block;
               for (const int64_t end = begin + bytes; begin < end; begin += kRead) {
                 block.resize(static_cast<size_t>(std::min(kRead, end - begin)));
                 run::read_state(executor, state, begin, block);
                 sink(block);
               }
             });
}

std::filesystem::path save_states(const run::Executor& executor, comm::Communicator& all,
                                  const std::filesystem::path& run_folder, int64_t step, const Contents& contents) {
  require_ranks(executor, all);
  std::optional<CheckpointWriter> writer;
  comm::together(all, [&] {
    if (all.rank() == 0) writer.emplace(run_folder, step, 0, all.size());
  });
  comm::together(all, [&] {
    if (all.rank() != 0) writer.emplace(run_folder, step, all.rank(), all.size());
    write(*writer, executor);
  });
  comm::together(all, [&] {
    if (all.rank() == 0) writer->finish(contents);
  });
  return step_folder(run_folder, step);
}

std::filesystem::path save_states(const run::Executor& executor, const std::filesystem::path& run_folder, int64_t step,
                                  const Contents& contents) {
  return save_states(executor, *comm::self_communicator(), run_folder, step, contents);
}

void load_states(run::Executor& executor, comm::Communicator& all, const TensorSource& source, Load what,
                 const LeftOut& left_out) {
  require_ranks(executor, all);
  std::vector<const StateInfo*> states;
  std::set<std::string, std::less<>> names;
  // Each rank verifies its share of the pieces that all need; ranks of other stages need other states.
  const bool staged = !executor.program().mesh.stage_factors().empty();
  const auto wanted = [&](std::string_view name) { return staged || names.contains(name); };
  comm::together(all, [&] {
    states = wanted_states(executor.program(), source, what, left_out);
    for (const StateInfo* s : states) names.insert(source_name(*s, what));
    source.verify(all.rank(), all.size(), wanted);
  });
  source.trust(wanted);
  comm::together(all, [&] { read_all(executor, source, states, what); });
}

void load_states(run::Executor& executor, const TensorSource& source, Load what) {
  read_all(executor, source, wanted_states(executor.program(), source, what, {}), what);
}

}  // namespace kintsugi::checkpoint
