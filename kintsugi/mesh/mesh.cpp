#include "kintsugi/mesh/mesh.h"

#include <fmt/format.h>

#include <algorithm>

namespace kintsugi::mesh {

Mesh::Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {
  for (size_t i = 0; i < axes_.size(); ++i) {
    const size_t first = factors_.size();
    int64_t left = axes_[i].size;
    for (int64_t p = 2; p <= left; ++p)
      for (; left % p == 0; left /= p)
        factors_.push_back({fmt::format("{}.{}", axes_[i].name, factors_.size() - first), static_cast<int>(i), p});
    if (factors_.size() == first + 1) factors_.back().name = axes_[i].name;
  }
  int64_t stride = 1;
  for (auto f = factors_.rbegin(); f != factors_.rend(); ++f) {
    f->stride = stride;
    stride *= f->size;
  }
  for (size_t f = 0; f < factors_.size(); ++f)
    if (axes_[static_cast<size_t>(factors_[f].axis)].cuts_layers) stage_factors_.push_back(static_cast<Factor>(f));
}

int64_t Mesh::ranks() const {
  int64_t n = 1;
  for (const Axis& a : axes_) n *= a.size;
  return n;
}

int64_t Mesh::size(std::string_view axis) const {
  for (const Axis& a : axes_)
    if (a.name == axis) return a.size;
  return 1;
}

std::vector<Factor> Mesh::expand(std::span<const std::string> names) const {
  std::vector<Factor> list;
  for (const std::string& name : names)
    for (size_t f = 0; f < factors_.size(); ++f)
      if (factors_[f].name == name || axes_[static_cast<size_t>(factors_[f].axis)].name == name)
        list.push_back(static_cast<Factor>(f));
  return list;
}

bool Mesh::has(std::string_view name) const {
  return std::any_of(axes_.begin(), axes_.end(), [&](const Axis& a) { return a.name == name; }) ||
         std::any_of(factors_.begin(), factors_.end(), [&](const FactorInfo& f) { return f.name == name; });
}

int64_t Mesh::count(std::span<const Factor> factors) const {
  int64_t n = 1;
  for (Factor f : factors) n *= factor(f).size;
  return n;
}

int64_t Mesh::coordinate(int rank, Factor f) const {
  return rank / factor(f).stride % factor(f).size;
}

int64_t Mesh::position(int rank, std::span<const Factor> factors) const {
  int64_t at = 0;
  for (Factor f : factors) at = at * factor(f).size + coordinate(rank, f);
  return at;
}

std::vector<int> Mesh::group(int rank, std::span<const Factor> factors) const {
  int64_t first = rank;
  for (Factor f : factors) first -= coordinate(rank, f) * factor(f).stride;
  std::vector<int> ranks = {static_cast<int>(first)};
  for (Factor f : factors) {
    std::vector<int> next;
    for (int r : ranks)
      for (int64_t c = 0; c < factor(f).size; ++c) next.push_back(r + static_cast<int>(c * factor(f).stride));
    ranks = std::move(next);
  }
  return ranks;
}

tensor::Cut Mesh::cut(std::string_view dim, Factor f) const {
  const std::vector<std::string>& zigzag = axes_[static_cast<size_t>(factor(f).axis)].zigzag;
  return {factor(f).size, std::find(zigzag.begin(), zigzag.end(), dim) != zigzag.end()};
}

std::string Mesh::name_of(std::span<const Factor> factors) const {
  std::string text;
  for (size_t i = 0; i < factors.size();) {
    const std::string& axis = axes_[static_cast<size_t>(factor(factors[i]).axis)].name;
    const std::vector<Factor> all = expand(std::vector<std::string>{axis});
    const bool whole = factors.size() - i >= all.size() &&
                       std::equal(all.begin(), all.end(), factors.begin() + static_cast<std::ptrdiff_t>(i));
    text += (text.empty() ? "" : " ") + (whole ? axis : factor(factors[i]).name);
    i += whole ? all.size() : 1;
  }
  return text;
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const Axis& a : mesh.axes())
    if (a.size > 1) text += fmt::format("{}{}={}", text.empty() ? "" : " ", a.name, a.size);
  return text.empty() ? "one rank" : text;
}

}  // namespace kintsugi::mesh
