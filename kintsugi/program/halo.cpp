#include "kintsugi/program/halo.h"

#include <algorithm>

#include "kintsugi/tensor/dims.h"

namespace kintsugi::program {
namespace {

using tensor::DimIndex;
using tensor::Segment;

// Positions [first, first + count) of a block that are consecutive in the value.
struct Stretch {
  int64_t local = 0, global = 0, count = 0;
};

std::vector<Stretch> stretches_of(const DimIndex& index) {
  std::vector<Stretch> list;
  int64_t local = 0;
  for (const Segment& s : index.segments()) {
    if (s.global >= 0) list.push_back({local, s.global, s.count});
    local += s.count;
  }
  return list;
}

// What two blocks have in common: its position in the first and in the second, ordered by the second.
struct Common {
  int64_t a = 0, b = 0, count = 0;
};

std::vector<Common> common(const DimIndex& a, const DimIndex& b) {
  std::vector<Common> list;
  for (const Stretch& y : stretches_of(b))
    for (const Stretch& x : stretches_of(a)) {
      const int64_t from = std::max(x.global, y.global), until = std::min(x.global + x.count, y.global + y.count);
      if (from < until) list.push_back({x.local + from - x.global, y.local + from - y.global, until - from});
    }
  std::ranges::sort(list, {}, &Common::b);
  return list;
}

// The blocks of a rank before and after the exchange.
struct Blocks {
  DimIndex before, after;
};

Blocks blocks_of(const mesh::Mesh& mesh, const Cuts& cuts, int rank) {
  DimIndex plain = mesh::local_index(mesh, cuts.dim, cuts.length, cuts.factors, rank),
           halo = mesh::local_index(mesh, cuts.dim, cuts.length, cuts.factors, rank, &*cuts.halo);
  if (cuts.halo->adds) return {std::move(halo), std::move(plain)};
  return {std::move(plain), std::move(halo)};
}

// Number of rows of `source` that a rank needs and does not have itself, in the order of its positions.
int64_t count_of(const std::vector<Common>& list) {
  int64_t rows = 0;
  for (const Common& c : list) rows += c.count;
  return rows;
}

// Converts a list of disjoint (position, source, count) to an index of `length` positions.
DimIndex index_of(std::vector<Common> list, int64_t length, int64_t sources) {
  std::ranges::sort(list, {}, &Common::b);
  std::vector<Segment> segments;
  int64_t at = 0;
  for (const Common& c : list) {
    if (c.b > at) segments.push_back({-1, c.b - at});
    const bool follows =
        !segments.empty() && segments.back().global >= 0 && segments.back().global + segments.back().count == c.a;
    if (follows) {
      segments.back().count += c.count;
    } else {
      segments.push_back({c.a, c.count});
    }
    at = c.b + c.count;
  }
  if (at < length) segments.push_back({-1, length - at});
  return {std::move(segments), sources};
}

}  // namespace

HaloRows halo_rows(const mesh::Mesh& mesh, const Cuts& cuts, int rank) {
  const std::vector<int> group = mesh.group(rank, cuts.factors);
  const Blocks own = blocks_of(mesh, cuts, rank);
  HaloRows rows;
  std::vector<Common> packed, placed;  // placed: (row of [block, received], position after the exchange)
  int64_t sent = 0, received = 0;
  const int64_t block = own.before.local();
  for (size_t place = 0; place < group.size(); ++place) {
    if (group[place] == rank) {
      for (const Common& c : common(own.before, own.after)) placed.push_back(c);
      continue;
    }
    const Blocks other = blocks_of(mesh, cuts, group[place]);
    const std::vector<Common> to = common(own.before, other.after), from = common(other.before, own.after);
    if (const int64_t n = count_of(to); n > 0) {
      rows.sent.push_back({static_cast<int>(place), sent, n});
      for (const Common& c : to) {
        packed.push_back({c.a, sent, c.count});
        sent += c.count;
      }
    }
    if (const int64_t n = count_of(from); n > 0) {
      rows.received.push_back({static_cast<int>(place), received, n});
      for (const Common& c : from) {
        placed.push_back({block + received, c.b, c.count});
        received += c.count;
      }
    }
  }
  rows.packed = index_of(std::move(packed), sent, block);
  if (cuts.halo->adds) {
    for (Common& c : placed) std::swap(c.a, c.b);
    rows.placed = index_of(std::move(placed), block + received, own.after.local());
  } else {
    rows.placed = index_of(std::move(placed), own.after.local(), block + received);
  }
  return rows;
}

HaloSizes halo_sizes(const mesh::Mesh& mesh, const Cuts& cuts) {
  HaloSizes sizes;
  for (const int rank : mesh.group(0, cuts.factors)) {
    const HaloRows rows = halo_rows(mesh, cuts, rank);
    sizes.sent = std::max(sizes.sent, rows.packed.local());
    sizes.messages = std::max(sizes.messages, std::ssize(rows.sent) + std::ssize(rows.received));
    if (!rows.received.empty())
      sizes.received = std::max(sizes.received, rows.received.back().first + rows.received.back().rows);
  }
  return sizes;
}

bool is_plain(const mesh::Mesh& mesh, const Cuts& cuts) {
  return std::ranges::all_of(mesh.group(0, cuts.factors), [&](int rank) {
    const Blocks b = blocks_of(mesh, cuts, rank);
    return b.before.segments() == b.after.segments();
  });
}

bool packs_halo(const Program& p, const Instruction& i) {
  return i.kind == Kind::compute && i.cuts.exchanges && p.buffer(i.outs[0]).type.shape.has(tensor::kHalo);
}

tensor::Shape packed_shape(const tensor::Shape& block, std::string_view dim, int64_t rows) {
  std::vector<tensor::Dim> dims = {{std::string(tensor::kHalo), rows}};
  for (const tensor::Dim& d : block)
    if (d.name != dim) dims.push_back(d);
  return tensor::Shape(std::move(dims));
}

}  // namespace kintsugi::program
