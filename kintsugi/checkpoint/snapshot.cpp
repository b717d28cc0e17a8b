#include "kintsugi/checkpoint/snapshot.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kintsugi/checkpoint/shards.h"
#include "kintsugi/program/saved_states.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::checkpoint {

SnapshotPlaces snapshot_places(const program::Program& p, int rank) {
  const std::vector<const program::StateInfo*> states = program::saved_states(p);
  std::map<program::BufferId, std::pair<int64_t, int64_t>> used;  // [first byte, end of the last)
  for (const Share& share : shares_of(p, states, rank)) {
    const program::BufferId buffer = states[share.state]->buffer;
    const int64_t size = size_of(p.buffer(buffer).type.dtype);
    auto& [begin, end] = used.try_emplace(buffer, std::numeric_limits<int64_t>::max(), 0).first->second;
    for_each_span(share.shard, [&](int64_t at, int64_t count) {
      begin = std::min(begin, at * size);
      end = std::max(end, (at + count) * size);
    });
  }
  SnapshotPlaces all;
  for (const auto& [buffer, range] : used) {
    const auto [begin, end] = range;
    all.of[buffer] = {.begin = begin, .bytes = end - begin, .offset = all.bytes};
    all.bytes += p.aligned(end - begin);
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
  // Merge copies with equal distances on the device and in the snapshot into one, including the bytes between them.
  std::ranges::sort(copies, {}, &run::DeviceSide::Copied::from);
  std::vector<run::DeviceSide::Copied> joined;
  for (const run::DeviceSide::Copied& c : copies) {
    if (!joined.empty()) {
      run::DeviceSide::Copied& last = joined.back();
      const int64_t apart = c.from - last.from;
      if (apart == c.to - last.to && apart >= last.bytes && apart < last.bytes + executor_.program().alignment()) {
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
