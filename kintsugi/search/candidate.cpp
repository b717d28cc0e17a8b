#include "kintsugi/search/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kintsugi/config/axes.h"
#include "kintsugi/plan/schedule.h"

namespace kintsugi::search {

using config::Offloaded;
using config::Recomputed;
using config::Settings;

namespace {

constexpr int64_t kLargestMicroBatch = 32;

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> list;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    list.push_back(d);
    if (d * d != n) list.push_back(n / d);
  }
  std::ranges::sort(list);
  return list;
}

// Samples per pass: powers of two, and the run's own.
std::vector<int64_t> micro_batch_sizes(const Settings& s, int64_t share) {
  std::vector<int64_t> list;
  for (int64_t n = 1; n <= kLargestMicroBatch; n *= 2) list.push_back(n);
  if (!std::ranges::count(list, s.train.micro_batch)) list.push_back(s.train.micro_batch);
  std::erase_if(list, [&](int64_t n) { return share % n != 0; });
  return list;
}

// Chunks of equal size, and powers of two.
std::vector<int64_t> chunk_counts(int64_t layers, int64_t pipe) {
  std::vector<int64_t> list;
  for (int64_t n = 2; n * pipe <= layers; ++n)
    if (layers % (n * pipe) == 0 || (n & (n - 1)) == 0) list.push_back(n);
  return list;
}

struct Timing {
  std::string_view schedule;
  int64_t chunks = 1;
};

// Only schedules that no other dominates in waiting time and memory.
std::vector<Timing> timings(const Settings& s, int64_t pipe, int64_t micro_batches) {
  if (pipe == 1) return {{"1f1b", 1}};
  std::vector<Timing> list = {{"1f1b", 1}, {"zero_bubble", 1}};
  if (micro_batches % pipe == 0)
    for (const int64_t n : chunk_counts(s.model.layers, pipe)) list.push_back({"interleaved", n});
  return list;
}

void add_layout(const Settings& s, const Space& space, const Candidate& axes, std::vector<Candidate>& list) {
  constexpr std::array<Offloaded, kOffloads + 1> all = {{{}, {true, false}, {false, true}, {true, true}}};
  const size_t offloads = space.offload ? all.size() : 1;
  for (const int64_t samples : micro_batch_sizes(s, s.train.global_batch / axes.data))
    for (const Timing& timing : timings(s, axes.pipe, s.train.global_batch / axes.data / samples))
      for (const Recomputed what : {Recomputed::nothing, Recomputed::attention, Recomputed::layers})
        for (int32_t zero = 0; zero <= (axes.shards() > 1 ? 3 : 0); ++zero)
          for (size_t o = 0; o < offloads; ++o) {
            Candidate c = axes;
            c.micro_batch = static_cast<int32_t>(samples);
            c.schedule = timing.schedule;
            c.chunks = static_cast<int32_t>(timing.chunks);
            c.recompute = what;
            c.zero = zero;
            c.offload = all[o];
            list.push_back(c);
          }
}

}  // namespace

std::vector<Candidate> candidates(const Settings& s, const Space& space) {
  std::vector<Candidate> list;
  for (const int64_t pipe : divisors(space.devices)) {
    if (pipe > s.model.layers) break;
    for (const int64_t tensor : divisors(space.devices / pipe))
      for (const int64_t context : divisors(space.devices / pipe / tensor)) {
        const int64_t data = space.devices / pipe / tensor / context;
        if (s.train.global_batch % data != 0 || context > s.train.sequence) continue;
        add_layout(s, space,
                   {.data = static_cast<int32_t>(data),
                    .tensor = static_cast<int32_t>(tensor),
                    .context = static_cast<int32_t>(context),
                    .pipe = static_cast<int32_t>(pipe)},
                   list);
      }
  }
  return list;
}

Settings settings_of(const Settings& settings, const Candidate& c) {
  Settings s = settings;
  config::Parallel& p = s.parallel;
  p.data = c.data;
  p.tensor = c.tensor;
  p.context = c.context;
  p.pipe = c.pipe;
  p.expert = 1;  // no candidate splits experts
  p.ranks = config::ranks_of(p);
  p.zero = c.zero;
  p.shard_group = 0;
  p.shard_context = c.context > 1 && c.zero > 0;
  p.sequence_parallel = c.tensor > 1;
  p.mesh_order = config::default_mesh_order();
  p.schedule = c.schedule;
  p.chunks = c.chunks;
  p.stages.clear();
  p.recompute = name_of(c.recompute);
  p.recompute_every = 1;
  p.offload = name_of(c.offload);
  if (p.ranks > 1) p.threads = 1;  // workspaces are per thread
  s.train.micro_batch = c.micro_batch;
  return s;
}

int64_t micro_batches(const Settings& settings, const Candidate& c) {
  return settings.train.global_batch / c.data / c.micro_batch;
}

std::string in_words(const Candidate& c) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (c.data > 1) add(fmt::format("data {}", c.data));
  if (c.tensor > 1) add(fmt::format("tensor {}", c.tensor));
  if (c.context > 1) add(fmt::format("context {}", c.context));
  if (c.pipe > 1)
    add(fmt::format("pipe {}{}", c.pipe,
                    c.chunks > 1           ? fmt::format(" interleaved x{}", c.chunks)
                    : c.schedule != "1f1b" ? fmt::format(" {}", c.schedule)
                                           : ""));
  if (text.empty()) add("one device");
  if (c.zero > 0) add(fmt::format("zero {}", c.zero));
  add(fmt::format("micro_batch {}", c.micro_batch));
  if (c.recompute != Recomputed::nothing) add(fmt::format("recompute {}", name_of(c.recompute)));
  if (c.offload.optimizer || c.offload.activations) add(fmt::format("offload {}", name_of(c.offload)));
  return text;
}

std::string as_toml(const Candidate& c) {
  std::string text = fmt::format("[train]\nmicro_batch = {}\n[parallel]\n", c.micro_batch);
  const auto axis = [&](std::string_view name, int32_t size) {
    if (size > 1) text += fmt::format("{} = {}\n", name, size);
  };
  axis("data", c.data);
  axis("tensor", c.tensor);
  axis("context", c.context);
  axis("pipe", c.pipe);
  if (c.pipe > 1) text += fmt::format("schedule = \"{}\"\n", c.schedule);
  if (c.chunks > 1) text += fmt::format("chunks = {}\n", c.chunks);
  if (c.zero > 0) text += fmt::format("zero = {}\n", c.zero);
  if (c.zero > 0 && c.context > 1) text += "shard_context = true\n";
  if (c.tensor > 1) text += "sequence_parallel = true\n";
  if (c.recompute != Recomputed::nothing) text += fmt::format("recompute = \"{}\"\n", name_of(c.recompute));
  if (c.offload.optimizer || c.offload.activations) text += fmt::format("offload = \"{}\"\n", name_of(c.offload));
  return text;
}

}  // namespace kintsugi::search
