// What is left of many logits: the k largest, and the one whose score is the largest (likely.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "kintsugi/kernels/cpu/likely.h"

namespace kintsugi::kernels::cpu {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// The largest score of those that were considered; of equal ones the first.
class Winner {
 public:
  // `first`: the most likely.
  Winner(const Logits& logits, int64_t first, double scale)
      : logits_(logits), top_(logits[first]), scale_(scale), found_(first) {}

  // `word`: its random number, u = (word + 1/2) / 2^32. What is added to a logit is -log(-log u).
  void consider(int64_t i, uint32_t word) {
    const double logit = (logits_[i] - top_) * scale_;
    if (!(logit + most_of(word) > best_)) return;
    const double score = logit - std::log(-std::log((word + 0.5) * 0x1p-32));
    if (score > best_) best_ = score, found_ = i;
  }
  int64_t found() const { return found_; }
  double best() const { return best_; }

 private:
  // -log(1 - u) is more than -log(-log u), and this more than that.
  static double most_of(uint32_t word) { return std::numbers::ln2 * (1 + std::countl_zero(~word)); }

  const Logits& logits_;
  double top_, scale_, best_ = -std::numeric_limits<double>::infinity();
  int64_t found_;
};

// The k best, and no others for long: when there are twice as many, those behind are dropped.
class Largest {
 public:
  explicit Largest(int64_t k) : k_(static_cast<size_t>(k)) { found_.reserve(2 * k_); }

  float least() const { return least_; }  // of what need not be considered: what is not above it
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

}  // namespace kintsugi::kernels::cpu
