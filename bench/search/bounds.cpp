// search_bounds RUN.TOML CLUSTER.TOML DEVICES COUNT [SEED [SECONDS [WORDS]]]: bounds of layouts of a large run beside
// what comes out.
//
// Of layouts drawn at random among those whose bounds are below so many seconds (1.6 times the least bound), each is a
// line: its time, each bound's part of it, its memory, and the seconds that the bounds and the compiling took. With
// WORDS, those whose words have these. A part above 1 is a mistake, and the exit status is 1.
#include "kintsugi/search/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>

#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/search/search.h"

using namespace kintsugi;

namespace {

template <typename F>
double processor_seconds(F&& f) {
  const std::clock_t begin = std::clock();
  f();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

constexpr int kMostDrawn = 3000000;

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const config::Settings s = config::resolve(config::read_file(argv[1], models::catalog()), 1).settings;
  const simulate::Cluster c = simulate::read_cluster(argv[2]);
  const int64_t devices = std::atoll(argv[3]);
  const int count = std::atoi(argv[4]);
  const auto limit = static_cast<int64_t>(c.device.memory);
  const std::vector<search::Candidate> all =
      search::candidates(s, {.devices = devices, .offload = c.storage_bandwidth > 0});
  std::unique_ptr<search::Bounds> bounds;
  fmt::print("{} candidates; {:.2f} s\n", all.size(),
             processor_seconds([&] { bounds = std::make_unique<search::Bounds>(s, c, devices); }));
  std::mt19937 random(argc > 5 ? static_cast<unsigned>(std::atoi(argv[5])) : 1);
  std::vector<double> least;
  for (const search::Candidate& a : all) least.push_back(bounds->by_arithmetic(a).seconds);
  std::vector<double> sorted = least;
  std::ranges::sort(sorted);
  const double most = argc > 6 ? std::atof(argv[6]) : 1.6 * sorted[0];
  int wrong = 0, below = 0;
  fmt::print("{:>9} {:>6} {:>6} {:>7} {:>6} {:>6} | {:>7} {:>7} {:>7} {:>7} {:>7}  {}\n", "step", "arith", "layers",
             "replica", "sched", "memory", "layers", "sched", "timed", "placed", "tried", "layout");
  int drawn = 0;
  for (int n = 0; n < count && drawn < kMostDrawn; ++drawn) {
    const size_t i = random() % all.size();
    const search::Candidate& a = all[i];
    if (argc > 7 && in_words(a).find(argv[7]) == std::string::npos) continue;
    const search::Bound arithmetic = bounds->by_arithmetic(a);
    if (arithmetic.seconds > most || arithmetic.bytes > limit) continue;
    std::optional<search::Bound> layers, schedule, files;
    const double layers_s = processor_seconds([&] { layers = bounds->by_layers(a); });
    if (!layers || layers->bytes > limit || layers->seconds > most) continue;
    const std::optional<search::Bound> replica = bounds->by_replica(a);
    if (!replica || replica->bytes > limit || replica->seconds > most) continue;
    const double schedule_s = processor_seconds([&] { schedule = bounds->by_schedule(a); });
    if (!schedule || schedule->bytes > limit || schedule->seconds > most) continue;
    const double files_s = processor_seconds([&] { files = bounds->by_files(a); });
    if (!files) continue;
    ++below;
    std::optional<search::Tried> tried;
    const double tried_s = processor_seconds([&] { tried = search::try_candidate(s, a, c, int64_t{1} << 60); });
    if (!tried) continue;
    double timed = 0;
    const double timed_s = processor_seconds([&] { timed = search::time_candidate(s, a, c)->time.seconds; });
    const double bytes_s = processor_seconds([&] { search::bytes_of(s, a); });
    ++n;
    const double t = tried->time.seconds;
    const bool holds = schedule->seconds <= t * (1 + 1e-9) && layers->seconds <= t * (1 + 1e-9) &&
                       arithmetic.seconds <= t && replica->seconds <= t * (1 + 1e-9) &&
                       files->seconds <= t * (1 + 1e-9) && replica->bytes <= tried->bytes && timed == t &&
                       schedule->bytes <= tried->bytes && layers->bytes <= tried->bytes && files->bytes <= tried->bytes;
    wrong += holds ? 0 : 1;
    fmt::print("{:9.4f} {:6.3f} {:6.3f} {:7.3f} {:6.3f} {:6.3f} | {:7.3f} {:7.3f} {:7.3f} {:7.3f} {:7.3f}  {}{}\n", t,
               arithmetic.seconds / t, layers->seconds / t, replica->seconds / t, files->seconds / t,
               static_cast<double>(files->bytes) / static_cast<double>(tried->bytes), layers_s, schedule_s + files_s,
               timed_s, bytes_s, tried_s, in_words(a), holds ? "" : "  WRONG");
    std::fflush(stdout);
  }
  fmt::print("{} of {} drawn\n", below, drawn);
  return wrong > 0 ? 1 : 0;
}
