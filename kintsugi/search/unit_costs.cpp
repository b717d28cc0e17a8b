#include "kintsugi/search/unit_costs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "kintsugi/build/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/check_plan.h"
#include "kintsugi/plan/schedule.h"
#include "kintsugi/program/queue.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/simulate/arrange.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/transfer_costs.h"

namespace kintsugi::search {

using config::Settings;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;
using simulate::Cluster;

namespace {

constexpr int kCopiesOfKind = 3;  // a layer at the beginning, one between others and one at the end
constexpr int kMicroBatches = 3;  // the first, one between others and the last

// Layers that differ in what they compute.
struct LayerKind {
  bool window = false, rotary = false;

  bool operator==(const LayerKind&) const = default;
};

LayerKind kind_of(const config::Model& model, int64_t layer) {
  return {config::has_window(model, layer), config::has_rotary(model, layer)};
}

std::vector<LayerKind> kinds_of(const config::Model& model) {
  std::vector<LayerKind> kinds;
  for (int64_t layer = 0; layer < model.layers; ++layer)
    if (!std::ranges::count(kinds, kind_of(model, layer))) kinds.push_back(kind_of(model, layer));
  return kinds;
}

bool gathers_weights(const Candidate& c) {
  return c.zero == 3 && c.data > 1;
}

// The run on one replica of one stage (two, if they gather each other's weights), of a few layers of each kind.
Settings small_run(const Settings& settings, const Candidate& c, const std::vector<LayerKind>& kinds) {
  Candidate one = c;
  one.pipe = one.chunks = 1;
  one.data = gathers_weights(c) ? 2 : 1;
  one.zero = gathers_weights(c) ? 3 : 0;
  one.schedule = plan::schedule_named(c.schedule).split ? c.schedule : "1f1b";
  Settings s = settings_of(settings, one);
  const config::Model& model = settings.model;
  s.model.layers = kCopiesOfKind * std::ssize(kinds);
  if (!model.window_layers.empty()) s.model.window_layers.clear();
  if (!model.rotary_layers.empty()) s.model.rotary_layers.clear();
  for (int copy = 0; copy < kCopiesOfKind; ++copy)
    for (const LayerKind& kind : kinds) {
      if (!model.window_layers.empty()) s.model.window_layers.emplace_back(config::kWindowLayers[kind.window ? 1 : 0]);
      if (!model.rotary_layers.empty()) s.model.rotary_layers.emplace_back(config::kRotaryLayers[kind.rotary ? 1 : 0]);
    }
  s.train.global_batch = kMicroBatches * s.train.micro_batch * one.data;
  s.train.reproducible = 0;
  return s;
}

// Seconds and bytes by layer, the embedding's at 0 and the head's behind the last layer.
class Measured {
 public:
  Measured(const Program& p, const Cluster& cluster, double slowest, const Candidate& c)
      : p_(p),
        cluster_(cluster),
        slowest_(slowest),
        candidate_(c),
        costs_(cluster, simulate::softwares().front()),
        layers_(layers_of(p)),
        units_(static_cast<size_t>(layers_ + 2)) {}

  std::vector<UnitCost> take() {
    for (const program::Body& body : p_.bodies)
      seconds_.push_back(time(simulate::arranged(p_, body, simulate::softwares().front()), false));
    for (const auto& [position, call, body] : program::walk(p_, p_.list(program::Step::train))) add(call, body);
    add_states();
    add_read_again();
    if (!candidate_.offload.activations) add_carried();
    return std::move(units_);
  }

 private:
  static int layers_of(const Program& p) {
    int most = 0;
    for (const program::StateInfo& s : p.states) most = std::max(most, s.layer);
    for (const program::Body& body : p.bodies)
      for (const Instruction& i : body.instructions) most = std::max(most, i.layer);
    return most;
  }

  // Attention too: what the peak of products limits.
  static bool is_product(const Instruction& i) {
    return i.kind == Kind::compute &&
           (i.kernel == "contract" || i.kernel.starts_with("attention") || i.kernel.starts_with("head"));
  }

  size_t unit(int layer) const { return static_cast<size_t>(std::clamp(layer, -1, layers_) + 1); }

  // Alone on its links. What goes over the data axis, over as many ranks as the run has there.
  double transfer(const Instruction& i, const program::Queue& queue) const {
    const std::vector<int> members = program::members(p_.mesh, queue, 0);
    double bytes = i.cost.wire_bytes;
    std::vector<int> ranks = members;
    const auto n = static_cast<double>(members.size());
    if (is_over_data(i)) {
      const double real = n / 2 * candidate_.data;
      bytes *= (real - 1) / real / ((n - 1) / n);
      const int stride = candidate_.tensor * (members.size() == 2 ? candidate_.context : 1);
      ranks.clear();
      for (int r = 0; r < static_cast<int>(real); ++r) ranks.push_back(r * stride);
    }
    return simulate::transfer_time(cluster_, simulate::shape_of(cluster_, ranks), i.collective, bytes).total();
  }

  bool is_over_data(const Instruction& i) const {
    return std::ranges::any_of(i.group, [&](mesh::Factor f) {
      return p_.mesh.axes()[static_cast<size_t>(p_.mesh.factor(f).axis)].name == "data";
    });
  }

  // Of instructions that nothing else disturbs: by layer, the kernels, and what they wait for; of what goes over the
  // data axis the gathers of weights, or nothing, since other layers hide it.
  std::vector<double> time(const std::vector<simulate::Arranged>& list, bool gathers) const {
    std::vector<double> by_unit(units_.size(), 0);
    std::map<program::Queue, double> idle;  // when a channel is
    std::map<int, double> ends;             // of events
    double now = 0;
    for (const simulate::Arranged& a : list) {
      const Instruction& i = *a.instruction;
      const double begin = now;
      if (i.kind == Kind::compute) {
        now += costs_.of(p_, a).seconds * slowest_;
      } else if (i.kind == Kind::collective) {
        if (is_over_data(i) && !(gathers && starts(i, program::Collective::all_gather))) continue;
        const program::Queue queue = program::queue_of(i);
        const auto [known, is_new] = transfers_.try_emplace({queue, i.collective, i.cost.wire_bytes}, 0);
        if (is_new) known->second = transfer(i, queue);
        double& free = idle[queue];
        ends[i.event] = free = std::max(free, now) + known->second;
      } else if (i.kind == Kind::wait && ends.contains(i.event)) {
        now = std::max(now, ends[i.event]);
      }
      by_unit[unit(i.layer)] += now - begin;
    }
    return by_unit;
  }

  // How much longer each layer takes alone, with nothing begun before it.
  void add_starts(const program::Body& body, double UnitCost::*to, const std::vector<double>& together) {
    const std::vector<simulate::Arranged> all = simulate::arranged(p_, body, simulate::softwares().front());
    for (int layer = 0; layer < layers_; ++layer) {
      std::vector<simulate::Arranged> own;
      for (const simulate::Arranged& a : all)
        if (a.instruction->layer == layer) own.push_back(a);
      units_[unit(layer)].*to = std::max(0.0, time(own, true)[unit(layer)] - together[unit(layer)]);
    }
  }

  void add(const program::Call& call, const program::Body& body) {
    const std::vector<double>& seconds = seconds_[static_cast<size_t>(call.body)];
    const auto to = [&](double UnitCost::*part) {
      for (size_t u = 0; u < units_.size(); ++u) units_[u].*part += seconds[u];
    };
    const bool first = call.micro_batch == 0, middle = call.micro_batch == 1;
    if (middle && body.does(program::Work::forward)) to(&UnitCost::forward);
    if (middle && body.does(program::Work::backward)) to(&UnitCost::backward);
    if (middle && gathers_weights(candidate_)) {
      if (body.does(program::Work::forward)) add_starts(body, &UnitCost::forward_start, seconds);
      if (body.does(program::Work::backward)) add_starts(body, &UnitCost::backward_start, seconds);
    }
    if (middle && body.does(program::Work::weight)) to(&UnitCost::weight);
    if (first && body.does(program::Work::backward)) to(&UnitCost::first_backward);
    if (first && body.does(program::Work::weight)) to(&UnitCost::first_weight);
    if (body.does(program::Work::update)) {
      // The kernels alone: what ranks send to each other then depends on the data axis.
      for (const simulate::Arranged& a : simulate::arranged(p_, body, simulate::softwares().front()))
        if (a.instruction->kind == Kind::compute)
          units_[unit(a.instruction->layer)].update += costs_.of(p_, a).seconds * slowest_;
    }
    const bool pass =
        body.does(program::Work::forward) || body.does(program::Work::backward) || body.does(program::Work::weight);
    for (const Instruction& i : body.instructions) {
      if (middle && pass && is_product(i)) units_[unit(i.layer)].flops += i.cost.flops;
      if (i.kind != Kind::copy) continue;
      if (call.micro_batch < 0)
        units_[unit(i.layer)].file_step += i.cost.wire_bytes;
      else if (middle)
        units_[unit(i.layer)].file_pass += i.cost.wire_bytes;
    }
  }

  void add_states() {
    const int64_t shards = gathers_weights(candidate_) ? int64_t{2} * candidate_.context : 1;
    std::set<BufferId> seen;
    for (const program::StateInfo& s : p_.states) {
      const BufferId root = p_.root(s.buffer);
      if (!seen.insert(root).second || p_.buffer(root).region != program::Region::state) continue;
      UnitCost& u = units_[unit(s.layer)];
      const int64_t bytes = p_.buffer(root).bytes() * shards;
      if (s.kind == program::StateKind::weight) u.weights += bytes;
      if (s.kind == program::StateKind::gradient) u.gradients += bytes;
      if (s.kind == program::StateKind::optimizer) u.optimizer += bytes;
    }
  }

  void add_read_again() {
    std::map<BufferId, const program::StateInfo*> weights;  // by root
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

  // Values that a forward pass makes and a later pass of the same micro-batch reads.
  void add_carried() {
    std::map<BufferId, int> made;
    std::set<BufferId> carried;
    for (const program::Body& body : p_.bodies) {
      const bool forward = body.does(program::Work::forward);
      for (const Instruction& i : body.instructions) {
        if (forward)
          for (const BufferId b : i.outs) made.try_emplace(p_.root(b), i.layer);
        else if (body.does(program::Work::backward) || body.does(program::Work::weight))
          for (const BufferId b : i.ins) carried.insert(p_.root(b));
      }
    }
    for (const auto& [b, layer] : made)
      if (carried.contains(b) && p_.buffer(b).region == program::Region::arena)
        units_[unit(layer)].carried += p_.buffer(b).bytes();
  }

  const Program& p_;
  const Cluster& cluster_;
  const double slowest_;
  const Candidate& candidate_;
  simulate::KernelCosts costs_;
  const int layers_;
  std::vector<UnitCost> units_;
  mutable std::map<std::tuple<program::Queue, program::Collective, double>, double> transfers_;
  std::vector<std::vector<double>> seconds_;  // by body, by unit
};

template <typename F>
void for_parts(F&& f) {
  for (auto part :
       {&UnitCost::forward, &UnitCost::backward, &UnitCost::alone, &UnitCost::weight, &UnitCost::first_backward,
        &UnitCost::first_weight, &UnitCost::forward_start, &UnitCost::backward_start, &UnitCost::update,
        &UnitCost::flops, &UnitCost::file_pass, &UnitCost::file_step})
    f(part);
  for (auto part :
       {&UnitCost::weights, &UnitCost::gradients, &UnitCost::optimizer, &UnitCost::carried, &UnitCost::read_again})
    f(part);
}

void take_less(UnitCost& a, const UnitCost& b) {
  for_parts([&](auto part) { a.*part = std::min(a.*part, b.*part); });
}

}  // namespace

UnitCost& UnitCost::operator+=(const UnitCost& other) {
  for_parts([&](auto part) { this->*part += other.*part; });
  return *this;
}

Replica replica_of(const Candidate& c) {
  return {.tensor = c.tensor,
          .context = c.context,
          .micro_batch = c.micro_batch,
          .split = plan::schedule_named(c.schedule).split,
          .recompute = c.recompute,
          .offload_optimizer = c.offload.optimizer,
          .offload_activations = c.offload.activations,
          .data = gathers_weights(c) ? c.data : 1};
}

UnitCosts unit_costs(const Settings& settings, const Candidate& c, const Cluster& cluster, int64_t devices) {
  const std::vector<LayerKind> kinds = kinds_of(settings.model);
  const Settings s = small_run(settings, c, kinds);
  plan::Plan plan = build::plan_of(s);
  plan.schedule = s.parallel.schedule;  // on one stage too, where it only says whether backward passes are split
  models::Graphs graphs = models::build_training(s);
  plan::check_plan(plan, build::dims_of(graphs));
  const std::vector<Program> programs = build::build_programs(s, std::move(graphs), *build::kernels_of(s), plan);
  const std::vector<UnitCost> few = Measured(programs[0], cluster, cluster.slowest_of(devices), c).take();
  const std::vector<double> flops = build::layer_flops(s);
  // Of each kind the least of its layers; first and last among them have what the embedding and the head need.
  std::vector<UnitCost> of_kind;
  std::vector<double> flops_of_kind;
  for (size_t k = 0; k < kinds.size(); ++k) {
    UnitCost least = few[1 + k];
    const double file_pass = least.file_pass;  // what the last layers keep is in memory
    for (size_t copy = 1; copy < kCopiesOfKind; ++copy) take_less(least, few[1 + copy * kinds.size() + k]);
    least.file_pass = file_pass;
    of_kind.push_back(least);
    flops_of_kind.push_back(flops[1 + kinds.size() + k - 1]);
  }
  // Layers are computed again before their gradient is there.
  if (c.recompute == config::Recomputed::layers)
    for (UnitCost& u : of_kind) u.alone = u.forward;
  UnitCosts costs;
  for (int64_t layer = 0; layer < settings.model.layers; ++layer) {
    const auto kind = static_cast<size_t>(std::ranges::find(kinds, kind_of(settings.model, layer)) - kinds.begin());
    costs.units.push_back(of_kind[kind]);
    costs.flops.push_back(flops_of_kind[kind]);
  }
  costs.units.front() += few.front();
  costs.units.back() += few.back();
  // The first of the few is of the first kind; the last is of the last, which the model's last layer need not be.
  const size_t last =
      static_cast<size_t>(std::ranges::find(kinds, kind_of(settings.model, settings.model.layers - 1)) - kinds.begin());
  const double head = flops.back() - flops_of_kind.back(), embedding = flops.front() - flops_of_kind.front();
  costs.flops.front() += embedding;
  costs.flops.back() = flops_of_kind[last] + head;
  return costs;
}

}  // namespace kintsugi::search
