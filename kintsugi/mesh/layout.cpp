#include "kintsugi/mesh/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace kintsugi::mesh {

const Layout::Lists& Layout::none() {
  static const Lists lists;
  return lists;
}

const std::vector<Factor>& Layout::of(std::string_view dim) const {
  static const std::vector<Factor> none;
  for (const Split& s : splits())
    if (s.dim == dim) return s.factors;
  return none;
}

const Halo* Layout::halo(std::string_view dim) const {
  for (const Split& s : splits())
    if (s.dim == dim) return s.halo ? &*s.halo : nullptr;
  return nullptr;
}

bool Layout::has_halos() const {
  return std::any_of(splits().begin(), splits().end(), [](const Split& s) { return s.halo.has_value(); });
}

std::string_view Layout::dim_of(Factor f) const {
  for (const Split& s : splits())
    if (std::find(s.factors.begin(), s.factors.end(), f) != s.factors.end()) return s.dim;
  return {};
}

const Part* Layout::part(Factor f) const {
  for (const Part& p : partial())
    if (p.factor == f) return &p;
  return nullptr;
}

std::vector<Factor> Layout::partial_factors() const {
  std::vector<Factor> list;
  for (const Part& p : partial()) list.push_back(p.factor);
  return list;
}

void Layout::set(std::string_view dim, std::vector<Factor> factors, std::optional<Halo> halo) {
  const auto changed = std::make_shared<Lists>(lists());
  std::vector<Split>& splits = changed->splits;
  const auto at =
      std::lower_bound(splits.begin(), splits.end(), dim, [](const Split& s, std::string_view d) { return s.dim < d; });
  const bool there = at != splits.end() && at->dim == dim;
  if (factors.empty()) {
    if (there) splits.erase(at);
  } else if (there) {
    at->factors = std::move(factors);
    at->halo = halo;
  } else {
    splits.insert(at, {std::string(dim), std::move(factors), halo});
  }
  lists_ = changed;
}

void Layout::add(std::string_view dim, Factor f) {
  std::vector<Factor> factors = of(dim);
  factors.push_back(f);
  set(dim, std::move(factors));
}

void Layout::set_part(Factor f, Combiner c) {
  const auto changed = std::make_shared<Lists>(lists());
  std::vector<Part>& partial = changed->partial;
  const auto at =
      std::lower_bound(partial.begin(), partial.end(), f, [](const Part& p, Factor g) { return p.factor < g; });
  if (at != partial.end() && at->factor == f) {
    at->combiner = c;
  } else {
    partial.insert(at, {f, c});
  }
  lists_ = changed;
}

void Layout::remove_part(Factor f) {
  const auto changed = std::make_shared<Lists>(lists());
  std::erase_if(changed->partial, [f](const Part& p) { return p.factor == f; });
  lists_ = changed;
}

int64_t local_length(const Mesh& mesh, std::string_view dim, int64_t size, std::span<const Factor> factors,
                     const Halo* halo) {
  if (halo) return (local_length(mesh, dim, halo->outputs, factors) - 1) * halo->stride + halo->extent;
  for (Factor f : factors) size = tensor::length_after(size, mesh.cut(dim, f));
  return size;
}

tensor::Shape local_shape(const Mesh& mesh, const tensor::Shape& whole, const Layout& layout) {
  if (layout.splits().empty()) return whole;
  std::vector<tensor::Dim> dims = whole.dims();
  for (tensor::Dim& d : dims) d.size = local_length(mesh, d.name, d.size, layout.of(d.name), layout.halo(d.name));
  return tensor::Shape(std::move(dims));
}

namespace {

// Local index of a block with halo: the positions that the windows of this rank's own outputs reach; the rest is
// padding.
tensor::DimIndex halo_index(const Mesh& mesh, std::string_view dim, int64_t size, std::span<const Factor> factors,
                            int rank, const Halo& halo) {
  int64_t share = halo.outputs, first = 0;
  for (Factor f : factors) {
    share = tensor::length_after(share, mesh.cut(dim, f));
    first += mesh.coordinate(rank, f) * share;
  }
  const int64_t begin = first * halo.stride - halo.low, length = (share - 1) * halo.stride + halo.extent;
  const tensor::Segment own = local_index(mesh, dim, halo.outputs, factors, rank).segments().front();
  const int64_t reach = own.global < 0 ? 0 : (own.count - 1) * halo.stride + halo.extent;
  const int64_t from = std::clamp<int64_t>(begin, 0, size), until = std::clamp<int64_t>(begin + reach, from, size);
  if (from == until) return {{{-1, length}}, size};
  std::vector<tensor::Segment> segments;
  if (from > begin) segments.push_back({-1, from - begin});
  segments.push_back({from, until - from});
  if (until < begin + length) segments.push_back({-1, begin + length - until});
  return {std::move(segments), size};
}

}  // namespace

tensor::DimIndex local_index(const Mesh& mesh, std::string_view dim, int64_t size, std::span<const Factor> factors,
                             int rank, const Halo* halo) {
  if (halo) return halo_index(mesh, dim, size, factors, rank, *halo);
  std::vector<tensor::Segment> segments = {{0, size}};
  for (Factor f : factors) segments = tensor::cut_segments(segments, mesh.cut(dim, f), mesh.coordinate(rank, f));
  return {std::move(segments), size};
}

bool is_padded(const Mesh& mesh, std::string_view dim, int64_t size, std::span<const Factor> factors) {
  return local_length(mesh, dim, size, factors) * mesh.count(factors) != size;
}

std::string to_string(const Mesh& mesh, const Layout& layout) {
  std::string text;
  for (const Split& s : layout.splits()) {
    text += (text.empty() ? "" : ", ") + s.dim + "/" + mesh.name_of(s.factors);
    if (s.halo)
      text += fmt::format(" with {}halo {} stride {}", s.halo->adds ? "partial " : "", s.halo->extent, s.halo->stride);
  }
  for (const Part& p : layout.partial())
    text += (text.empty() ? "" : ", ") + std::string(name_of(p.combiner)) + " over " +
            mesh.name_of(std::vector<Factor>{p.factor});
  return text.empty() ? "whole" : text;
}

}  // namespace kintsugi::mesh
