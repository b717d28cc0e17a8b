// The variables of a search: the layout of a run on the devices, its schedule and its micro-batches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/choices.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::search {

// Values of the keys of the same names. ZeRO shards over data and context together; tensor also splits the sequence.
struct Candidate {
  int32_t data = 1, tensor = 1, context = 1, pipe = 1;
  int32_t zero = 0;
  std::string_view schedule = "1f1b";
  int32_t chunks = 1;
  int32_t micro_batch = 1;
  config::Recomputed recompute = config::Recomputed::nothing;
  config::Offloaded offload = {};

  int64_t shards() const { return int64_t{data} * context; }  // of a state that ZeRO shards
};

struct Space {
  int64_t devices = 1;
  bool offload = false;  // each layout is followed by its kOffloads variants with offload to files
};
constexpr size_t kOffloads = 3;

// Every candidate that the numbers of the settings permit: the axes multiply to the devices; data and micro_batch
// divide the batch; the schedule supports the micro-batches and has a layer for each chunk. The model may still reject
// one.
std::vector<Candidate> candidates(const config::Settings& settings, const Space& space);

// The settings with this layout. Other keys are unchanged, except for rules and orders that would contradict it.
config::Settings settings_of(const config::Settings& settings, const Candidate& candidate);

int64_t micro_batches(const config::Settings& settings, const Candidate& candidate);

// "data 4, tensor 2, pipe 2 interleaved x2, zero 1, micro_batch 2, recompute full": values other than defaults.
std::string in_words(const Candidate& candidate);

// The lines of [train] and [parallel], for pasting.
std::string as_toml(const Candidate& candidate);

}  // namespace kintsugi::search
