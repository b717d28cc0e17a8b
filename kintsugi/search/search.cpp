#include "kintsugi/search/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <queue>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/search/bounds.h"
#include "kintsugi/search/unit_costs.h"

namespace kintsugi::search {

using config::Settings;
using simulate::Cluster;

namespace {

constexpr int64_t kMostTimes = 8;  // multiple of the devices requested

// How closely a candidate is bounded. timed: its time is known; tried: also its memory.
enum class Level : uint8_t { arithmetic, layers, replica, schedule, files, timed, tried };

struct Entry {
  double seconds = 0;
  int64_t bytes = 0;
  Level level = Level::arithmetic;
  uint32_t index = 0;

  // The least bound is on top; ties go to the first.
  bool operator<(const Entry& other) const { return std::tie(seconds, index) > std::tie(other.seconds, other.index); }
};

bool is_faster(const Tried& a, const Tried& b) {
  return a.time.seconds < b.time.seconds;
}

// Calls f(0) to f(n - 1) on that many threads.
void for_each_in_parallel(size_t n, int threads, const std::function<void(size_t)>& f) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(n);
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) {
      try {
        f(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> team;
  try {
    for (int t = 1; t < std::min(threads, static_cast<int>(n)); ++t) team.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads: those that run do the work
  }
  work();
  team.clear();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

class Searcher {
 public:
  Searcher(const Settings& settings, const Cluster& cluster, const Options& options)
      : settings_(settings),
        cluster_(cluster),
        options_(options),
        bounds_(settings, cluster, options.space.devices),
        all_(candidates(settings, options.space)),
        bounded_(all_.size()) {
    for (size_t i = 0; i < all_.size(); ++i) {
      const Bound b = bounds_.by_arithmetic(all_[i]);
      bounded_[i] = {b.seconds, b.bytes, Level::arithmetic, static_cast<uint32_t>(i)};
    }
  }

  Found run() {
    Found found;
    found.best = fastest(options_.limit, options_.best);
    found.counts = counts();
    found.states = bounds_.states();
    found.left = left_ < kRefused ? left_ : 0;
    if (found.best.empty())
      found.smallest = smallest(kBoundedForLeast);
    else if (options_.front > 0)
      found.front = front(found.best.front());
    return found;
  }

  // Whether the candidate that needs the least memory fits.
  bool fits() {
    const auto least = smallest(kBoundedForMore);
    return least && least->bytes <= options_.limit;
  }

 private:
  // The first n candidates that fit into that many bytes.
  std::vector<Tried> fastest(int64_t limit, size_t n) {
    std::priority_queue<Entry> queue;
    for (const Entry& e : bounded_)
      if (is_open(e, limit)) queue.push(e);
    std::vector<Entry> ready;  // bounded as closely as possible
    std::vector<Tried> best;
    const auto last = [&] { return best.size() < n ? kRefused : best.back().time.seconds; };
    const auto take = [&](const Entry& e) {
      bounded_[e.index] = e;
      if (is_too_large(e, limit)) push_offloads(e.index, limit, queue);
      if (refused(e) || e.bytes > limit) return;
      if (e.level >= Level::timed) learn(e);
      if (e.level < Level::files) {
        queue.push(e);
      } else if (e.level < Level::tried) {
        if (e.seconds <= last()) ready.push_back(e);
      } else {
        const Tried& tried = tried_.at(e.index);
        best.insert(std::ranges::upper_bound(best, tried, is_faster), tried);
        if (best.size() > n) best.pop_back();
      }
    };
    for (;;) {
      std::erase_if(ready, [&](const Entry& e) { return e.seconds > last(); });
      std::vector<Entry> next;
      // Fully bounded candidates are compiled once nothing else may be faster, or if time runs out.
      const double compiled = ready.empty() ? last() : std::ranges::min(ready, {}, &Entry::seconds).seconds;
      while (!queue.empty() && next.size() < kTogether && queue.top().seconds <= std::min(compiled, last()) &&
             (ready.empty() || !is_late(kPartForBounds))) {
        next.push_back(queue.top());
        queue.pop();
      }
      const bool late = !best.empty() && is_late(1);
      if (next.empty() || late) {
        if (ready.empty() && next.empty()) break;
        if (late) {
          for (const Entry& e : next) left_ = std::min(left_, e.seconds);
          for (const Entry& e : ready) left_ = std::min(left_, e.seconds);
          if (!queue.empty()) left_ = std::min(left_, queue.top().seconds);
          break;
        }
        std::ranges::sort(ready, {}, [](const Entry& e) { return std::pair(e.seconds, e.index); });
        const auto threads = static_cast<size_t>(options_.threads);
        size_t taken = std::min(certain(best, ready, queue, n), kMostCertain * threads);
        if (taken <= threads) {
          std::ranges::sort(ready, {}, [&](const Entry& e) { return std::pair(guess(e), e.index); });
          taken = std::min(ready.size(), threads);
        }
        next.assign(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(taken));
        ready.erase(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(taken));
      }
      const std::vector<size_t> order = order_of_work(next);
      for_each_in_parallel(next.size(), options_.threads, [&](size_t i) { next[order[i]] = closer(next[order[i]]); });
      for (const Entry& e : next) take(e);
      if (options_.progress && next.front().level == Level::tried) options_.progress(counts());
    }
    return best;
  }

  // The number of `ready` candidates, in bound order, that must be considered in any case: those up to the n-th of all
  // known times and bounds, which the n-th of all times cannot be below.
  static size_t certain(const std::vector<Tried>& best, const std::vector<Entry>& ready,
                        const std::priority_queue<Entry>& queue, size_t n) {
    std::vector<double> known;
    for (const Tried& t : best) known.push_back(t.time.seconds);
    for (const Entry& e : ready) known.push_back(e.seconds);
    std::ranges::sort(known);
    double least = known.size() < n ? kRefused : known[n - 1];
    if (!queue.empty()) least = std::min(least, queue.top().seconds);
    return static_cast<size_t>(std::ranges::count_if(ready, [&](const Entry& e) { return e.seconds <= least; }));
  }

  // Starts with one candidate per set of few layers to compile, so that threads do not wait for each other.
  std::vector<size_t> order_of_work(const std::vector<Entry>& entries) const {
    const auto compiled_for = [&](const Entry& e) {
      Replica few = replica_of(all_[e.index]);
      few.sizes.set<&config::Parallel::data>(std::min(few.data(), 2));
      if (e.level < Level::replica) {
        few.zero = 0;
        few.sizes.set<&config::Parallel::data>(1);
        few.offload_optimizer = few.offload_activations = false;
      }
      if (e.level == Level::arithmetic) {
        few.recompute = config::Recomputed::nothing;
        few.split = false;
      }
      return few;
    };
    std::vector<size_t> first, others;
    std::set<Replica> seen;
    for (size_t i = 0; i < entries.size(); ++i)
      (seen.insert(compiled_for(entries[i])).second ? first : others).push_back(i);
    first.insert(first.end(), others.begin(), others.end());
    return first;
  }

  // Whether a candidate may be among those that fit: with offload only if it does not fit without.
  bool is_open(const Entry& e, int64_t limit) const {
    const bool needed = !offloads(e.index) || is_too_large(bounded_[without(e.index)], limit);
    return e.bytes <= limit && !refused(e) && needed;
  }
  static bool is_too_large(const Entry& e, int64_t limit) { return !refused(e) && e.bytes > limit; }
  bool offloads(uint32_t index) const { return all_[index].offload.optimizer || all_[index].offload.activations; }
  uint32_t without(uint32_t index) const {
    return options_.space.offload ? index - index % static_cast<uint32_t>(kOffloads + 1) : index;
  }
  void push_offloads(uint32_t index, int64_t limit, std::priority_queue<Entry>& queue) const {
    if (!options_.space.offload || offloads(index)) return;
    for (uint32_t o = 1; o <= kOffloads; ++o)
      if (is_open(bounded_[index + o], limit)) queue.push(bounded_[index + o]);
  }

  // Properties shared by candidates that are about as far above their bounds.
  using Likeness = std::tuple<int32_t, bool, bool, bool, bool>;
  Likeness likeness(uint32_t index) const {
    const Candidate& c = all_[index];
    return {c.zero, c.pipe() > 1, c.chunks > 1, c.offload.optimizer, c.offload.activations};
  }
  void learn(const Entry& e) {
    if (scheduled_.contains(e.index)) ratios_[likeness(e.index)].push_back(e.seconds / scheduled_.at(e.index));
  }
  double guess(const Entry& e) const {
    const auto known = ratios_.find(likeness(e.index));
    return known == ratios_.end() ? e.seconds : e.seconds * std::ranges::min(known->second);
  }

  bool is_late(double part) const {
    return options_.seconds > 0 &&
           std::chrono::steady_clock::now() - begun_ > std::chrono::duration<double>(part * options_.seconds);
  }

  static bool refused(const Entry& e) { return e.seconds == kRefused; }

  // Advances to the next level. Invalid layouts get an infinite time.
  Entry closer(Entry e) {
    const Candidate& c = all_[e.index];
    if (e.level == Level::files) {
      std::optional<Tried> tried = time_candidate(settings_, c, cluster_);
      const double bound = e.seconds;
      e.level = Level::timed;
      e.seconds = tried ? tried->time.seconds : kRefused;
      if (!tried) return e;
      const std::scoped_lock lock(mutex_);
      scheduled_[e.index] = bound;
      tried_.emplace(e.index, *std::move(tried));
      return e;
    }
    if (e.level == Level::timed) {
      e.bytes = bytes_of(settings_, c);
      e.level = Level::tried;
      const std::scoped_lock lock(mutex_);
      tried_.at(e.index).bytes = e.bytes;
      return e;
    }
    const auto bound = e.level == Level::arithmetic ? bounds_.by_layers(c)
                       : e.level == Level::layers   ? bounds_.by_replica(c)
                       : e.level == Level::replica  ? bounds_.by_schedule(c)
                                                    : bounds_.by_files(c);
    e.level = static_cast<Level>(static_cast<int>(e.level) + 1);
    if (e.level == Level::schedule && !offloads(e.index)) e.level = Level::files;  // it has none
    e.seconds = bound ? std::max(e.seconds, bound->seconds) : kRefused;
    if (bound) e.bytes = std::max(e.bytes, bound->bytes);
    return e;
  }

  Counts counts() const {
    Counts n = {.all = static_cast<int64_t>(all_.size())};
    for (const Entry& e : bounded_) {
      if (refused(e))
        ++n.refused;
      else if (e.bytes > options_.limit)
        ++n.too_large;
      else if (e.level >= Level::timed)
        ++n.simulated;
      else
        ++n.too_slow;
    }
    return n;
  }

  // The candidate that needs the least memory: in bound order, until no bound is below the least found, or `bounded`
  // candidates have been refined.
  std::optional<Tried> smallest(int bounded) {
    std::optional<Tried> least;
    const auto more = [](const Entry& a, const Entry& b) {
      return std::tie(a.bytes, a.seconds, a.index) > std::tie(b.bytes, b.seconds, b.index);
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(more)> queue(more);
    for (const Entry& e : bounded_)
      if (!refused(e)) queue.push(e);
    int tries = 0, follows = 0;
    while (!queue.empty() && (!least || (queue.top().bytes < least->bytes && tries < kMostTries))) {
      Entry e = queue.top();
      queue.pop();
      const auto keep = [&] {
        if (!least || e.bytes < least->bytes) least = tried_.at(e.index);
      };
      if (e.level == Level::tried) {
        keep();
        continue;
      }
      // Once that many have been refined, the next one is followed to its end, so that one is found.
      const bool follow = e.level < Level::files && --bounded < 0;
      if (follow && (least || follows++ >= kMostFollowed)) continue;
      if (e.level == Level::files) ++tries;
      do e = closer(e);
      while (follow && !refused(e) && e.level != Level::tried);
      bounded_[e.index] = e;
      if (refused(e)) continue;
      if (follow)
        keep();
      else
        queue.push(e);
    }
    return least;
  }

  std::vector<Tried> front(const Tried& fastest_of_all) {
    std::vector<Tried> points = {fastest_of_all};
    auto limit = static_cast<double>(fastest_of_all.bytes);
    for (int i = 0; i < options_.front; ++i) {
      limit = std::min(limit * kLess, static_cast<double>(points.back().bytes - 1));
      const std::vector<Tried> next = fastest(static_cast<int64_t>(limit), 1);
      if (next.empty()) break;
      points.push_back(next.front());
      limit = static_cast<double>(next.front().bytes);
    }
    return points;
  }

  static constexpr double kRefused = 1e301;
  static constexpr size_t kTogether = 64;
  static constexpr size_t kMostCertain = 4;      // at one time, per thread
  static constexpr double kPartForBounds = 0.6;  // of the time
  static constexpr double kLess = 7.0 / 8;
  static constexpr int kMostTries = 24, kMostFollowed = 64, kBoundedForLeast = 1000, kBoundedForMore = 600;

  const Settings& settings_;
  const Cluster& cluster_;
  const Options& options_;
  Bounds bounds_;
  const std::vector<Candidate> all_;
  std::vector<Entry> bounded_;  // [candidate]
  std::map<Likeness, std::vector<double>> ratios_;
  std::mutex mutex_;                      // guards the next two
  std::map<uint32_t, Tried> tried_;       // [candidate]
  std::map<uint32_t, double> scheduled_;  // bounds of those tried
  double left_ = kRefused;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace

std::optional<Tried> time_candidate(const Settings& settings, const Candidate& candidate, const Cluster& cluster) {
  const Settings s = settings_of(settings, candidate);
  try {
    const std::vector<program::Program> programs =
        compile::compile({.settings = s, .kernels = *compile::kernels_of(s), .extent = lower::Extent::timed});
    return Tried{.candidate = candidate,
                 .time = simulate::simulate(programs, cluster, simulate::softwares().front()),
                 .work = simulate::work_of(programs)};
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

int64_t bytes_of(const Settings& settings, const Candidate& candidate) {
  const Settings s = settings_of(settings, candidate);
  int64_t bytes = 0;
  for (const program::Program& p :
       compile::compile({.settings = s, .kernels = *compile::kernels_of(s), .extent = lower::Extent::placed}))
    bytes = std::max(bytes, p.bytes());
  return bytes;
}

std::optional<Tried> try_candidate(const Settings& settings, const Candidate& candidate, const Cluster& cluster,
                                   int64_t limit) {
  const Settings s = settings_of(settings, candidate);
  std::vector<program::Program> programs;
  try {
    programs = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  } catch (const base::UserError&) {
    return std::nullopt;
  }
  Tried tried;
  tried.candidate = candidate;
  for (const program::Program& p : programs) tried.bytes = std::max(tried.bytes, p.bytes());
  if (tried.bytes > limit) return tried;
  tried.time = simulate::simulate(programs, cluster, simulate::softwares().front());
  tried.work = simulate::work_of(programs);
  return tried;
}

Found search(const Settings& settings, const Cluster& cluster, const Options& options) {
  Found found = Searcher(settings, cluster, options).run();
  for (int64_t n = 2; found.best.empty() && found.smallest && n <= kMostTimes && found.enough_devices == 0; n *= 2) {
    Options more = options;
    more.space.devices = n * options.space.devices;
    if (Searcher(settings, cluster, more).fits()) found.enough_devices = more.space.devices;
  }
  return found;
}

}  // namespace kintsugi::search
