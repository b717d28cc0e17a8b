// Reduces many logits to the k largest, or to the one with the maximum score (likely.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "kintsugi/kernels/host/likely.h"

namespace kintsugi::kernels::host {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// The maximum score considered; ties go to the first.
class Winner {
 public:
  // `first`: the most likely.
  Winner(const Logits& logits, int64_t first, double scale)
      : logits_(logits), top_(logits[first]), scale_(scale), found_(first) {}

  // `word`: its random number, u = (word + 1/2) / 2^32. Adds -log(-log u) to the logit.
  void consider(int64_t i, uint32_t word) {
    const double logit = (logits_[i] - top_) * scale_;
    if (!(logit + most_of(word) > best_)) return;
    const double score = logit - std::log(-std::log((word + 0.5) * 0x1p-32));
    if (score > best_) best_ = score, found_ = i;
  }
  int64_t found() const { return found_; }
  double best() const { return best_; }

 private:
  // Upper bounds: -log(-log u) <= -log(1 - u) <= this.
  static double most_of(uint32_t word) { return std::numbers::ln2 * (1 + std::countl_zero(~word)); }

  const Logits& logits_;
  double top_, scale_, best_ = -std::numeric_limits<double>::infinity();
  int64_t found_;
};

// Keeps the k best: drops the rest whenever there are twice as many.
class Largest {
 public:
  explicit Largest(int64_t k) : k_(static_cast<size_t>(k)) { found_.reserve(2 * k_); }

  float least() const { return least_; }  // candidates must exceed this
  void consider(int64_t i, float x) {
    if (!(x > least_)) return;
    found_.push_back({x, i});
    if (found_.size() == 2 * k_) drop();
  }
  std::vector<int64_t> sorted() {
    if (found_.size() > k_) drop();
    std::sort(found_.begin(), found_.end());
    std::vector<int64_t> places;
    for (const One& one : found_) places.push_back(one.at);
    return places;
  }

 private:
  struct One {
    float x;
    int64_t at;
    bool operator<(const One& other) const { return x != other.x ? x > other.x : at < other.at; }
  };
  void drop() {
    std::nth_element(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(k_ - 1), found_.end());
    least_ = found_[k_ - 1].x;
    found_.resize(k_);
  }

  size_t k_;
  float least_ = kNone;
  std::vector<One> found_;
};

}  // namespace kintsugi::kernels::host
