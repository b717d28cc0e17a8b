#include "kintsugi/checkpoint/state_pieces.h"

#include <utility>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/shards.h"
#include "kintsugi/program/saved_states.h"

namespace kintsugi::checkpoint {

using program::OptimizerPart;
using program::StateInfo;
using program::StateKind;

std::string stored_name(const StateInfo& s) {
  return s.is_master() ? s.weight : s.name;
}

// A statistic with dims, such as the bias of a router, is part of the model and not a scalar of the run, unless
// training alone uses it.
Kind stored_kind(const StateInfo& s) {
  const bool of_model = s.kind == StateKind::statistic && s.whole.shape.rank() > 0 && s.part == OptimizerPart::none;
  if (s.kind == StateKind::weight || s.is_master() || of_model) return Kind::weight;
  return s.kind == StateKind::optimizer ? Kind::optimizer : Kind::statistic;
}

void require_ranks(const run::Executor& executor, const comm::Communicator& all) {
  base::require(all.rank() == executor.rank() && all.size() == executor.program().mesh.ranks(), "checkpoint",
                "rank {} of {} for the part of rank {} of {}", all.rank(), all.size(), executor.rank(),
                executor.program().mesh.ranks());
}

void add_states(CheckpointWriter& writer, const program::Program& p, int rank, const StateBytes& read) {
  const std::vector<const StateInfo*> states = program::saved_states(p);
  for (Share& share : shares_of(p, states, rank)) {
    const StateInfo& s = *states[share.state];
    const int64_t size = size_of(p.buffer(s.buffer).type.dtype);
    const Piece piece = {.name = stored_name(s),
                         .type = s.whole,
                         .kind = stored_kind(s),
                         .box = share.shard.part.box,
                         .flat = share.shard.part.flat};
    writer.add(piece, [read, size, state = s.buffer, shard = std::move(share.shard)](const Sink& sink) {
      for_each_span(shard, [&](int64_t at, int64_t count) { read(state, at * size, count * size, sink); });
    });
  }
}

}  // namespace kintsugi::checkpoint
