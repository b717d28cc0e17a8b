#include "kintsugi/search/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "kintsugi/base/error.h"
#include "kintsugi/models/models.h"
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

// Samples per pass: powers of two, and the run's own, in whole groups of batch norms.
std::vector<int64_t> micro_batch_sizes(const Settings& s, int64_t share) {
  std::vector<int64_t> list;
  for (int64_t n = 1; n <= kLargestMicroBatch; n *= 2) list.push_back(n);
  if (!std::ranges::count(list, s.train.micro_batch)) list.push_back(s.train.micro_batch);
  const bool grouped = config::batch_norm(s.model) == config::BatchNorm::replica;
  const int64_t group = grouped ? std::max<int64_t>(s.model.batch_norm_samples, 1) : 1;
  std::erase_if(list, [&](int64_t n) { return share % n != 0 || n % group != 0; });
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

// All choices of everything but the axes.
void add_layouts(const Settings& s, const Space& space, const AxisSizes& sizes, std::vector<Candidate>& list) {
  constexpr std::array<Offloaded, kOffloads + 1> all = {{{}, {true, false}, {false, true}, {true, true}}};
  const size_t offloads = space.offload ? all.size() : 1;
  const Candidate axes = {.sizes = sizes};
  if (s.train.global_batch % axes.data_ranks() != 0) return;
  const int64_t share = s.train.global_batch / axes.data_ranks();
  for (const int64_t samples : micro_batch_sizes(s, share))
    for (const Timing& timing : timings(s, axes.pipe(), share / samples))
      for (const Recomputed what : {Recomputed::nothing, Recomputed::attention, Recomputed::layers}) {
        if (what == Recomputed::attention && !models::reads_tokens(s.model)) continue;  // it has none
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
}

// Images have no sequence.
bool splits_sequence(const Settings& s, const Candidate& c) {
  return c.tensor() > 1 && !models::reads_images(s.model);
}

// Sizes of these axes whose product is `devices`; the last takes the rest.
void add_sizes(const Settings& s, const Space& space, std::span<const config::Axis* const> axes, int64_t devices,
               AxisSizes sizes, std::vector<Candidate>& list) {
  const config::Axis& axis = *axes.front();
  int32_t& size = sizes.list[static_cast<size_t>(&axis - config::axes().data())];
  for (const int64_t n : axes.size() == 1 ? std::vector<int64_t>{devices} : divisors(devices)) {
    if (n > 1 && axis.fits != nullptr && !axis.fits(s, n)) continue;
    size = static_cast<int32_t>(n);
    if (axes.size() == 1)
      add_layouts(s, space, sizes, list);
    else
      add_sizes(s, space, axes.subspan(1), devices / n, sizes, list);
  }
}

}  // namespace

AxisSizes sizes_of(const config::Parallel& parallel) {
  AxisSizes sizes;
  const std::vector<config::Axis>& axes = config::axes();
  base::require(axes.size() <= AxisSizes::kMost, "search", "{} axes", axes.size());
  for (size_t i = 0; i < axes.size(); ++i) sizes.list[i] = static_cast<int32_t>(axes[i].size(parallel));
  return sizes;
}

int64_t Candidate::data_ranks() const {
  int64_t ranks = 1;
  const std::vector<config::Axis>& axes = config::axes();
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].shares_samples) ranks *= sizes.list[i];
  return ranks;
}

std::vector<Candidate> candidates(const Settings& s, const Space& space) {
  std::vector<const config::Axis*> axes = config::axes_of_product();
  const config::Axis* const data = &config::axis_of(&config::Parallel::data);
  std::ranges::stable_partition(axes, [&](const config::Axis* axis) { return axis != data; });
  std::vector<Candidate> list;
  add_sizes(s, space, axes, space.devices, sizes_of({}), list);
  return list;
}

Settings settings_of(const Settings& settings, const Candidate& c) {
  Settings s = settings;
  config::Parallel& p = s.parallel;
  const std::vector<config::Axis>& axes = config::axes();
  for (size_t i = 0; i < axes.size(); ++i) axes[i].set_size(p, c.sizes.list[i]);
  p.ranks = config::ranks_of(p);
  p.zero = c.zero;
  p.shard_group = 0;
  p.shard_context = c.context() > 1 && c.zero > 0;
  p.sequence_parallel = splits_sequence(s, c);
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
  return settings.train.global_batch / c.data_ranks() / c.micro_batch;
}

std::string in_words(const Candidate& c) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const std::vector<config::Axis>& axes = config::axes();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (c.sizes.list[i] == 1) continue;
    const std::string timing = !axes[i].cuts_layers   ? ""
                               : c.chunks > 1         ? fmt::format(" interleaved x{}", c.chunks)
                               : c.schedule != "1f1b" ? fmt::format(" {}", c.schedule)
                                                      : "";
    add(fmt::format("{} {}{}", axes[i].name, c.sizes.list[i], timing));
  }
  if (text.empty()) add("one device");
  if (c.zero > 0) add(fmt::format("zero {}", c.zero));
  add(fmt::format("micro_batch {}", c.micro_batch));
  if (c.recompute != Recomputed::nothing) add(fmt::format("recompute {}", name_of(c.recompute)));
  if (c.offload.optimizer || c.offload.activations) add(fmt::format("offload {}", name_of(c.offload)));
  return text;
}

std::string as_toml(const Settings& settings, const Candidate& c) {
  std::string text = fmt::format("[train]\nmicro_batch = {}\n[parallel]\n", c.micro_batch);
  const std::vector<config::Axis>& axes = config::axes();
  for (size_t i = 0; i < axes.size(); ++i)
    if (c.sizes.list[i] > 1) text += fmt::format("{} = {}\n", axes[i].name, c.sizes.list[i]);
  if (c.pipe() > 1) text += fmt::format("schedule = \"{}\"\n", c.schedule);
  if (c.chunks > 1) text += fmt::format("chunks = {}\n", c.chunks);
  if (c.zero > 0) text += fmt::format("zero = {}\n", c.zero);
  if (c.zero > 0 && c.context() > 1) text += "shard_context = true\n";
  if (splits_sequence(settings, c)) text += "sequence_parallel = true\n";
  if (c.recompute != Recomputed::nothing) text += fmt::format("recompute = \"{}\"\n", name_of(c.recompute));
  if (c.offload.optimizer || c.offload.activations) text += fmt::format("offload = \"{}\"\n", name_of(c.offload));
  return text;
}

}  // namespace kintsugi::search
