#include "kintsugi/program/ordered_sums.h"

#include <algorithm>
#include <map>

namespace kintsugi::program {

const OrderedSums::Place* OrderedSums::find(const Channel& channel) const {
  const auto at = std::find_if(places.begin(), places.end(), [&](const Place& p) { return p.channel == channel; });
  return at == places.end() ? nullptr : &*at;
}

OrderedSums ordered_sums(const Program& p) {
  std::map<Channel, int64_t> most;
  for (const Body& body : p.bodies)
    for (const Instruction& i : body.instructions)
      if (is_collective(i) && reduces(i)) {
        int64_t& bytes = most[{i.group, i.channel}];
        bytes = std::max(bytes, p.buffer(i.ins[0]).bytes());
      }
  OrderedSums sums;
  for (const auto& [channel, bytes] : most) {
    // One part per rank, as long as the longest, each aligned to 16 bytes.
    constexpr int64_t kMore = 16;
    const auto ranks = static_cast<int64_t>(p.mesh.group(0, channel.first).size());
    sums.places.push_back({channel, sums.bytes, p.aligned(bytes + kMore * ranks)});
    sums.bytes += sums.places.back().bytes;
  }
  return sums;
}

}  // namespace kintsugi::program
