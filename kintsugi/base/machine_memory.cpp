#include "kintsugi/base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

namespace kintsugi::base {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The smaller of two limits, where 0 is none.
int64_t smaller(int64_t a, int64_t b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

// Parses a limit as the kernel writes it; 0 for "max" and for values that no machine has.
int64_t parse_limit(std::string_view text) {
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && bytes > 0 && bytes < (int64_t{1} << 60) ? bytes : 0;
}

int64_t least_above(const std::filesystem::path& mount, std::string_view group, const char* file) {
  std::filesystem::path path = mount / std::filesystem::path(group).relative_path();
  int64_t least = 0;
  for (;; path = path.parent_path()) {
    least = smaller(least, parse_limit(content_of(path / file)));
    if (path == mount || path == path.parent_path()) return least;
  }
}

}  // namespace

int64_t group_limit(const std::filesystem::path& root, std::string_view lines) {
  int64_t least = 0;
  for (std::istringstream in{std::string(lines)}; in;) {
    std::string line;
    std::getline(in, line);
    const size_t a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    const std::string controllers = "," + line.substr(a + 1, b - a - 1) + ",", group = line.substr(b + 1);
    if (controllers == ",,") least = smaller(least, least_above(root, group, "memory.max"));
    if (controllers.find(",memory,") != std::string::npos)
      least = smaller(least, least_above(root / "memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

MachineMemory machine_memory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return {.machine = pages > 0 && page > 0 ? pages * page : 0,
          .group = group_limit("/sys/fs/cgroup", content_of("/proc/self/cgroup"))};
}

}  // namespace kintsugi::base
