#include "kintsugi/kernels/host/bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

namespace kintsugi::kernels::host {

double measure_memory_bandwidth(base::ThreadTeam& team, int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kPiece = int64_t{512} << 10;
  std::vector<char> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes));
  std::vector<double> of_thread(static_cast<size_t>(team.size()), 0.0);
  team.run([&](int thread) {
    const base::Range part = base::share(bytes, thread, team.size(), kPiece);
    std::vector<double> rates;
    const Clock::time_point begin = Clock::now();
    // Cycles through buffers larger than the caches. The first round touches the pages.
    constexpr int kMostRounds = 5'000;  // if the clock stops or goes backwards
    const auto goes_on = [&](int round) {
      return round < 2 || (round < kMostRounds && Clock::now() - begin < std::chrono::milliseconds(50));
    };
    for (int round = 0; goes_on(round); ++round)
      for (int64_t at = part.begin; at + kPiece <= part.end; at += kPiece) {
        const Clock::time_point start = Clock::now();
        std::memcpy(to.data() + at, from.data() + at, static_cast<size_t>(kPiece));
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        if (round > 0 && seconds > 0) rates.push_back(2 * static_cast<double>(kPiece) / seconds);
      }
    if (rates.empty()) return;
    // The median excludes interference by other programs.
    const auto middle = rates.begin() + std::ssize(rates) / 2;
    std::nth_element(rates.begin(), middle, rates.end());
    of_thread[static_cast<size_t>(thread)] = *middle;
  });
  return std::accumulate(of_thread.begin(), of_thread.end(), 0.0);
}

}  // namespace kintsugi::kernels::host
