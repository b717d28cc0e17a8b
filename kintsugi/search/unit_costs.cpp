#include "kintsugi/search/unit_costs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/check_plan.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/plan/schedule.h"
#include "kintsugi/program/queue.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/simulate/arrange.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/transfer_costs.h"

namespace kintsugi::search {

using config::Parallel;
using config::Settings;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;
using simulate::Cluster;

namespace {

constexpr int kCopiesOfKind = 3;  // one at the beginning, one inside and one at the end
constexpr int kMicroBatches = 3;  // the first, an inner one and the last

// Layers that compute different things.
struct LayerKind {
  bool window = false, rotary = false;

  bool operator==(const LayerKind&) const = default;
};

LayerKind kind_of(const config::Model& model, int64_t layer) {
  return {config::has_window(model, layer), config::has_rotary(model, layer)};
}

// None if the layers are not repeated.
std::vector<LayerKind> kinds_of(const config::Model& model) {
  std::vector<LayerKind> kinds;
  if (!has_repeated_layers(model)) return kinds;
  for (int64_t layer = 0; layer < model.layers; ++layer)
    if (!std::ranges::count(kinds, kind_of(model, layer))) kinds.push_back(kind_of(model, layer));
  return kinds;
}

// The run on one replica of one stage (two replicas, if the run has several), with a few layers of each kind; without
// kinds, with all layers.
Settings small_run(const Settings& settings, const Candidate& c, const std::vector<LayerKind>& kinds) {
  Candidate one = c;
  one.sizes.set<&Parallel::pipe>(1);
  one.sizes.set<&Parallel::data>(std::min(c.data(), 2));
  one.chunks = 1;
  one.schedule = plan::schedule_named(c.schedule).split ? c.schedule : "1f1b";
  Settings s = settings_of(settings, one);
  const config::Model& model = settings.model;
  if (!kinds.empty()) s.model.layers = kCopiesOfKind * std::ssize(kinds);
  if (!kinds.empty()) s.model.window_layers.clear();
  if (!kinds.empty()) s.model.rotary_layers.clear();
  for (int copy = 0; copy < kCopiesOfKind; ++copy)
    for (const LayerKind& kind : kinds) {
      if (!model.window_layers.empty()) s.model.window_layers.emplace_back(config::kWindowLayers[kind.window ? 1 : 0]);
      if (!model.rotary_layers.empty()) s.model.rotary_layers.emplace_back(config::kRotaryLayers[kind.rotary ? 1 : 0]);
    }
  s.train.global_batch = kMicroBatches * s.train.micro_batch * one.data_ranks();
  s.train.reproducible = 0;
  return s;
}

// The mesh of the run on one stage.
mesh::Mesh mesh_of(const Settings& settings, const Candidate& c) {
  Candidate one = c;
  one.sizes.set<&Parallel::pipe>(1);
  return plan::plan_from(settings_of(settings, one).parallel).mesh;
}

// Seconds and bytes per layer; index 0 is the embedding, and the head follows the last layer.
class Measured {
 public:
  // `kinds`: number of kinds of layers, each of which occurs kCopiesOfKind times; 0: layers are not repeated.
  Measured(const Settings& settings, const Program& p, size_t kinds, const Cluster& cluster, double slowest,
           const Candidate& c)
      : p_(p),
        kinds_(kinds),
        cluster_(cluster),
        candidate_(c),
        steps_(p, mesh_of(settings, c), cluster, slowest, c),
        layers_(layers_of(p)),
        units_(static_cast<size_t>(layers_ + 2)) {}

  std::vector<UnitCost> take() {
    for (const auto& [position, call, body] : program::walk(p_, p_.list(program::Step::train))) add(call, body);
    add_states();
    add_read_again();
    if (kinds_ == 0) add_data_transfers();
    if (!candidate_.offload.activations) {
      add_carried();
      // Gradients that only ranks of the context axis reduce in each pass are live for less time in some runs.
      if (candidate_.data() > 1 || shards() == 1 || candidate_.zero < 2) add_beside();
    }
    return std::move(units_);
  }
  std::vector<DataPass> take_passes() { return std::move(passes_); }

 private:
  static int layers_of(const Program& p) {
    int most = 0;
    for (const program::StateInfo& s : p.states) most = std::max(most, s.layer);
    for (const program::Body& body : p.bodies)
      for (const Instruction& i : body.instructions) most = std::max(most, i.layer);
    return most;
  }

  // Includes attention: kernels limited by the matmul peak.
  static bool is_product(const Instruction& i) { return i.cost.cost_class != tensor::CostClass::other; }

  size_t unit(int layer) const { return static_cast<size_t>(std::clamp(layer, -1, layers_) + 1); }

  // [layer], without communication over the data axis, or of states over the context axis.
  std::vector<double> by_unit(const std::vector<Step>& list) const {
    std::vector<double> seconds(units_.size(), 0);
    Clock clock(cluster_, steps_.queues());
    std::map<int, double> ends;  // [event]
    for (const Step& s : list) {
      if (s.over_data) continue;
      const double begin = clock.now;
      if (s.kind == Step::Kind::kernel) {
        clock.run(s.seconds);
      } else if (s.kind == Step::Kind::start) {
        ends[s.event] = clock.transfer(s.queue, s.transfer);
      } else if (const auto end = ends.find(s.event); end != ends.end()) {
        clock.now = std::max(clock.now, end->second);
      }
      seconds[unit(s.layer)] += clock.now - begin;
    }
    return seconds;
  }

  struct Timed {
    std::vector<Step> steps;
    std::vector<double> seconds;  // [unit]
  };
  const Timed& timed(int body) {
    const auto [found, is_new] = timed_.try_emplace(body);
    if (is_new) {
      found->second.steps = steps_.of(p_.bodies[static_cast<size_t>(body)]);
      found->second.seconds = by_unit(found->second.steps);
    }
    return found->second;
  }

  void add(const program::Call& call, const program::Body& body) {
    const bool first = call.micro_batch == 0, middle = call.micro_batch == 1, last = call.micro_batch == 2;
    const auto to = [&](program::Work work, bool when, double UnitCost::*part, double UnitCost::*alone = nullptr,
                        double UnitCost::*rest = nullptr) {
      if (!when || !body.does(work)) return;
      const Timed& pass = timed(call.body);
      for (size_t u = 0; u < units_.size(); ++u) units_[u].*part += pass.seconds[u];
      if (kinds_ == 0 || candidate_.data() == 1 || !std::ranges::any_of(pass.steps, &Step::over_data)) return;
      double UnitCost::*sums = std::ranges::any_of(pass.steps, &Step::of_step) ? &UnitCost::sums : nullptr;
      passes_.push_back({part, alone, rest, sums, PassTimes(pass.steps, static_cast<int>(kinds_), steps_.queues())});
    };
    to(program::Work::forward, middle, &UnitCost::forward, &UnitCost::forward_alone);
    to(program::Work::backward, middle, &UnitCost::backward, &UnitCost::alone, &UnitCost::rest);
    to(program::Work::backward, first, &UnitCost::first_backward, &UnitCost::alone, &UnitCost::first_rest);
    to(program::Work::backward, last, &UnitCost::last_backward, &UnitCost::alone, &UnitCost::last_rest);
    to(program::Work::weight, middle, &UnitCost::weight);
    to(program::Work::weight, first, &UnitCost::first_weight);
    to(program::Work::weight, last, &UnitCost::last_weight);
    if (body.does(program::Work::update)) {
      // Kernels only: communication between ranks depends on the data axis.
      for (const simulate::Arranged& a : simulate::arranged(p_, body, simulate::softwares().front()))
        if (a.instruction->kind == Kind::compute)
          units_[unit(a.instruction->layer)].update += steps_.seconds(a) * static_cast<double>(shards());
      add_update_transfers(body);
    }
    const bool pass =
        body.does(program::Work::forward) || body.does(program::Work::backward) || body.does(program::Work::weight);
    for (const Instruction& i : body.instructions) {
      if (middle && pass && is_product(i)) units_[unit(i.layer)].flops += i.cost.flops;
      if (i.kind != Kind::copy) continue;
      if (call.micro_batch < 0)
        units_[unit(i.layer)].file_step += i.cost.wire_bytes * static_cast<double>(shards());
      else if (middle)
        units_[unit(i.layer)].*file_bytes_in(body) += i.cost.wire_bytes;
    }
  }

  static double UnitCost::*file_bytes_in(const program::Body& body) {
    return body.does(program::Work::forward)    ? &UnitCost::file_forward
           : body.does(program::Work::backward) ? &UnitCost::file_backward
                                                : &UnitCost::file_weight;
  }

  // One after another, on the queue that takes longest. The layer of a transfer is that of the kernel that produced its
  // input.
  void add_update_transfers(const program::Body& update) {
    std::map<BufferId, int> layer_of;                         // [value produced by its kernels]
    std::map<int, std::vector<std::pair<int, double>>> sent;  // [queue]: layer and seconds
    for (const Step& s : steps_.of(update)) {
      if (s.kind == Step::Kind::kernel)
        for (const BufferId b : s.instruction->outs) layer_of[p_.root(b)] = s.layer;
      if (s.kind != Step::Kind::start || !s.over_data) continue;
      const auto made = layer_of.find(p_.root(s.instruction->ins[0]));
      sent[s.queue].emplace_back(made == layer_of.end() ? s.layer : made->second, s.transfer.total());
    }
    const auto seconds = [](const auto& queue) {
      double all = 0;
      for (const auto& [layer, s] : queue.second) all += s;
      return all;
    };
    const auto longest = std::ranges::max_element(sent, {}, seconds);
    if (longest == sent.end()) return;
    for (const auto& [layer, s] : longest->second) units_[unit(layer)].update_transfers += s;
  }

  // One after another, as on a queue.
  void add_data_transfers() {
    struct Sent {
      std::vector<double> forward, last, each;  // [unit]
      double all = 0;
    };
    std::map<int, Sent> sent;  // [queue]
    for (const auto& [position, call, body] : program::walk(p_, p_.list(program::Step::train)))
      for (const Step& s : timed(call.body).steps) {
        if (s.kind != Step::Kind::start || !s.over_data) continue;
        Sent& queue = sent[s.queue];
        for (auto* list : {&queue.forward, &queue.last, &queue.each}) list->resize(units_.size());
        std::vector<double>& list = call.micro_batch == 1               ? queue.each
                                    : body.does(program::Work::forward) ? queue.forward
                                                                        : queue.last;
        if (call.micro_batch != 0) list[unit(s.layer)] += s.transfer.total();
        queue.all += s.transfer.total();
      }
    const auto longest = std::ranges::max_element(sent, {}, [](const auto& queue) { return queue.second.all; });
    if (longest == sent.end()) return;
    for (size_t u = 0; u < units_.size(); ++u) {
      units_[u].data_forward = longest->second.forward[u];
      units_[u].data_last = longest->second.last[u];
      units_[u].data_each = longest->second.each[u];
    }
  }

  // Number of ranks of the program over which ZeRO shards states.
  int64_t shards() const {
    return candidate_.zero > 0 ? int64_t{std::min(candidate_.data(), 2)} * candidate_.context() * candidate_.expert()
                               : 1;
  }

  void add_states() {
    const int64_t all = shards();
    const int64_t of_weights = candidate_.zero >= 3 ? all : 1, of_gradients = candidate_.zero >= 2 ? all : 1;
    std::set<BufferId> seen;
    for (const program::StateInfo& s : p_.states) {
      const BufferId root = p_.root(s.buffer);
      if (!seen.insert(root).second || p_.buffer(root).region != program::Region::state) continue;
      UnitCost& u = units_[unit(s.layer)];
      const int64_t bytes = p_.buffer(root).bytes();
      if (s.kind == program::StateKind::weight) u.weights += bytes * of_weights;
      if (s.kind == program::StateKind::gradient) u.gradients += bytes * of_gradients;
      if (s.kind == program::StateKind::optimizer) u.optimizer += bytes * all;
    }
  }

  void add_read_again() {
    std::map<BufferId, const program::StateInfo*> weights;  // [root]
    for (const program::StateInfo& s : p_.states)
      if (s.kind == program::StateKind::weight) weights[p_.root(s.buffer)] = &s;
    std::set<BufferId> seen;
    for (const program::Body& body : p_.bodies)
      if (body.does(program::Work::backward) && body.variant_of < 0)
        for (const Instruction& i : body.instructions)
          for (const BufferId b : i.ins)
            if (const auto found = weights.find(p_.root(b)); found != weights.end() && seen.insert(b).second)
              units_[unit(found->second->layer)].read_again += p_.buffer(b).bytes();
  }

  // Values that a forward pass produces and a later pass of the same micro-batch reads, and those that a weight pass
  // reads.
  void add_carried() {
    using program::Work;
    add_carried({Work::forward}, {Work::backward, Work::weight}, &UnitCost::carried);
    add_carried({Work::forward, Work::backward}, {Work::weight}, &UnitCost::for_weight);
  }
  void add_carried(const std::vector<program::Work>& makers, const std::vector<program::Work>& readers,
                   int64_t UnitCost::*bytes) {
    std::map<BufferId, const Instruction*> made, read;  // [root]: the first instruction that does
    for (const program::Body& body : p_.bodies) {
      const auto does = [&](program::Work work) { return body.does(work); };
      for (const Instruction& i : body.instructions) {
        if (std::ranges::any_of(makers, does))
          for (const BufferId b : i.outs) made.try_emplace(p_.root(b), &i);
        else if (std::ranges::any_of(readers, does))
          for (const BufferId b : i.ins) read.try_emplace(p_.root(b), &i);
      }
    }
    // A gradient produced by the next layer is kept for this layer's weights, even if that layer is on another stage.
    for (const auto& [b, maker] : made) {
      if (!read.contains(b) || p_.buffer(b).region != program::Region::arena) continue;
      const Instruction& keeper = maker->phase == program::Phase::forward ? *maker : *read.at(b);
      units_[unit(keeper.layer)].*bytes += p_.buffer(b).bytes();
    }
  }

  // A value of the arena that a backward pass keeps in memory between two of its instructions.
  struct Life {
    int layer = 0;
    bool carried = false;
    size_t made = 0, used = 0;  // indices of instructions
    int64_t bytes = 0;
  };
  std::vector<Life> lives_in(const program::Body& backward) const {
    std::map<BufferId, Life> lives;
    const auto make = [&](BufferId b, const Life& life) {
      const program::Buffer& root = p_.buffer(p_.root(b));
      if (root.region != program::Region::arena || steps_.is_shard(p_.root(b))) return;
      lives.try_emplace(p_.root(b), life).first->second.bytes = root.bytes();
    };
    const auto use = [&](const Instruction& i, size_t at) {
      for (const BufferId b : i.ins)
        if (const auto life = lives.find(p_.root(b)); life != lives.end()) life->second.used = at;
    };
    for (const program::Body& body : p_.bodies)
      if (body.does(program::Work::forward) && body.variant_of < 0)
        for (const Instruction& i : body.instructions)
          for (const BufferId b : i.outs) make(b, {.layer = i.layer, .carried = true});
    const std::vector<Instruction>& list = backward.instructions;
    for (size_t at = 0; at < list.size(); ++at) {
      use(list[at], at);
      for (const BufferId b : list[at].outs) make(b, {.layer = list[at].layer, .made = at});
    }
    for (const program::Body& body : p_.bodies)
      if (body.does(program::Work::weight) && body.variant_of < 0)
        for (const Instruction& i : body.instructions) use(i, list.size());
    std::vector<Life> all;
    for (const auto& [b, life] : lives) all.push_back(life);
    return all;
  }

  // While the first layer of a pass is active, or one after another, everything that the others carry is in memory.
  void add_beside() {
    const auto backward = std::ranges::find_if(
        p_.bodies, [](const program::Body& body) { return body.does(program::Work::backward) && body.variant_of < 0; });
    if (backward == p_.bodies.end()) return;
    const std::vector<Life> lives = lives_in(*backward);
    const int kinds = static_cast<int>(kinds_);
    for (int kind = 0; kind < kinds; ++kind) {
      const int layer = kinds + kind, next = layer - 1, before = layer + 1;  // backwards
      int64_t one = 0, more = 0;
      for (size_t at = 0; at < backward->instructions.size(); ++at) {
        if (backward->instructions[at].layer != layer) continue;
        int64_t own = -units_[unit(layer)].carried, of_next = 0, of_before = -units_[unit(before)].carried;
        for (const Life& life : lives) {
          if (life.made > at || life.used <= at) continue;
          if (life.layer == layer) own += life.bytes;
          if (life.layer == next && !life.carried) of_next += life.bytes;
          if (life.layer == before && !life.carried) of_before += life.bytes;
        }
        one = std::max(one, own);
        more = std::max({more, own + of_next, own + of_before});
      }
      for (int copy = 0; copy < kCopiesOfKind; ++copy) {
        units_[unit(copy * kinds + kind)].beside_of_one = one;
        units_[unit(copy * kinds + kind)].beside = more;
      }
    }
  }

  const Program& p_;
  const size_t kinds_;
  const simulate::Cluster& cluster_;
  const Candidate& candidate_;
  Steps steps_;
  const int layers_;
  std::vector<UnitCost> units_;
  std::map<int, Timed> timed_;  // [body]
  std::vector<DataPass> passes_;
};

template <typename F>
void for_parts(F&& f) {
  for (auto part : {&UnitCost::forward, &UnitCost::backward, &UnitCost::alone, &UnitCost::weight,
                    &UnitCost::first_backward, &UnitCost::first_weight, &UnitCost::last_backward,
                    &UnitCost::last_weight, &UnitCost::update, &UnitCost::update_transfers, &UnitCost::data_forward,
                    &UnitCost::data_last, &UnitCost::data_each, &UnitCost::flops, &UnitCost::file_forward,
                    &UnitCost::file_backward, &UnitCost::file_weight, &UnitCost::file_step})
    f(part);
  for (auto part : {&UnitCost::weights, &UnitCost::gradients, &UnitCost::optimizer, &UnitCost::carried,
                    &UnitCost::for_weight, &UnitCost::read_again})
    f(part);
}

void take_less(UnitCost& a, const UnitCost& b) {
  for_parts([&](auto part) { a.*part = std::min(a.*part, b.*part); });
  a.beside = std::min(a.beside, b.beside);
  a.beside_of_one = std::min(a.beside_of_one, b.beside_of_one);
}

// `measured`: the embedding, each layer and the head.
UnitCosts of_all_layers(const std::vector<UnitCost>& measured, const std::vector<double>& flops, const Candidate& c) {
  base::require(measured.size() == flops.size() + 2, "search", "{} layers, and {} have costs", flops.size(),
                measured.size());
  UnitCosts costs = {.units = {measured.begin() + 1, measured.end() - 1}, .flops = flops};
  costs.kinds.resize(flops.size());
  if (c.recompute == config::Recomputed::layers)
    for (UnitCost& u : costs.units) u.alone = u.forward;
  costs.units.front() += measured.front();
  costs.units.back() += measured.back();
  return costs;
}

}  // namespace

UnitCost& UnitCost::operator+=(const UnitCost& other) {
  for_parts([&](auto part) { this->*part += other.*part; });
  return *this;
}

bool has_repeated_layers(const config::Model& model) {
  return models::reads_tokens(model) && (model.experts == 0 || model.dense_layers == 0);
}

Replica replica_of(const Candidate& c) {
  AxisSizes sizes = c.sizes;
  sizes.set<&Parallel::pipe>(1);
  return {.sizes = sizes,
          .micro_batch = c.micro_batch,
          .split = plan::schedule_named(c.schedule).split,
          .recompute = c.recompute,
          .offload_optimizer = c.offload.optimizer,
          .offload_activations = c.offload.activations,
          .zero = c.shards() > 1 ? c.zero : 0};
}

FewLayers few_layers(const Settings& settings, const Candidate& c) {
  const Settings s = small_run(settings, c, kinds_of(settings.model));
  plan::Plan plan = compile::plan_of(s);
  plan.schedule = s.parallel.schedule;  // even on one stage, where it only determines whether backward passes are split
  models::Graphs graphs = models::build_training(s);
  plan::check_plan(plan, compile::dims_of(graphs));
  std::vector<double> flops = compile::layer_flops(s, *graphs.micro);
  for (double& f : flops) f /= static_cast<double>(config::data_ranks(s.parallel));  // of one replica
  std::vector<Program> programs = compile::compile({.settings = s,
                                                    .kernels = *compile::kernels_of(s),
                                                    .graphs = &graphs,
                                                    .plan = &plan,
                                                    .extent = lower::Extent::timed});
  return {.program = std::move(programs[0]), .flops = std::move(flops)};
}

UnitCost whole_model(const Settings& settings) {
  Settings s = settings_of(settings, {});
  s.train.global_batch = s.train.micro_batch = 1;
  s.train.reproducible = 0;
  s.model.batch_norm = "all";  // one sample may be less than a group
  const Program p = compile::only_stage(
      compile::compile({.settings = s, .kernels = *compile::kernels_of(s), .extent = lower::Extent::timed}));
  UnitCost all;
  program::for_each_instruction(p, p.list(program::Step::train), [&](const auto&, size_t, const Instruction& i) {
    if (i.cost.cost_class != tensor::CostClass::other) all.flops += i.cost.flops;
  });
  std::set<BufferId> seen;
  for (const program::StateInfo& state : p.states) {
    const BufferId root = p.root(state.buffer);
    if (!seen.insert(root).second || p.buffer(root).region != program::Region::state) continue;
    if (state.kind == program::StateKind::weight) all.weights += p.buffer(root).bytes();
    if (state.kind == program::StateKind::gradient) all.gradients += p.buffer(root).bytes();
    if (state.kind == program::StateKind::optimizer) all.optimizer += p.buffer(root).bytes();
  }
  return all;
}

UnitCosts unit_costs(const Settings& settings, const FewLayers& compiled, const Candidate& c, const Cluster& cluster,
                     int64_t devices) {
  const std::vector<LayerKind> kinds = kinds_of(settings.model);
  Measured measured(settings, compiled.program, kinds.size(), cluster, cluster.slowest_of(devices), c);
  const std::vector<UnitCost> few = measured.take();
  const std::vector<double>& flops = compiled.flops;
  if (kinds.empty()) return of_all_layers(few, flops, c);
  // The minimum over the layers of each kind; the first and last of them include the embedding and the head.
  std::vector<UnitCost> of_kind;
  std::vector<double> flops_of_kind;
  for (size_t k = 0; k < kinds.size(); ++k) {
    UnitCost least = few[1 + k];
    for (size_t copy = 1; copy < kCopiesOfKind; ++copy) take_less(least, few[1 + copy * kinds.size() + k]);
    for (auto bytes : {&UnitCost::file_forward, &UnitCost::file_backward, &UnitCost::file_weight})
      least.*bytes = few[1 + k].*bytes;  // what the last layers keep is in memory
    of_kind.push_back(least);
    flops_of_kind.push_back(flops[1 + kinds.size() + k - 1]);
  }
  UnitCosts costs = {.passes = measured.take_passes()};
  // Layers are recomputed before their gradient arrives.
  if (c.recompute == config::Recomputed::layers)
    for (UnitCost& u : of_kind) u.alone = u.forward;
  for (int64_t layer = 0; layer < settings.model.layers; ++layer) {
    const auto kind = static_cast<size_t>(std::ranges::find(kinds, kind_of(settings.model, layer)) - kinds.begin());
    costs.units.push_back(of_kind[kind]);
    costs.kinds.push_back(static_cast<int>(kind));
    costs.flops.push_back(flops_of_kind[kind]);
  }
  costs.units.front() += few.front();
  costs.units.back() += few.back();
  // The first layer of the few is of the first kind, the last of the last kind, which the model's last layer need not
  // be.
  const size_t last =
      static_cast<size_t>(std::ranges::find(kinds, kind_of(settings.model, settings.model.layers - 1)) - kinds.begin());
  const double head = flops.back() - flops_of_kind.back(), embedding = flops.front() - flops_of_kind.front();
  costs.flops.front() += embedding;
  costs.flops.back() = flops_of_kind[last] + head;
  return costs;
}

}  // namespace kintsugi::search
