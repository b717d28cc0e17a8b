#include "kintsugi/comm/limits.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::comm {

void require_threads(int64_t ranks) {
  constexpr int64_t kMost = 1024;
  if (ranks < 1) throw base::UserError("comm", "{} ranks; at least 1 is needed", ranks);
  if (ranks > kMost)
    throw base::UserError("comm",
                          "{} ranks cannot be threads of one process, which has at most {}; start them as processes, "
                          "by mpirun or srun",
                          base::group_digits(ranks), base::group_digits(kMost));
}

std::chrono::milliseconds time_limit(double seconds) {
  constexpr double kLongest = 30 * 365.25 * 86400;
  return std::chrono::milliseconds(static_cast<int64_t>(1000 * std::clamp(seconds, 0.001, kLongest)));
}

}  // namespace kintsugi::comm
