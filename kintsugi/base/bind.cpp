#include "kintsugi/base/bind.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace kintsugi::base {
namespace {

int topology(int core, const char* what) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", core, what));
  int number = 0;
  return file >> number ? number : 0;
}

}  // namespace

std::vector<int> cores_of_process() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return {};
  struct Core {
    int thread, package, core, number;
    auto operator<=>(const Core&) const = default;
  };
  std::map<std::pair<int, int>, int> threads;
  std::vector<Core> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &mine)) continue;
    const int package = topology(i, "physical_package_id"), core = topology(i, "core_id");
    cores.push_back({threads[{package, core}]++, package, core, i});
  }
  std::sort(cores.begin(), cores.end());
  std::vector<int> numbers;
  for (const Core& c : cores) numbers.push_back(c.number);
  return numbers;
}

void bind_thread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace kintsugi::base
