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

// The run on one replica of one stage (two, if the run has more than one), of a few layers of each kind.
Settings small_run(const Settings& settings, const Candidate& c, const std::vector<LayerKind>& kinds) {
  Candidate one = c;
  one.pipe = one.chunks = 1;
  one.data = c.data > 1 ? 2 : 1;
  one.zero = c.data > 1 ? c.zero : 0;
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

// The seconds of a stage that runs kernels, and of transfers that nothing else disturbs.
class Clock {
 public:
  double now = 0;

  // Kernels are slower while bytes flow.
  void run(double seconds) {
    std::erase_if(flows_, [&](const Flow& f) { return f.end <= now; });
    while (seconds > 0) {
      double slowdown = 1, until = std::numeric_limits<double>::infinity();
      for (const Flow& f : flows_) {
        if (f.end <= now) continue;
        until = std::min(until, f.begin > now ? f.begin : f.end);
        if (f.begin <= now) slowdown = std::max(slowdown, f.slowdown);
      }
      if (seconds * slowdown <= until - now) {
        now += seconds * slowdown;
        return;
      }
      seconds -= (until - now) / slowdown;
      now = until;
    }
  }

  // Returns when it is done.
  double transfer(const program::Queue& queue, const simulate::TransferTime& time, const Cluster& cluster) {
    double& free = free_[queue];
    const double begin = std::max(free, now) + time.latency;
    free = begin + time.seconds;
    const double slowdown = time.link == simulate::LinkKind::node      ? cluster.node.slowdown
                            : time.link == simulate::LinkKind::network ? cluster.network.link.slowdown
                                                                       : 1;
    flows_.push_back({begin, free, slowdown});
    return free;
  }

 private:
  struct Flow {
    double begin = 0, end = 0, slowdown = 1;
  };

  std::vector<Flow> flows_;
  std::map<program::Queue, double> free_;  // when a channel is
};

// Seconds and bytes by layer, the embedding's at 0 and the head's behind the last layer.
class Measured {
 public:
  // `kinds`: of layers, each of which the program has so often.
  Measured(const Program& p, size_t kinds, const Cluster& cluster, double slowest, const Candidate& c)
      : p_(p),
        kinds_(kinds),
        cluster_(cluster),
        slowest_(slowest),
        candidate_(c),
        costs_(cluster, simulate::softwares().front()),
        layers_(layers_of(p)),
        units_(static_cast<size_t>(layers_ + 2)) {}

  std::vector<UnitCost> take() {
    for (const program::Body& body : p_.bodies) {
      arranged_.push_back(simulate::arranged(p_, body, simulate::softwares().front()));
      seconds_.push_back(by_unit(arranged_.back()));
    }
    for (const auto& [position, call, body] : program::walk(p_, p_.list(program::Step::train))) add(call, body);
    if (candidate_.data > 1) add_passes();
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
  simulate::TransferTime transfer(const Instruction& i, const program::Queue& queue) const {
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
    return simulate::transfer_time(cluster_, simulate::shape_of(cluster_, ranks), i.collective, bytes);
  }

  bool is_over_data(const Instruction& i) const {
    return std::ranges::any_of(i.group, [&](mesh::Factor f) {
      return p_.mesh.axes()[static_cast<size_t>(p_.mesh.factor(f).axis)].name == "data";
    });
  }

  // The instructions of the layers from `first` to `last`, or of others, as one step after another; `over_data`: with
  // what goes over the data axis. f(instruction, seconds) of each.
  template <typename F>
  double run(const std::vector<simulate::Arranged>& list, int first, int last, bool over_data, F&& f) const {
    Clock clock;
    std::map<int, double> ends;  // of events
    for (const simulate::Arranged& a : list) {
      const Instruction& i = *a.instruction;
      if (i.layer < first || i.layer > last) continue;
      const double begin = clock.now;
      if (i.kind == Kind::compute) {
        clock.run(costs_.of(p_, a).seconds * slowest_);
      } else if (i.kind == Kind::collective) {
        if (!over_data && is_over_data(i)) continue;
        const program::Queue queue = program::queue_of(i);
        const std::tuple key(queue, i.collective, i.cost.wire_bytes);
        auto known = transfers_.find(key);
        if (known == transfers_.end()) known = transfers_.emplace(key, transfer(i, queue)).first;
        const double end = clock.transfer(queue, known->second, cluster_);
        // Sums of a step may be waited for later than in its last pass.
        if (candidate_.zero >= 2 || !is_over_data(i)) ends[i.event] = end;
      } else if (i.kind == Kind::wait && ends.contains(i.event)) {
        clock.now = std::max(clock.now, ends[i.event]);
      }
      f(i, clock.now - begin);
    }
    return clock.now;
  }

  // By layer, without the data axis.
  std::vector<double> by_unit(const std::vector<simulate::Arranged>& list) const {
    std::vector<double> seconds(units_.size(), 0);
    run(list, -1, layers_, false, [&](const Instruction& i, double s) { seconds[unit(i.layer)] += s; });
    return seconds;
  }

  // Of a pass: each layer, and what is added.
  struct Parts {
    double UnitCost::*each;
    double UnitCost::*start;
    double UnitCost::*one;
  };

  // With the data axis. The seconds of a pass grow by no less from layer to layer, as what is awaited at its end is
  // less and less hidden: with what the third layer adds to two, a pass of more is not too long.
  void add_pass(size_t body, const Parts& parts) {
    const std::vector<simulate::Arranged>& list = arranged_[body];
    const auto seconds = [&](int first, int last) {
      return run(list, first, last, true, [](const Instruction&, double) {});
    };
    if (kinds_ > 1) {
      // Layers that differ share what is hidden: as if all that goes over the data axis were, but of a pass of one.
      for (int layer = 0; layer < layers_; ++layer) {
        UnitCost& u = units_[unit(layer)];
        u.*parts.one = u.*parts.start = std::max(0.0, seconds(layer, layer) - u.*parts.each);
      }
      return;
    }
    const double one = seconds(1, 1), two = std::min(seconds(0, 1), seconds(1, 2)), three = seconds(0, 2);
    for (int layer = 0; layer < layers_; ++layer) {
      UnitCost& u = units_[unit(layer)];
      u.*parts.each = three - two;
      u.*parts.start = two - 2 * (three - two);
      u.*parts.one = one - (three - two);
    }
    units_.front().*parts.each = seconds(-1, 0) - seconds(0, 0);
    units_.back().*parts.each = seconds(layers_ - 1, layers_) - seconds(layers_ - 1, layers_ - 1);
  }

  void add(const program::Call& call, const program::Body& body) {
    const std::vector<double>& seconds = seconds_[static_cast<size_t>(call.body)];
    const auto to = [&](double UnitCost::*part) {
      for (size_t u = 0; u < units_.size(); ++u) units_[u].*part += seconds[u];
    };
    const bool first = call.micro_batch == 0, middle = call.micro_batch == 1;
    if (middle && body.does(program::Work::forward)) to(&UnitCost::forward);
    if (middle && body.does(program::Work::backward)) to(&UnitCost::backward);
    if (middle && body.does(program::Work::weight)) to(&UnitCost::weight);
    if (first && body.does(program::Work::backward)) to(&UnitCost::first_backward);
    if (first && body.does(program::Work::weight)) to(&UnitCost::first_weight);
    if (middle) middle_bodies_.push_back(static_cast<size_t>(call.body));
    if (call.micro_batch == kMicroBatches - 1) last_bodies_.push_back(static_cast<size_t>(call.body));
    if (call.micro_batch == kMicroBatches - 1 && body.does(program::Work::backward)) to(&UnitCost::last_backward);
    if (call.micro_batch == kMicroBatches - 1 && body.does(program::Work::weight)) to(&UnitCost::last_weight);
    if (body.does(program::Work::update)) {
      // The kernels alone: what ranks send to each other then depends on the data axis.
      for (const simulate::Arranged& a : arranged_[static_cast<size_t>(call.body)])
        if (a.instruction->kind == Kind::compute)
          units_[unit(a.instruction->layer)].update +=
              costs_.of(p_, a).seconds * slowest_ * static_cast<double>(shards());
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

  void add_passes() {
    const std::vector<UnitCost> without = units_;
    for (const size_t b : middle_bodies_) {
      const program::Body& body = p_.bodies[b];
      if (body.does(program::Work::forward))
        add_pass(b, {&UnitCost::forward, &UnitCost::forward_start, &UnitCost::forward_one});
      if (body.does(program::Work::backward))
        add_pass(b, {&UnitCost::backward, &UnitCost::backward_start, &UnitCost::backward_one});
      if (body.does(program::Work::weight))
        add_pass(b, {&UnitCost::weight, &UnitCost::weight_start, &UnitCost::weight_one});
    }
    for (const size_t b : last_bodies_) {
      const program::Body& body = p_.bodies[b];
      if (body.does(program::Work::backward))
        add_pass(b, {&UnitCost::last_backward, &UnitCost::last_backward_start, &UnitCost::last_backward_one});
      if (body.does(program::Work::weight))
        add_pass(b, {&UnitCost::last_weight, &UnitCost::last_weight_start, &UnitCost::last_weight_one});
    }
    for (size_t u = 0; u < units_.size(); ++u) {
      units_[u].first_backward += units_[u].backward - without[u].backward;
      units_[u].first_weight += units_[u].weight - without[u].weight;
    }
  }

  // Ranks of the program among which ZeRO splits states.
  int64_t shards() const { return candidate_.data > 1 && candidate_.zero > 0 ? int64_t{2} * candidate_.context : 1; }

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
  const size_t kinds_;
  const Cluster& cluster_;
  const double slowest_;
  const Candidate& candidate_;
  simulate::KernelCosts costs_;
  const int layers_;
  std::vector<UnitCost> units_;
  mutable std::map<std::tuple<program::Queue, program::Collective, double>, simulate::TransferTime> transfers_;
  std::vector<std::vector<simulate::Arranged>> arranged_;  // by body
  std::vector<std::vector<double>> seconds_;               // by body, by unit
  std::vector<size_t> middle_bodies_, last_bodies_;        // of a micro-batch between others, and of the last
};

template <typename F>
void for_parts(F&& f) {
  for (auto part : {&UnitCost::forward,
                    &UnitCost::backward,
                    &UnitCost::alone,
                    &UnitCost::weight,
                    &UnitCost::first_backward,
                    &UnitCost::first_weight,
                    &UnitCost::forward_start,
                    &UnitCost::backward_start,
                    &UnitCost::weight_start,
                    &UnitCost::last_backward,
                    &UnitCost::last_weight,
                    &UnitCost::last_backward_start,
                    &UnitCost::last_weight_start,
                    &UnitCost::last_backward_one,
                    &UnitCost::last_weight_one,
                    &UnitCost::forward_one,
                    &UnitCost::backward_one,
                    &UnitCost::weight_one,
                    &UnitCost::update,
                    &UnitCost::flops,
                    &UnitCost::file_pass,
                    &UnitCost::file_step})
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
          .zero = c.data > 1 ? c.zero : 0,
          .data = c.data};
}

FewLayers few_layers(const Settings& settings, const Candidate& c) {
  const Settings s = small_run(settings, c, kinds_of(settings.model));
  plan::Plan plan = build::plan_of(s);
  plan.schedule = s.parallel.schedule;  // on one stage too, where it only says whether backward passes are split
  models::Graphs graphs = models::build_training(s);
  plan::check_plan(plan, build::dims_of(graphs));
  std::vector<double> flops = build::layer_flops(s, *graphs.micro);
  for (double& f : flops) f /= static_cast<double>(s.parallel.data);  // of one replica
  std::vector<Program> programs =
      build::build_programs(s, std::move(graphs), *build::kernels_of(s), plan, lower::Extent::timed);
  return {.program = std::move(programs[0]), .flops = std::move(flops)};
}

UnitCosts unit_costs(const Settings& settings, const FewLayers& compiled, const Candidate& c, const Cluster& cluster,
                     int64_t devices) {
  const std::vector<LayerKind> kinds = kinds_of(settings.model);
  const std::vector<UnitCost> few =
      Measured(compiled.program, kinds.size(), cluster, cluster.slowest_of(devices), c).take();
  const std::vector<double>& flops = compiled.flops;
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
    for (UnitCost& u : of_kind) u.alone = u.forward + std::max(0.0, u.forward_one);
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
