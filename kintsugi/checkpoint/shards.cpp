#include "kintsugi/checkpoint/shards.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/mesh/layout.h"

namespace kintsugi::checkpoint {
namespace {

using program::Program;
using program::StateInfo;

// The block of a rank, including padding, and the boxes of the whole tensor that its segments form.
class Block {
 public:
  Block(const Program& p, const StateInfo& s, int rank) : stride_(s.whole.shape.rank(), 1) {
    for (const tensor::Dim& d : s.whole.shape)
      index_.push_back(mesh::local_index(p.mesh, d.name, d.size, s.layout.of(d.name), rank));
    for (size_t d = stride_.size(); d-- > 0;) {
      stride_[d] = elements_;
      elements_ *= index_[d].local();
    }
  }

  int64_t elements() const { return elements_; }

  // The shards of the block's elements `held`; element 0 of the block is at `zero` in the buffer.
  std::vector<Shard> shards(const Range& held, int64_t zero) const {
    std::vector<Shard> list;
    add(list, held, zero, {}, {});
    return list;
  }

 private:
  // One choice of segment per dim forms a box; `local` is where it begins in the block.
  void add(std::vector<Shard>& list, const Range& held, int64_t zero, const Box& box,
           const std::vector<int64_t>& local) const {
    const size_t d = local.size();
    if (d == index_.size()) {
      const Range flat = {below(held.begin, box, local), below(held.end, box, local)};
      int64_t first = zero;
      for (size_t i = 0; i < d; ++i) first += local[i] * stride_[i];
      if (flat.size() > 0) list.push_back({{box, flat}, first, stride_});
      return;
    }
    int64_t at = 0;
    for (const tensor::Segment& segment : index_[d].segments()) {
      if (segment.global >= 0) {
        Box longer = box;
        longer.start.push_back(segment.global);
        longer.size.push_back(segment.count);
        std::vector<int64_t> places = local;
        places.push_back(at);
        add(list, held, zero, longer, places);
      }
      at += segment.count;
    }
  }

  // The number of elements of the box before element `limit` of the block. Elements have the same order in the box and
  // in the block, so a range of the block is a range of the box.
  int64_t below(int64_t limit, const Box& box, const std::vector<int64_t>& local) const {
    if (limit >= elements_) return box.elements();
    int64_t n = 0, inner = box.elements();
    for (size_t d = 0; d < local.size(); ++d) {
      inner /= box.size[d];
      const int64_t at = limit / stride_[d] - local[d];
      limit %= stride_[d];
      if (at < 0) return n;
      if (at >= box.size[d]) return n + box.size[d] * inner;
      n += at * inner;
    }
    return n;
  }

  std::vector<tensor::DimIndex> index_;
  std::vector<int64_t> stride_;
  int64_t elements_ = 1;
};

// The factors over which ranks replicate the same elements.
std::vector<mesh::Factor> replicas_of(const Program& p, const StateInfo& s) {
  const mesh::Layout& stored = p.buffer(s.buffer).layout;
  base::require(stored.partial().empty() && s.layout.partial().empty(), "checkpoint", "state \"{}\" is in parts",
                s.name);
  const std::vector<mesh::Factor> pipe = p.mesh.stage_factors();  // ranks hold different states along these
  std::vector<mesh::Factor> factors;
  for (mesh::Factor f = 0; f < static_cast<mesh::Factor>(p.mesh.factors().size()); ++f)
    if (!stored.is_split(f) && !s.layout.is_split(f) && !std::count(pipe.begin(), pipe.end(), f)) factors.push_back(f);
  return factors;
}

}  // namespace

std::vector<Shard> shards_of(const Program& p, const StateInfo& s, int rank) {
  const Block block(p, s, rank);
  if (!s.in_bucket) return block.shards({0, block.elements()}, 0);
  const tensor::DimIndex flat = p.index(s.buffer, "flat", rank);
  base::require(flat.contiguous(), "checkpoint", "the bucket of \"{}\" is not cut into ranges", s.name);
  const int64_t from = flat.segments().front().global;
  const Range held = {std::clamp<int64_t>(from - s.first, 0, block.elements()),
                      std::clamp<int64_t>(from + flat.local() - s.first, 0, block.elements())};
  return block.shards(held, s.first - from);
}

void for_each_span(const Shard& shard, const std::function<void(int64_t, int64_t)>& f) {
  const std::vector<int64_t>& size = shard.part.box.size;
  size_t walked = size.size();  // dims from here on form one run
  int64_t run = 1;
  for (; walked > 0 && (size[walked - 1] == 1 || shard.stride[walked - 1] == run); --walked) run *= size[walked - 1];
  const Range& flat = shard.part.flat;
  for (int64_t i = flat.begin; i < flat.end;) {
    int64_t at = shard.first + i % run, row = i / run;
    for (size_t d = walked; d-- > 0; row /= size[d]) at += row % size[d] * shard.stride[d];
    const int64_t count = std::min(run - i % run, flat.end - i);
    f(at, count);
    i += count;
  }
}

std::vector<Share> shares_of(const Program& p, const std::vector<const StateInfo*>& states, int rank) {
  // The elements replicated over the same factors, as one sequence.
  struct Line {
    std::vector<mesh::Factor> replicas;
    int64_t ranks = 0, place = 0;  // number of replicas, and this rank's index among them
    int64_t bytes = 0, passed = 0;
  };
  std::vector<Line> lines;
  std::vector<size_t> line_of;  // [state]
  std::vector<Share> held;
  for (size_t i = 0; i < states.size(); ++i) {
    std::vector<mesh::Factor> replicas = replicas_of(p, *states[i]);
    const auto found = std::ranges::find(lines, replicas, &Line::replicas);
    line_of.push_back(static_cast<size_t>(found - lines.begin()));
    if (found == lines.end()) {
      const int64_t ranks = p.mesh.count(replicas), place = p.mesh.position(rank, replicas);
      lines.push_back({.replicas = std::move(replicas), .ranks = ranks, .place = place});
    }
    for (Shard& shard : shards_of(p, *states[i], rank)) {
      lines[line_of[i]].bytes += shard.part.flat.size() * size_of(states[i]->whole.dtype);
      held.push_back({i, std::move(shard)});
    }
  }
  std::vector<Share> mine;
  for (Share& share : held) {
    Line& line = lines[line_of[share.state]];
    const int64_t size = size_of(states[share.state]->whole.dtype);
    Range& flat = share.shard.part.flat;
    // An element belongs to the replica whose share of the sequence contains its first byte.
    const auto cut = [&](int64_t k) {
      const int64_t stretch = line.bytes / line.ranks * k + line.bytes % line.ranks * k / line.ranks;
      return flat.begin + std::clamp<int64_t>((stretch - line.passed + size - 1) / size, 0, flat.size());
    };
    const Range own = {cut(line.place), cut(line.place + 1)};
    line.passed += flat.size() * size;
    flat = own;
    if (own.size() > 0) mine.push_back(std::move(share));
  }
  return mine;
}

}  // namespace kintsugi::checkpoint
