#include "kintsugi/base/processor.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

namespace kintsugi::base {
namespace {

// The system's name of an instruction set, and ours.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kUnits = {{
    {"sse4_2", "sse4.2"},
    {"avx", "avx"},
    {"f16c", "f16c"},
    {"fma", "fma"},
    {"avx2", "avx2"},
    {"avx_vnni", "avx_vnni"},
    {"avx512f", "avx512f"},
    {"avx512bw", "avx512bw"},
    {"avx512_vnni", "avx512_vnni"},
    {"avx512_bf16", "avx512_bf16"},
    {"avx512_fp16", "avx512_fp16"},
    {"amx_tile", "amx_tile"},
    {"amx_int8", "amx_int8"},
    {"amx_bf16", "amx_bf16"},
    {"amx_fp16", "amx_fp16"},
    {"asimd", "neon"},
    {"asimdhp", "neon_fp16"},
    {"bf16", "neon_bf16"},
    {"i8mm", "neon_i8mm"},
    {"sve", "sve"},
}};

// The value of the first line "`name` : value", or "".
std::string_view field(std::string_view cpuinfo, std::string_view name) {
  while (!cpuinfo.empty()) {
    const size_t end = std::min(cpuinfo.find('\n'), cpuinfo.size());
    std::string_view line = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(std::min(end + 1, cpuinfo.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with(name)) continue;
    if (line.substr(0, colon).find_first_not_of(" \t", name.size()) != std::string_view::npos) continue;
    line.remove_prefix(std::min(line.find_first_not_of(" \t", colon + 1), line.size()));
    return line;
  }
  return {};
}

std::string content_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  return content.str();
}

}  // namespace

Processor parse_cpuinfo(std::string_view cpuinfo) {
  Processor processor;
  processor.name = field(cpuinfo, "model name");
  std::string_view flags = field(cpuinfo, "flags");       // x86
  if (flags.empty()) flags = field(cpuinfo, "Features");  // Arm
  const std::string padded = " " + std::string(flags) + " ";
  for (const auto& [theirs, ours] : kUnits)
    if (padded.find(" " + std::string(theirs) + " ") != std::string::npos) processor.units.emplace_back(ours);
  return processor;
}

Processor this_processor() {
  return parse_cpuinfo(content_of("/proc/cpuinfo"));
}

int64_t parse_cpu_quota(std::string_view cpu_max) {
  std::istringstream words{std::string(cpu_max)};
  double quota = 0, period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return 0;  // "max": no limit
  const double cores = std::min(quota / period, 1e6);
  return std::max<int64_t>(1, static_cast<int64_t>(cores + 0.999));
}

int64_t usable_cores() {
  int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) == 0) cores = std::max(1, CPU_COUNT(&mine));
  const int64_t quota = parse_cpu_quota(content_of("/sys/fs/cgroup/cpu.max"));
  return quota > 0 ? std::min(cores, quota) : cores;
}

}  // namespace kintsugi::base
