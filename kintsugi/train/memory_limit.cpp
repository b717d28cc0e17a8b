#include "kintsugi/train/memory_limit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <sstream>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/together.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/train/build_program.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::train {

using config::Settings;
using program::Program;

namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int64_t smaller(int64_t a, int64_t b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

// A limit as the kernel writes it; "max", and what no machine has, is none.
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

std::string in_words(int64_t bytes) {
  return base::format_bytes(static_cast<uint64_t>(bytes));
}

std::string exactly(int64_t bytes) {
  return fmt::format("{} bytes ({})", base::group_digits(bytes), in_words(bytes));
}

int64_t most_of(const std::vector<Program>& stages) {
  int64_t most = 0;
  for (const Program& p : stages) most = std::max(most, p.bytes());
  return most;
}

// What may be changed, in the order of what it costs.
struct Lever {
  using Sets = std::vector<std::pair<std::string, std::string>>;
  std::function<Sets(Settings&)> turn;  // {}: there is nothing to turn
};

// Twice as many parts: of the ranks that hold copies of the model, where there are any, else on twice the ranks.
Lever::Sets twice(Settings& s, const char* key, int64_t config::Parallel::*axis) {
  config::Parallel& p = s.parallel;
  p.*axis *= 2;
  Lever::Sets sets = {{key, fmt::format("{}", p.*axis)}};
  if (p.data % 2 == 0) {
    p.data /= 2;
    sets.push_back({"parallel.data", fmt::format("{}", p.data)});
  } else {
    p.ranks *= 2;
    sets.push_back({"parallel.ranks", fmt::format("{}", p.ranks)});
  }
  return sets;
}

std::vector<Lever> levers() {
  const auto zero = [](int64_t stage) {
    return Lever{[stage](Settings& s) -> Lever::Sets {
      if (s.parallel.data == 1 || s.parallel.zero >= stage) return {};
      s.parallel.zero = stage;
      return {{"parallel.zero", fmt::format("{}", stage)}};
    }};
  };
  const auto recompute = [](const char* what) {
    return Lever{[what](Settings& s) -> Lever::Sets {
      const config::Parallel& p = s.parallel;
      const bool less = p.recompute == "none" || (p.recompute == "selective" && std::string_view(what) == "full") ||
                        (p.recompute == what && p.recompute_every > 1);
      if (!less) return {};
      Lever::Sets sets = {{"parallel.recompute", fmt::format("\"{}\"", what)}};
      if (p.recompute_every > 1) sets.push_back({"parallel.recompute_every", "1"});
      s.parallel.recompute = what;
      s.parallel.recompute_every = 1;
      return sets;
    }};
  };
  return {
      zero(1),  // sends as much as before
      {[](Settings& s) -> Lever::Sets {
        if (s.parallel.tensor == 1 || s.parallel.sequence_parallel) return {};
        s.parallel.sequence_parallel = true;
        return {{"parallel.sequence_parallel", "true"}};
      }},
      {[](Settings& s) -> Lever::Sets {
        if (s.parallel.tensor == 1 || !s.parallel.keep_logits) return {};
        s.parallel.keep_logits = false;
        return {{"parallel.keep_logits", "false"}};
      }},
      {[](Settings& s) -> Lever::Sets {
        if (s.train.micro_batch % 2 != 0 || s.train.reproducible > 0) return {};
        s.train.micro_batch /= 2;
        return {{"train.micro_batch", fmt::format("{}", s.train.micro_batch)}};
      }},
      recompute("selective"),
      zero(2),
      recompute("full"),
      zero(3),
      {[](Settings& s) { return twice(s, "parallel.tensor", &config::Parallel::tensor); }},
      {[](Settings& s) -> Lever::Sets {
        if (!s.parallel.stages.empty()) return {};
        return twice(s, "parallel.pipe", &config::Parallel::pipe);
      }},
      {[](Settings& s) -> Lever::Sets {
        if (s.parallel.offload != "none" && s.parallel.offload != "activations") return {};
        s.parallel.offload = s.parallel.offload == "none" ? "optimizer" : "all";
        return {{"parallel.offload", fmt::format("\"{}\"", s.parallel.offload)}};
      }},
  };
}

// What the rank that needs most would need; nothing where the model cannot be trained so.
std::optional<int64_t> bytes_of(const Settings& s) {
  try {
    return most_of(build_programs(s, *kernels_of(s)));
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

void find_changes(const Settings& settings, int64_t bytes, Excess& e) {
  const auto may_use = [&](const Settings& s) {
    const auto limit = memory_limit(s);
    return settings.parallel.memory_per_rank.empty() && s.parallel.ranks != settings.parallel.ranks && limit
               ? std::min(limit->bytes, e.limit.bytes)
               : e.limit.bytes;
  };
  Settings all = settings;
  Change together;
  int64_t left = bytes;
  for (const Lever& lever : levers()) {
    Settings s = settings;
    Lever::Sets sets = lever.turn(s);
    if (sets.empty()) continue;
    if (const auto needs = bytes_of(s); needs && *needs <= may_use(s))
      e.fitting.push_back({sets, bytes - *needs, true});
  }
  if (!e.fitting.empty()) return;
  for (const Lever& lever : levers()) {
    Settings s = all;
    const Lever::Sets sets = lever.turn(s);
    const auto needs = sets.empty() ? std::nullopt : bytes_of(s);
    if (!needs || *needs >= left) continue;
    all = s;
    left = *needs;
    for (const auto& set : sets) {
      std::erase_if(together.sets, [&](const auto& known) { return known.first == set.first; });
      together.sets.push_back(set);
    }
    if (s.parallel.data == 1)
      std::erase_if(together.sets, [](const auto& set) { return set.first == "parallel.zero"; });
    if (left > may_use(s)) continue;
    together.saves = bytes - left;
    together.fits = true;
    e.together = together;
    return;
  }
}

std::string in_words(const Change& change) {
  std::vector<std::string> sets;
  for (const auto& [key, value] : change.sets) sets.push_back(fmt::format("{} = {}", key, value));
  return fmt::format("{} saves {}", fmt::join(sets, ", "), exactly(change.saves));
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

std::optional<MemoryLimit> memory_limit(const Settings& s, const MachineMemory& machine, int64_t ranks) {
  if (!s.parallel.memory_per_rank.empty()) {
    const auto bytes = config::memory_size(s.parallel.memory_per_rank);
    base::require(bytes.has_value(), "memory", "\"{}\" was not checked", s.parallel.memory_per_rank);
    return MemoryLimit{*bytes, "[parallel] memory_per_rank"};
  }
  const int64_t all = smaller(machine.machine, machine.group);
  if (all == 0) return std::nullopt;
  const std::string of =
      fmt::format("{} {}", all == machine.machine ? "this machine's" : "the control group's", in_words(all));
  return MemoryLimit{all / ranks, ranks == 1 ? of : fmt::format("{} over {} ranks", of, ranks)};
}

std::optional<MemoryLimit> memory_limit(const Settings& s) {
  const auto mpi = launched();
  const bool apart = s.parallel.transport != "threads" && mpi && mpi->ranks > 1;
  return memory_limit(s, machine_memory(), apart ? mpi->local : s.parallel.ranks);
}

std::optional<Excess> excess(const Settings& s, const std::vector<Program>& stages, const MemoryLimit& limit,
                             int stage) {
  if (stage < 0)
    stage =
        static_cast<int>(std::max_element(stages.begin(), stages.end(),
                                          [](const Program& a, const Program& b) { return a.bytes() < b.bytes(); }) -
                         stages.begin());
  if (stages[static_cast<size_t>(stage)].bytes() <= limit.bytes) return std::nullopt;
  const Program& p = stages[static_cast<size_t>(stage)];
  Excess e = {.stage = stage,
              .stages = static_cast<int>(stages.size()),
              .bytes = p.bytes(),
              .limit = limit,
              .largest = {},
              .fitting = {},
              .together = {}};
  while (program::stage_of(p.mesh, e.rank) != stage) ++e.rank;
  const program::MemoryTable t = program::memory_table(p);
  e.largest = {{"weights", t.weights},         {"gradients", t.gradients},         {"optimizer", t.optimizer},
               {"activations", t.activations}, {"communication", t.communication}, {"workspace", t.workspace}};
  std::stable_sort(e.largest.begin(), e.largest.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  e.largest.resize(3);
  find_changes(s, most_of(stages), e);
  return e;
}

std::vector<std::string> describe(const Excess& e) {
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : e.largest) parts.push_back(fmt::format("{} {}", name, in_words(bytes)));
  std::vector<std::string> lines = {fmt::format("rank {}{} needs {} and may use {}, {}; most of it is {}", e.rank,
                                                e.stages > 1 ? fmt::format(" (stage {} of {})", e.stage, e.stages) : "",
                                                exactly(e.bytes), exactly(e.limit.bytes), e.limit.from,
                                                fmt::join(parts, ", "))};
  for (const Change& change : e.fitting) lines.push_back(in_words(change) + " and fits");
  if (e.together) {
    lines.push_back("no change alone is enough; together they are: " + in_words(*e.together) + " and fits");
  } else if (e.fitting.empty()) {
    lines.push_back("nothing that could be changed here makes it fit; it needs more ranks or more memory");
  }
  return lines;
}

std::string one_line(const Excess& e) {
  return fmt::format("{}", fmt::join(describe(e), "; "));
}

void require_memory(const Settings& s, const std::vector<Program>& stages, comm::Communicator& all) {
  // Machines may differ. The rank that has least room says it, the first of its like.
  const auto limit = memory_limit(s);
  const int stage = program::stage_of(stages[0].mesh, all.rank());
  const int64_t mine = limit ? stages[static_cast<size_t>(stage)].bytes() - limit->bytes : 0;
  std::vector<int64_t> every(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  const auto worst = std::max_element(every.begin(), every.end());
  if (*worst <= 0) return;
  const int from = static_cast<int>(worst - every.begin());
  std::string text;
  if (from == all.rank()) text = one_line(*excess(s, stages, *limit, stage));
  std::vector<int64_t> size = {static_cast<int64_t>(text.size())};
  all.wait(all.broadcast(std::as_writable_bytes(std::span(size)), from));
  text.resize(static_cast<size_t>(size[0]));
  all.wait(all.broadcast(std::as_writable_bytes(std::span(text)), from));
  throw checkpoint::SharedError("memory", "{}", text);
}

}  // namespace kintsugi::train
