#include "kintsugi/checkpoint/snapshot.h"

#include <algorithm>
#include <span>
#include <vector>

#include "kintsugi/checkpoint/shards.h"
#include "kintsugi/program/saved_states.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::checkpoint {
namespace {

constexpr int64_t kAlignment = 256;  // as that of states on a device

}  // namespace

SnapshotPlaces snapshot_places(const program::Program& p, int rank) {
  SnapshotPlaces all;
  const std::vector<const program::StateInfo*> states = program::saved_states(p);
  for (const Share& share : shares_of(p, states, rank)) {
    const program::BufferId buffer = states[share.state]->buffer;
    const int64_t size = size_of(p.buffer(buffer).type.dtype);
    auto [place, is_new] = all.of.try_emplace(buffer);
    SnapshotPlaces::Place& own = place->second;
    for_each_span(share.shard, [&](int64_t at, int64_t count) {
      const int64_t end = std::max(own.begin + own.bytes, (at + count) * size);
      own.begin = is_new ? at * size : std::min(own.begin, at * size);
      own.bytes = (is_new ? (at + count) * size : end) - own.begin;
      is_new = false;
    });
  }
  for (auto& [buffer, place] : all.of) {
    place.offset = all.bytes;
    all.bytes += (place.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return all;
}

Snapshot::Snapshot(const run::Executor& executor)
    : executor_(executor),
      places_(snapshot_places(executor.program(), executor.rank())),
      memory_(executor.pinned(places_.bytes)) {}

void Snapshot::take() {
  std::vector<run::DeviceSide::Copied> copies;
  for (const auto& [buffer, place] : places_.of) {
    std::byte* const to = memory_->data() + place.offset;
    if (executor_.in_file(buffer)) {
      run::read_state(executor_, buffer, place.begin, {to, static_cast<size_t>(place.bytes)});
    } else {
      copies.push_back({executor_.state_view(buffer).data + place.begin, to, place.bytes});
    }
  }
  // What lies as far apart on the device as here is one copy, with what is between.
  std::ranges::sort(copies, {}, &run::DeviceSide::Copied::from);
  std::vector<run::DeviceSide::Copied> joined;
  for (const run::DeviceSide::Copied& c : copies) {
    if (!joined.empty()) {
      run::DeviceSide::Copied& last = joined.back();
      const int64_t apart = c.from - last.from;
      if (apart == c.to - last.to && apart >= last.bytes && apart < last.bytes + kAlignment) {
        last.bytes = apart + c.bytes;
        continue;
      }
    }
    joined.push_back(c);
  }
  executor_.copy_to_pinned(joined);
}

const std::byte* Snapshot::data(program::BufferId state, int64_t at) const {
  const SnapshotPlaces::Place& place = places_.of.at(state);
  return memory_->data() + place.offset + (at - place.begin);
}

}  // namespace kintsugi::checkpoint
