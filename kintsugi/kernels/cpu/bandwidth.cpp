#include "kintsugi/kernels/cpu/bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

namespace kintsugi::kernels::cpu {

double measure_memory_bandwidth(base::ThreadTeam& team, int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  std::vector<char> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes));
  const auto copy = [&](int thread) {
    const base::Range part = base::share(bytes, thread, team.size(), 4096);
    std::memcpy(to.data() + part.begin, from.data() + part.begin, static_cast<size_t>(part.size()));
  };
  team.run(copy);  // the first touches the pages
  // The best of some: other programs on the machine disturb the others.
  double best = 0;
  const Clock::time_point begin = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    team.run(copy);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2 * static_cast<double>(bytes) / seconds);
  } while (Clock::now() - begin < std::chrono::milliseconds(50));
  return best;
}

}  // namespace kintsugi::kernels::cpu
