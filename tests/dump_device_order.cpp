// dump_device_order FILE: the work submitted to the emulated device in a step, in order: for each layout in
// device_layouts.h, and some with offload, the kernels and copies of each rank's stream, and the number of launches,
// copies, event records and waits of all streams. tests/compare_programs.sh compares two versions of the project.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "kintsugi/device/emulated/emulated.h"
#include "tests/device_layouts.h"

namespace {

using namespace kintsugi;

std::string rank_of(const std::vector<std::string>& stream) {
  for (const std::string& what : stream)
    if (const size_t at = what.find(", rank "); at != what.npos) return what.substr(at + 2, what.size() - at - 3);
  return "";
}

void write(std::FILE* file, const std::string& name, const config::Settings& s) {
  train::LayoutRun run(s);
  device::emulate::start_log();
  run.step(0, 1e-2, [&](int64_t m, auto& batch) { tests::draw_batch(s, 0, m, batch); });
  run.loss();
  std::map<std::string, std::string> ranks;
  std::map<std::string, size_t> counts = {{"launch", 0}, {"a copy", 0}, {"record", 0}, {"wait", 0}};
  for (const std::vector<std::string>& stream : device::emulate::take_log()) {
    const std::string rank = rank_of(stream);
    for (const std::string& what : stream) {
      if (counts.contains(what)) ++counts[what];
      if (!rank.empty() && what != "record" && what != "wait") ranks[rank] += fmt::format("  {}\n", what);
    }
  }
  fmt::print(file, "{}\n", name);
  for (const auto& [what, count] : counts) fmt::print(file, "  # {}: {}\n", what, count);
  for (const auto& [rank, text] : ranks) fmt::print(file, " {}\n{}", rank, text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: dump_device_order FILE\n");
    return 2;
  }
  std::FILE* file = std::fopen(argv[1], "w");
  if (!file) {
    fmt::print(stderr, "cannot write {}\n", argv[1]);
    return 1;
  }
  std::vector<tests::DeviceLayout> layouts = tests::device_layouts();
  for (const char* what : {"optimizer", "activations"})
    layouts.push_back({"gpt", "fp32", fmt::format("offload={}", what)});
  for (const tests::DeviceLayout& l : layouts)
    write(file, fmt::format("{} {} {}", l.family, l.dtype, l.layout), tests::settings_of(l));
  std::fclose(file);
  fmt::print("{} layouts\n", layouts.size());
  return 0;
}
