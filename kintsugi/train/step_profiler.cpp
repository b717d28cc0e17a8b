#include "kintsugi/train/step_profiler.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kintsugi/comm/texts_of_all.h"

namespace kintsugi::train {
namespace {

constexpr int kMostRanks = 32;  // in profile.json

// Selects ranks evenly spread over all, including rank 0.
bool is_shown(int rank, int ranks) {
  return ranks <= kMostRanks || rank == 0 || rank * kMostRanks / ranks != (rank - 1) * kMostRanks / ranks;
}

std::string as_text(const std::vector<int64_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
}

std::vector<int64_t> as_numbers(const std::string& text) {
  std::vector<int64_t> numbers(text.size() / sizeof(int64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), text.data(), numbers.size() * sizeof(int64_t));
  return numbers;
}

}  // namespace

StepProfiler::StepProfiler(run::Executor& executor, comm::Communicator& all, const ClockOffset& clock,
                           bool with_instructions)
    : executor_(executor),
      all_(all),
      clock_(clock),
      recorder_(executor.program(), program::Step::train, true),
      measure_(executor.program(), program::Step::train, executor.rank(), with_instructions) {}

StepProfiler::~StepProfiler() {
  executor_.recorder = nullptr;
}

void StepProfiler::begin() {
  executor_.recorder = &recorder_;
}

void StepProfiler::end() {
  executor_.recorder = nullptr;
  std::vector<std::vector<int64_t>> by_rank;
  for (const std::string& told :
       comm::texts_of_all(all_, as_text(profile::arrivals_of(measure_.started(), times(), clock_.offset))))
    by_rank.push_back(as_numbers(told));
  const profile::Arrivals arrivals(by_rank);
  waits_ =
      profile::waits_of(executor_.program(), times(), measure_.started(), arrivals, executor_.rank(), clock_.offset);
  measure_.add(times(), waits_);
}

std::string gather_profile(comm::Communicator& all, const profile::RankProfile& mine, int64_t step,
                           const ClockOffset& clock) {
  std::array<int64_t, 1> error = {clock.error}, largest = {};
  all.wait(all.all_reduce(std::as_bytes(std::span(error)), std::as_writable_bytes(std::span(largest)),
                          tensor::DType::i64, comm::Reduction::max));
  std::vector<std::string> texts =
      comm::texts_on_rank_0(all, is_shown(all.rank(), all.size()) ? profile::to_json(mine) : std::string());
  if (all.rank() != 0) return "";
  std::erase(texts, "");
  return profile::to_json({.step = step, .ranks = all.size(), .clocks = 2e-9 * static_cast<double>(largest[0])}, texts);
}

}  // namespace kintsugi::train
