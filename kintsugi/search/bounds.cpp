#include "kintsugi/search/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/partition/stages.h"
#include "kintsugi/models/models.h"
#include "kintsugi/plan/schedule.h"
#include "kintsugi/plan/schedule_timeline.h"
#include "kintsugi/simulate/transfer_costs.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::search {

using config::Parallel;
using config::Settings;
using plan::Task;
using plan::Work;
using program::Collective;
using simulate::Cluster;

namespace {

constexpr size_t kKeptPrograms = 512;  // about 400 KB each
constexpr size_t kKeptCosts = 1024;    // about 100 KB each, for several data ranks

// The minimum part of states per rank.
int64_t gradients_of(const Candidate& c, const UnitCost& u) {
  return u.gradients / (c.zero >= 2 ? c.shards() : 1);
}
int64_t states_of(const Candidate& c, const UnitCost& u) {
  const int64_t shards = c.shards();
  return u.weights / (c.zero >= 3 ? shards : 1) + gradients_of(c, u) + u.optimizer / (c.zero >= 1 ? shards : 1);
}

// Memory of states and of what is kept between passes. With one micro-batch, accumulators reuse the memory of what is
// kept.
int64_t together(int64_t states, int64_t gradients, int64_t kept, int64_t micro_batches) {
  return states + (micro_batches > 1 ? kept : std::max<int64_t>(0, kept - gradients));
}

// The number of ranks that share an optimizer state.
int64_t shared_by(const Candidate& c) {
  return c.zero >= 1 ? c.shards() : 1;
}

// Minimum number of micro-batches in flight over all chunks of a stage.
int64_t in_flight(const Candidate& c, int stage, int64_t micro_batches) {
  return std::min<int64_t>(c.pipe() - stage, micro_batches);
}

enum class Place : uint8_t { first, between, last };  // of a micro-batch in a step

double backward_of(const UnitCost& u, Place place) {
  return place == Place::last ? u.last_backward : place == Place::first ? u.first_backward : u.backward;
}
double rest_of(const UnitCost& u, Place place) {
  return place == Place::last ? u.last_rest : place == Place::first ? u.first_rest : u.rest;
}
double weight_of(const UnitCost& u, Place place) {
  return place == Place::last ? u.last_weight : place == Place::first ? u.first_weight : u.weight;
}

}  // namespace

Bounds::Bounds(const Settings& settings, const Cluster& cluster, int64_t devices)
    : settings_(settings), cluster_(cluster), devices_(devices), repeats_(has_repeated_layers(settings.model)) {
  rate_ = cluster.peak(tensor::dtype_from(settings.train.dtype)) *
          std::max({cluster.products.share, cluster.attention.forward, cluster.attention.backward});
  if (!repeats_) {
    whole_ = whole_model(settings);
    return;
  }
  const UnitCosts costs = unit_costs(settings, few_layers(settings, {}), {}, cluster, 1);
  for (const UnitCost& u : costs.units) whole_ += u;
}

// On p stages, where stage s takes x(s) seconds for each of m micro-batches, a step takes at least x(0) + ... + x(s-1)
// + m x(s) for every s, with one chunk per stage and unsplit backward passes. If all of these are at most T, then x(s)
// is at most T (1 - 1/m)^s / m, and their sum at most T (1 - (1 - 1/m)^p).
Bound Bounds::by_arithmetic(const Candidate& c) const {
  const auto micro = static_cast<double>(micro_batches(settings_, c));
  // Over all stages. Ranks of the expert axis compute the tokens of as many samples as they have.
  const double of_micro_batch = whole_.flops * c.micro_batch / (rate_ * c.tensor() * c.context() * c.space());
  const bool simple = c.chunks == 1 && !plan::schedule_named(c.schedule).split;
  const double seconds =
      simple ? of_micro_batch / (1 - std::pow(1 - 1 / micro, c.pipe())) : micro * of_micro_batch / c.pipe();
  // Layers after the spatial ones have weights per position; without the expert axis, context splits experts.
  const int64_t parts = int64_t{c.tensor()} * c.pipe() * c.expert() * c.space() * (has_experts() ? c.context() : 1);
  UnitCost part = whole_;
  double file = 0;
  if (c.offload.optimizer) {
    file = file_seconds(2.0 * static_cast<double>(part.optimizer) / static_cast<double>(shared_by(c))) /
           static_cast<double>(parts);
    part.optimizer = 0;
  }
  return {std::max(seconds, file), states_of(c, part) / parts};
}

std::shared_ptr<const FewLayers> Bounds::few_of(const Candidate& c) {
  if (c.data() == 1) return compiled(c);  // requested once, since its costs are cached
  Replica key = replica_of(c);
  key.sizes.set<&Parallel::data>(2);
  few_.forget(kKeptPrograms, [](const Replica&) { return true; });
  return few_.get(key, [&] { return compiled(c); });
}

std::shared_ptr<const FewLayers> Bounds::compiled(const Candidate& c) const {
  try {
    return std::make_shared<const FewLayers>(few_layers(settings_, c));
  } catch (const base::UserError&) {
    return nullptr;  // the model rejects the layout
  }
}

std::shared_ptr<const UnitCosts> Bounds::costs_of(const Candidate& c) {
  costs_.forget(kKeptCosts, [](const Replica& key) { return key.data() > 1; });
  return costs_.get(replica_of(c), [&]() -> std::shared_ptr<const UnitCosts> {
    const auto few = few_of(c);
    if (!few) return nullptr;
    try {
      return std::make_shared<const UnitCosts>(unit_costs(settings_, *few, c, cluster_, devices_));
    } catch (const base::UserError&) {
      return nullptr;  // the cluster rejects the layout
    }
  });
}

std::vector<int> Bounds::cut(std::vector<double> flops, const Candidate& c, int64_t replicas) {
  const int n = c.pipe() * c.chunks;
  if (n == 1) return {static_cast<int>(flops.size()) - 1};
  for (double& f : flops) f *= static_cast<double>(replicas);
  const std::scoped_lock lock(mutex_);
  std::vector<int>& known = cuts_[{flops, n}];
  if (known.empty()) known = lower::balanced(flops, n);
  return known;
}

std::shared_ptr<const Bounds::Chunks> Bounds::chunks_of(const Candidate& whole, bool alone) {
  Candidate c = whole;
  if (alone) c.sizes.set<&Parallel::data>(1);
  const int64_t micro = micro_batches(settings_, whole);
  const std::tuple key(replica_of(c), micro, c.pipe(), c.chunks);
  return chunks_.get(key, [&] { return made_chunks(c, micro, whole.data_ranks()); });
}

// `replicas`: of the run, which determines how stages are cut.
std::shared_ptr<const Bounds::Chunks> Bounds::made_chunks(const Candidate& c, int64_t micro, int64_t replicas) {
  std::shared_ptr<Chunks> chunks;
  if (const auto costs = costs_of(c)) {
    const std::vector<int> last = cut(costs->flops, c, replicas);
    chunks = std::make_shared<Chunks>(last.size());
    for (size_t chunk = 0; chunk < last.size(); ++chunk) {
      const size_t first = chunk == 0 ? 0 : static_cast<size_t>(last[chunk - 1]) + 1,
                   end = static_cast<size_t>(last[chunk]) + 1;
      (*chunks)[chunk] = chunk_of(*costs, first, end);
      // Two layers whose backward pass follows at once may stay in memory.
      const bool follows = chunk + 1 == last.size() || micro == 1;
      for (size_t layer = std::max(first, end - std::min<size_t>(end, 2)); follows && layer < end; ++layer)
        for (auto bytes : {&UnitCost::file_forward, &UnitCost::file_backward, &UnitCost::file_weight})
          (*chunks)[chunk].*bytes -= costs->units[layer].*bytes;
    }
  }
  // What a chunk sends to the next is kept there, like what it received is kept here; the first receives nothing.
  if (chunks && chunks->size() > 1) {
    int64_t& carried = chunks->front().carried;
    carried = std::max<int64_t>(0, carried - message_bytes(c));
  }
  return chunks;
}

// For layers [first, end).
UnitCost Bounds::chunk_of(const UnitCosts& costs, size_t first, size_t end) const {
  UnitCost all;
  PassRange range = {.embedding = first == 0, .head = end == costs.units.size()};
  all.beside = std::numeric_limits<int64_t>::max();
  for (size_t layer = first; layer < end; ++layer) {
    const UnitCost& u = costs.units[layer];
    all += u;
    all.alone = u.alone;
    all.beside = std::min(all.beside, end - first == 1 ? u.beside_of_one : u.beside);
    range.kinds.push_back(costs.kinds[layer]);
  }
  for (const DataPass& pass : costs.passes) {
    const PassSeconds seconds = pass.times.seconds(cluster_, range);
    all.*pass.seconds = seconds.all;
    if (pass.alone != nullptr)
      all.*pass.alone = std::max(all.*pass.alone, seconds.all - pass.times.seconds(cluster_, range, true).all);
    if (pass.rest != nullptr) all.*pass.rest = seconds.all - seconds.result;
    if (pass.sums != nullptr) all.*pass.sums = seconds.sums;
  }
  return all;
}

simulate::GroupShape Bounds::ring_shape(int64_t ranks, int64_t stride) {
  const std::scoped_lock lock(mutex_);
  const auto [found, is_new] = rings_.try_emplace({ranks, stride});
  if (is_new) {
    std::vector<int> group;
    for (int64_t i = 0; i < ranks; ++i) group.push_back(static_cast<int>(i * stride));
    found->second = simulate::shape_of(cluster_, group);
  }
  return found->second;
}

// A ring on otherwise idle links, which is optimal. Ranks that have the same part of the model are `tensor` apart,
// those of the data axis alone also times `context`. Nothing for experts, which fewer ranks share than other weights.
double Bounds::data_seconds(const Candidate& c, Collective kind, double bytes) {
  if (c.shards() == 1 || bytes == 0 || c.expert() > 1) return 0;
  const int64_t least = c.data() > 1 ? c.data() : c.shards();
  const double rounds = kind == Collective::all_reduce ? 2 : 1;
  const double sent = rounds * bytes * static_cast<double>(least - 1) / static_cast<double>(least);
  const auto seconds = [&](int64_t ranks, int64_t stride) {
    return simulate::transfer_time(cluster_, ring_shape(ranks, stride), kind, sent).seconds;
  };
  const double of_all = seconds(c.shards(), c.tensor());
  return c.data() == 1 ? of_all : std::min(of_all, seconds(c.data(), int64_t{c.tensor()} * c.context()));
}

// The minimum that a stage sends to the next per micro-batch.
int64_t Bounds::message_bytes(const Candidate& c) const {
  if (!models::reads_tokens(settings_.model)) return 0;
  const int64_t parts = int64_t{c.context()} * c.tensor(),
                size = tensor::size_of(tensor::dtype_from(settings_.train.dtype));
  return c.micro_batch * ((settings_.train.sequence + parts - 1) / parts) * settings_.model.embed * size;
}

double Bounds::message_seconds(const Candidate& c) const {
  if (c.pipe() == 1) return 0;
  const int neighbour = static_cast<int>(devices_ / c.pipe());
  return simulate::transfer_time(cluster_, simulate::shape_of(cluster_, {0, neighbour}), Collective::send,
                                 static_cast<double>(message_bytes(c)))
      .total();
}

// Communication of a step, one after another: over the data axis and to the file.
double Bounds::transfers(const Candidate& c, const Chunks& chunks, int stage) {
  const auto micro = static_cast<double>(micro_batches(settings_, c));
  UnitCost all;
  for (size_t g = static_cast<size_t>(stage); g < chunks.size(); g += static_cast<size_t>(c.pipe())) all += chunks[g];
  const auto bytes = [](const std::string& dtype) {
    return static_cast<double>(tensor::size_of(tensor::dtype_from(dtype)));
  };
  const double sent = std::min(1.0, bytes(settings_.parallel.wire) / bytes(settings_.train.gradient_dtype));
  double data = data_seconds(c, c.zero == 0 ? Collective::all_reduce : Collective::reduce_scatter,
                             (c.zero >= 2 ? micro : 1) * sent * static_cast<double>(all.gradients));
  if (c.zero >= 3)
    data += data_seconds(c, Collective::all_gather, micro * static_cast<double>(all.weights + all.read_again));
  const double file = micro * all.file_passes() + all.file_step / static_cast<double>(shared_by(c));
  return std::max({data, all.data_forward + all.data_last + (micro - 1) * all.data_each, file_seconds(file)});
}

std::optional<Bound> Bounds::by_layers(const Candidate& c) {
  if (!repeats_) return by_replica(c);  // stages of other layers with other recomputation
  Candidate plain = c;
  plain.recompute = config::Recomputed::nothing;
  plain.offload = {};
  plain.schedule = "1f1b";
  plain.zero = 0;
  return by_chunks(c, plain);
}

std::optional<Bound> Bounds::by_replica(const Candidate& c) {
  Candidate plain = c;
  plain.offload.optimizer = false;
  plain.zero = 0;
  return by_chunks(c, plain);
}

// A cluster need not specify its storage bandwidth if storage is not used.
double Bounds::file_seconds(double bytes) const {
  return bytes == 0 ? 0 : simulate::copy_time(cluster_, devices_, bytes).seconds;
}

// Time by which a pass is extended, since it waits for everything that it stores and fetches.
double Bounds::file_wait(double bytes, double seconds) const {
  return std::max(0.0, file_seconds(bytes) - seconds);
}

// Upper bound: if devices share cores, a stage may use those of others.
double Bounds::faster(const Candidate& c) const {
  return c.pipe() > 1 ? cluster_.device.turns : 1;
}

// Uses the layers of another candidate, which take no longer, without communication over the data axis.
std::optional<Bound> Bounds::by_chunks(const Candidate& c, const Candidate& like) {
  const auto found = chunks_of(like, true);
  if (!found) return std::nullopt;
  const Chunks& chunks = *found;
  const bool split = plan::schedule_named(c.schedule).split;
  const bool simple = !split && c.recompute != config::Recomputed::layers;
  const int64_t micro = micro_batches(settings_, c);
  const double message = message_seconds(c);
  const auto shared = static_cast<double>(shared_by(c));
  const bool same_cut = c.recompute == like.recompute;  // otherwise stages may have other layers
  const bool keeps_all = same_cut && !c.offload.activations && bounds_activations();
  Bound bound;
  int64_t states_of_all = 0;
  double lead = 0, drain = 0;  // of the previous stages
  for (int stage = 0; stage < c.pipe(); ++stage) {
    double busy = 0, update = 0;
    int64_t states = 0, gradients = 0, kept = 0, least = chunks[static_cast<size_t>(stage)].carried,
            beside = chunks[static_cast<size_t>(stage)].beside;
    for (size_t g = static_cast<size_t>(stage); g < chunks.size(); g += static_cast<size_t>(c.pipe())) {
      UnitCost u = chunks[g];
      if (c.offload.optimizer) u.optimizer = 0;
      busy += static_cast<double>(micro) * u.forward + static_cast<double>(micro - 1) * (u.backward + u.weight) +
              u.first_backward + u.first_weight;
      busy += static_cast<double>(micro) * file_wait(u.file_forward, u.forward) +
              static_cast<double>(micro - 1) *
                  (file_wait(u.file_backward, u.backward) + file_wait(u.file_weight, u.weight)) +
              file_wait(u.file_backward, u.first_backward) + file_wait(u.file_weight, u.first_weight);
      update += u.update / shared;
      states += states_of(c, u);
      gradients += gradients_of(c, u);
      least = std::min(least, u.carried);
      beside = std::min(beside, u.beside);
    }
    if (keeps_all) kept = in_flight(c, stage, micro) * least * c.chunks;
    // For a backward pass that follows when no more are in flight, and accumulates.
    if (keeps_all && !split && micro > c.pipe() - stage) kept += beside;
    const UnitCost& first = chunks[static_cast<size_t>(stage)];
    const double after = drain - file_wait(first.file_backward, first.backward);  // may come after its result
    bound.seconds = std::max(bound.seconds, lead + busy + std::max(update, simple ? after : 0));
    states_of_all += states;
    if (same_cut) bound.bytes = std::max(bound.bytes, together(states, gradients, kept, micro));
    lead += first.forward + message;
    drain += std::min(first.backward, first.first_backward) + message;
    bound.seconds = std::max(bound.seconds, transfers(c, chunks, stage));
  }
  bound.bytes = std::max(bound.bytes, states_of_all / c.pipe());
  bound.seconds /= faster(c);
  return bound;
}

std::optional<Bound> Bounds::by_schedule(const Candidate& c) {
  Candidate plain = c;
  plain.offload = {};
  return by_tasks(c, plain);
}

std::optional<Bound> Bounds::by_files(const Candidate& c) {
  return by_tasks(c, c);
}

// Uses the chunks of another candidate, which take no longer.
std::optional<Bound> Bounds::by_tasks(const Candidate& c, const Candidate& like) {
  const auto found = chunks_of(like);
  if (!found) return std::nullopt;
  const Chunks& chunks = *found;
  const int64_t micro = micro_batches(settings_, c);
  plan::Schedule schedule;
  try {
    schedule = plan::make_schedule(c.schedule, c.pipe(), c.chunks, micro);
  } catch (const base::UserError&) {
    return std::nullopt;
  }
  const auto unit = [&](const Task& t) -> const UnitCost& { return chunks[static_cast<size_t>(t.chunk)]; };
  const auto place_of = [&](const Task& t) {
    return t.micro_batch == 0 ? Place::first : t.micro_batch == micro - 1 ? Place::last : Place::between;
  };
  const auto seconds = [&](const Task& t) {
    const Place place = place_of(t);
    if (t.work == Work::forward) return unit(t).forward;
    if (t.work == Work::weight) return weight_of(unit(t), place);
    return backward_of(unit(t), place) + (schedule.split ? 0 : weight_of(unit(t), place));
  };
  // Anywhere in the pass, before it needs what another stage sends or after its result.
  const auto waits = [&](const Task& t) {
    const UnitCost& u = unit(t);
    return file_wait(t.work == Work::forward    ? u.file_forward
                     : t.work == Work::backward ? u.file_backward
                                                : u.file_weight,
                     seconds(t));
  };
  const plan::Timeline timeline = plan::timeline(
      schedule,
      {.cost = [&](const Task& t) { return seconds(t) + waits(t); },
       .alone =
           [&](const Task& t) {
             const double kernels = t.work == Work::forward    ? unit(t).forward_alone
                                    : t.work == Work::backward ? unit(t).alone
                                                               : 0;
             return kernels + waits(t);
           },
       .rest = [&](const Task& t) { return waits(t) + (t.work == Work::backward ? rest_of(unit(t), place_of(t)) : 0); },
       .message = message_seconds(c)});
  const auto shared = static_cast<double>(shared_by(c));
  Bound bound = {.seconds = timeline.length};
  for (int stage = 0; stage < c.pipe(); ++stage) {
    const std::vector<Task>& tasks = schedule.tasks[static_cast<size_t>(stage)];
    const std::vector<plan::Span>& spans = timeline.spans[static_cast<size_t>(stage)];
    UnitCost all;
    for (size_t g = static_cast<size_t>(stage); g < chunks.size(); g += static_cast<size_t>(c.pipe())) all += chunks[g];
    if (c.offload.optimizer) all.optimizer = 0;
    double end = spans.back().end;  // of passes, and of the step's reductions that they have started
    int64_t carried = 0, most = 0;
    for (size_t at = 0; at < tasks.size(); ++at) {
      const Task& t = tasks[at];
      if (t.work == (schedule.split ? Work::weight : Work::backward) && t.micro_batch == micro - 1)
        end = std::max(end, spans[at].end + std::max(0.0, unit(t).sums - waits(t)));
      if (t.work != Work::weight && t.micro_batch == micro - 1)
        bound.seconds = std::max(
            bound.seconds, spans[at].begin + unit(t).data_last + (t.work == Work::forward ? unit(t).data_forward : 0));
      if (t.work == Work::forward) most = std::max(most, carried += unit(t).carried);
      if (t.work == Work::weight) carried -= unit(t).for_weight;
      if (t.work != Work::backward) continue;
      if (t.micro_batch > 0) most = std::max(most, carried + unit(t).beside);  // the first overwrites accumulators
      most = std::max(most, carried += unit(t).for_weight - unit(t).carried);
    }
    const double gathered =
        c.zero == 1 || c.zero == 2 ? data_seconds(c, Collective::all_gather, static_cast<double>(all.weights)) : 0;
    // The update fetches the optimizer states and stores the new ones.
    const double file = file_seconds(all.file_step / shared);
    bound.seconds = std::max({bound.seconds, end + std::max({all.update / shared, all.update_transfers, gathered}),
                              spans.back().end + file, transfers(c, chunks, stage)});
    if (c.offload.activations || !bounds_activations()) most = 0;
    bound.bytes = std::max(bound.bytes, together(states_of(c, all), gradients_of(c, all), most, micro));
  }
  bound.seconds /= faster(c);
  return bound;
}

}  // namespace kintsugi::search
