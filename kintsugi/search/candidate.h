// The variables of a search: the layout of a run on the devices, its schedule and its micro-batches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/axes.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::search {

// The sizes of the mesh axes, in the order of config::axes().
struct AxisSizes {
  static constexpr size_t kMost = 8;
  std::array<int32_t, kMost> list = {1, 1, 1, 1, 1, 1, 1, 1};

  auto operator<=>(const AxisSizes&) const = default;

  // sizes.at<&config::Parallel::data>()
  template <int64_t config::Parallel::*Axis>
  int32_t at() const {
    return list[position<Axis>()];
  }
  template <int64_t config::Parallel::*Axis>
  void set(int32_t size) {
    list[position<Axis>()] = size;
  }

 private:
  template <int64_t config::Parallel::*Axis>
  static size_t position() {
    static const auto kAt = static_cast<size_t>(&config::axis_of(Axis) - config::axes().data());
    return kAt;
  }
};
AxisSizes sizes_of(const config::Parallel& parallel);

// Values of the keys of the same names. ZeRO shards over data, expert and context together; tensor also splits the
// sequence.
struct Candidate {
  AxisSizes sizes = {};
  int32_t zero = 0;
  std::string_view schedule = "1f1b";
  int32_t chunks = 1;
  int32_t micro_batch = 1;
  config::Recomputed recompute = config::Recomputed::nothing;
  config::Offloaded offload = {};

  int32_t data() const { return sizes.at<&config::Parallel::data>(); }
  int32_t tensor() const { return sizes.at<&config::Parallel::tensor>(); }
  int32_t context() const { return sizes.at<&config::Parallel::context>(); }
  int32_t space() const { return sizes.at<&config::Parallel::space>(); }
  int32_t expert() const { return sizes.at<&config::Parallel::expert>(); }
  int32_t pipe() const { return sizes.at<&config::Parallel::pipe>(); }
  int64_t data_ranks() const;  // among which the samples of a step are divided
  int64_t shards() const { return int64_t{data()} * expert() * context(); }  // of a state that ZeRO shards
};

struct Space {
  int64_t devices = 1;
  bool offload = false;  // each layout is followed by its kOffloads variants with offload to files
};
constexpr size_t kOffloads = 3;

// Every candidate that the numbers of the settings permit: the axes multiply to the devices, and each fits the run
// (config::Axis::fits); data ranks and micro_batch divide the batch; the schedule supports the micro-batches and has a
// layer for each chunk. The model may still reject one.
std::vector<Candidate> candidates(const config::Settings& settings, const Space& space);

// The settings with this layout. Other keys are unchanged, except for rules and orders that would contradict it.
config::Settings settings_of(const config::Settings& settings, const Candidate& candidate);

int64_t micro_batches(const config::Settings& settings, const Candidate& candidate);

// "data 4, tensor 2, pipe 2 interleaved x2, zero 1, micro_batch 2, recompute full": values other than defaults.
std::string in_words(const Candidate& candidate);

// The lines of [train] and [parallel], for pasting.
std::string as_toml(const config::Settings& settings, const Candidate& candidate);

}  // namespace kintsugi::search
