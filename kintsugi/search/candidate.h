// What a search varies of a run: its layout on the devices, and how often and when each of them computes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/choices.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::search {

// The values of the keys of the same names. ZeRO splits over data and context together; with tensor, the sequence is
// split too.
struct Candidate {
  int32_t data = 1, tensor = 1, context = 1, pipe = 1;
  int32_t zero = 0;
  std::string_view schedule = "1f1b";
  int32_t chunks = 1;
  int32_t micro_batch = 1;
  config::Recomputed recompute = config::Recomputed::nothing;
  config::Offloaded offload = {};

  int64_t shards() const { return int64_t{data} * context; }  // of a state that ZeRO splits
};

struct Space {
  int64_t devices = 1;
  bool offload = false;  // each layout is followed by the same with offload to files, in kOffloads ways
};
constexpr size_t kOffloads = 3;

// Every candidate that the numbers of the settings allow: the axes multiply to the devices; data and micro_batch divide
// the batch; the schedule allows the micro-batches and has a layer for each chunk. The model may refuse one still.
std::vector<Candidate> candidates(const config::Settings& settings, const Space& space);

// The run in this layout. Other keys are as given, but for rules and orders that would contradict it.
config::Settings settings_of(const config::Settings& settings, const Candidate& candidate);

int64_t micro_batches(const config::Settings& settings, const Candidate& candidate);

// "data 4, tensor 2, pipe 2 interleaved x2, zero 1, micro_batch 2, recompute full": what is not the default.
std::string in_words(const Candidate& candidate);

// The lines of [train] and [parallel] to paste.
std::string as_toml(const Candidate& candidate);

}  // namespace kintsugi::search
