#include "kintsugi/simulate/timed_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/config/axes.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/program/queue.h"
#include "kintsugi/simulate/arrange.h"
#include "kintsugi/simulate/kernel_kind.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::simulate {

using program::BufferId;
using program::Collective;
using program::Instruction;
using program::Kind;
using program::Program;

namespace {

// Number of pieces of a matmul before a reduction over `tensor` (Transformer Engine, num_splits of a pipeline).
constexpr double kSumPieces = 4;

class Builder {
 public:
  Builder(const Cluster& cluster, const Software& software)
      : cluster_(cluster), software_(software), kernels_(cluster, software) {}

  TimedPrograms build(const std::vector<Program>& programs) {
    for (const Program& p : programs) {
      rank_ = first_rank(p);
      std::vector<std::vector<Item>> bodies;
      for (const program::Body& body : p.bodies) {
        bodies.emplace_back();
        if (software_.repeats_layers && recomputes_layers(body)) add_layer_ends(p, body.chunk, bodies.back());
        add(p, body, arranged(p, body, software_), bodies.back());
        if (software_.fp8) add_amax(p, body, bodies.back());
      }
      result_.bodies.push_back(std::move(bodies));
    }
    result_.channels = static_cast<int>(channels_.size());
    return std::move(result_);
  }

 private:
  // The maximum absolute values of all fp8 operands are reduced over all ranks of a stage at the end of a pass, for the
  // scales of the next (Transformer Engine, delayed scaling, reduce_amax; Megatron, tp_only_amax_red is off).
  void add_amax(const Program& p, const program::Body& body, std::vector<Item>& items) {
    if (!body.does(program::Work::forward) && !body.does(program::Work::backward)) return;
    std::vector<mesh::Factor> factors;  // within a stage
    for (mesh::Factor f = 0; f < static_cast<int>(p.mesh.factors().size()); ++f)
      if (!std::ranges::count(p.mesh.stage_factors(), f)) factors.push_back(f);
    if (factors.empty()) return;
    const double bytes = 4 * static_cast<double>(body.instructions.size());
    const TransferTime t =
        transfer_time(cluster_, shape_of(cluster_, p.mesh.group(rank_, factors)), Collective::all_reduce, bytes);
    items.emplace_back();
    items.back().kernels[static_cast<size_t>(Class::other)] = t.total();
  }

  // The first rank of a stage represents all.
  static int first_rank(const Program& p) {
    for (int rank = 0; rank < p.mesh.ranks(); ++rank)
      if (p.mesh.stage_of(rank) == p.stage) return rank;
    throw base::InternalError("simulate", "stage {} has no rank", p.stage);
  }

  // Complete layers, and not only the core of attention: it then contains norms of the forward pass.
  static bool recomputes_layers(const program::Body& body) {
    return body.does(program::Work::backward) &&
           std::ranges::any_of(body.instructions, [](const Instruction& i) { return kind_of(i) == KernelKind::norm; });
  }

  // For each layer of a chunk, the last matmul of its forward pass and what follows it.
  void add_layer_ends(const Program& p, int chunk, std::vector<Item>& items) {
    const auto forward = std::ranges::find_if(p.bodies, [&](const program::Body& body) {
      return body.does(program::Work::forward) && body.chunk == chunk && body.variant_of < 0;
    });
    base::require(forward != p.bodies.end(), "simulate", "chunk {} has no forward pass", chunk);
    std::vector<Arranged> ends, layer;
    for (const Arranged& a : arranged(p, *forward, software_)) {
      const Instruction& i = *a.instruction;
      if (!layer.empty() && i.layer != layer.back().instruction->layer) layer.clear();
      if (kind_of(i) == KernelKind::contract) {
        // An earlier matmul of the layer is not its end.
        while (!ends.empty() && ends.back().instruction->layer == i.layer) ends.pop_back();
        layer = {a};
      } else if (layer.empty() || is_message(i)) {
        continue;
      } else {
        layer.push_back(a);
      }
      ends.push_back(a);
    }
    add(p, *forward, ends, items);
  }

  void add(const Program& p, const program::Body& body, const std::vector<Arranged>& list, std::vector<Item>& items) {
    const size_t first_item = items.size();
    for (size_t at = 0; at < list.size(); ++at) {
      const Instruction& i = *list[at].instruction;
      if (i.kind == Kind::compute) {
        const KernelTime time = kernels_.of(p, list[at]);
        if (time.seconds == 0) continue;
        if (items.empty() || items.back().kind != Item::Kind::kernels) items.emplace_back();
        items.back().kernels[static_cast<size_t>(time.of)] +=
            time.seconds + (i.launch == 0 && software_.groups_launches ? 0 : software_.host_time);
      } else if (i.kind == Kind::wait) {
        items.push_back({.kind = Item::Kind::wait, .event = i.event});
      } else {
        add_copies(p, i, items);
        items.push_back({.kind = Item::Kind::start, .event = i.event, .transfer = transfer(p, body, i)});
        if (software_.pieces) hide(p, body, list, at, result_.transfers.back());
      }
    }
    if (software_.flat_layers) join_buckets(p, list, first_item, items);
  }

  // Of sharded weights, or of their gradients.
  static bool is_sharding(const Program& p, const Instruction& i) {
    return (starts(i, Collective::all_gather) || starts(i, Collective::reduce_scatter)) &&
           p.buffer(i.ins[0]).type.shape.has(tensor::kFlat);
  }

  // Kernels that pack what is sent, or unpack what was gathered.
  void add_copies(const Program& p, const Instruction& i, std::vector<Item>& items) const {
    if (!is_sharding(p, i)) return;
    const double copies = starts(i, Collective::all_gather) ? software_.gather_copies : software_.reduce_copies;
    if (copies == 0) return;
    const BufferId whole = starts(i, Collective::all_gather) ? i.outs[0] : i.ins[0];
    if (items.empty() || items.back().kind != Item::Kind::kernels) items.emplace_back();
    items.back().kernels[static_cast<size_t>(Class::other)] +=
        kernels_.bytes(copies * static_cast<double>(p.buffer(whole).bytes()));
  }

  // Where the weights of a layer form one collective, buckets other than the largest begin with it.
  void join_buckets(const Program& p, const std::vector<Arranged>& list, size_t first_item, std::vector<Item>& items) {
    std::map<std::pair<int, Collective>, double> largest;
    for (const Arranged& a : list)
      if (is_sharding(p, *a.instruction)) {
        double& bytes = largest[{a.instruction->layer, a.instruction->collective}];
        bytes = std::max(bytes, a.instruction->cost.wire_bytes);
      }
    size_t item = first_item;
    for (const Arranged& a : list) {
      const Instruction& i = *a.instruction;
      if (!is_sharding(p, i)) continue;
      while (items[item].kind != Item::Kind::start || items[item].event != i.event) ++item;
      if (i.cost.wire_bytes < largest[{i.layer, i.collective}])
        result_.transfers[static_cast<size_t>(items[item].transfer)].time.latency = 0;
    }
  }

  // Overlap of matmuls in pieces: a gather arrives concurrently with the pieces of the matmul that reads it; of a
  // reduction, the part of the last piece is exposed. Those of the backward pass overlap with the matmul of the other
  // gradient.
  void hide(const Program& p, const program::Body& body, const std::vector<Arranged>& list, size_t at,
            TimedTransfer& t) const {
    const Instruction& i = *list[at].instruction;
    if (!is_collective(i) || is_message(i) || i.phase == program::Phase::update || !is_over_tensor(p.mesh, i.group))
      return;
    if (starts(i, Collective::reduce_scatter) && body.does(program::Work::forward)) {
      t.time.seconds /= kSumPieces;
    } else if (starts(i, Collective::all_gather)) {
      double product = 0;
      for (size_t next = at + 1; next < list.size() && product == 0; ++next) {
        const KernelTime time =
            list[next].instruction->kind == Kind::compute ? kernels_.of(p, list[next]) : KernelTime{};
        if (time.of == Class::product) product = time.seconds;
      }
      const double hidden = product * (1 - 1 / static_cast<double>(p.mesh.count(i.group)));
      if (t.time.total() <= hidden)
        t.time.seconds = t.time.latency = 0;
      else
        t.time.seconds = std::max(0.0, t.time.seconds - hidden);
    }
  }

  int transfer(const Program& p, const program::Body& body, const Instruction& i) {
    TimedTransfer t;
    const int rank = rank_;
    if (i.kind == Kind::copy) {
      t.channel = channel(p.stage, p.stage, program::queue_of(i));
      t.axis = axis("file");
      t.time = copy_time(cluster_, p.mesh.ranks(), i.cost.wire_bytes);
    } else {
      const program::Queue queue = program::queue_of(i);
      const std::vector<int> members = program::members(p.mesh, queue, rank);
      t.time = transfer_time(cluster_, shape_of(cluster_, members), i.collective, i.cost.wire_bytes);
      t.axis = axis(axis_name(p.mesh, i.group));
      if (starts(i, Collective::send) || starts(i, Collective::receive)) {
        t.receives = starts(i, Collective::receive);
        t.late = t.receives && !software_.overlaps_messages;
        t.buffered = !t.receives && !software_.overlaps_messages;
        if (software_.cuts_messages) t.time = cut_message(p, i, t.time, rank);
        t.other = p.mesh.stage_of(members[0] == rank ? members[1] : members[0]);
        t.channel = channel(t.receives ? t.other : p.stage, t.receives ? p.stage : t.other, {.channel = i.channel});
      } else {
        for (const int member : members)
          base::require(p.mesh.stage_of(member) == p.stage, "simulate", "a collective of several stages");
        t.channel = channel(p.stage, p.stage, queue);
        const bool of_gradients = i.phase == program::Phase::update;
        const Link& link = t.time.link == LinkKind::network ? cluster_.network.link : cluster_.node;
        t.late = (!software_.overlaps_gradients && of_gradients) || link.overlap == 0;
        const bool wide = tensor::size_of(p.buffer(i.ins[0]).type.dtype) > 2;
        if (of_gradients && wide && !starts(i, Collective::all_gather)) t.time.seconds *= software_.gradient_share;
        if (software_.gradient_bucket > 0 && of_gradients) {
          const double elements = software_.gradient_bucket * std::max(1.0, static_cast<double>(members.size()) / 40);
          t.time.latency *= std::min(1.0, static_cast<double>(p.buffer(i.ins[0]).type.shape.elements()) / elements);
        }
        if (software_.gathers_later && body.does(program::Work::update) && starts(i, Collective::all_gather) &&
            p.buffer(p.root(i.outs[0])).region == program::Region::state) {
          t.time.seconds /= parts_of(p);
          t.time.latency /= parts_of(p);
        }
      }
    }
    result_.transfers.push_back(t);
    return static_cast<int>(result_.transfers.size()) - 1;
  }

  // The parts in which weights are gathered during the next step: the chunks of a stage, or else its layers.
  static double parts_of(const Program& p) {
    std::set<int> chunks, layers;
    for (const program::Body& body : p.bodies) {
      if (!body.does(program::Work::forward)) continue;
      chunks.insert(body.chunk);
      for (const Instruction& i : body.instructions) layers.insert(i.layer);
    }
    const size_t parts = p.mesh.stages() > 1 ? chunks.size() : layers.size();
    return static_cast<double>(std::max<size_t>(1, parts));
  }

  // For a value that all ranks over `tensor` hold: sending one part, and gathering the parts.
  TransferTime cut_message(const Program& p, const Instruction& i, TransferTime whole, int rank) const {
    const std::vector<mesh::Factor> factors = tensor_factors(p.mesh);
    const program::Buffer& value = p.buffer(i.ins.empty() ? i.outs[0] : i.ins[0]);
    if (factors.empty() || std::ranges::any_of(factors, [&](mesh::Factor f) { return value.layout.is_split(f); }))
      return whole;
    const auto parts = static_cast<double>(p.mesh.count(factors));
    const TransferTime gather =
        transfer_time(cluster_, shape_of(cluster_, p.mesh.group(rank, factors)), Collective::all_gather,
                      static_cast<double>(value.bytes()) * (parts - 1) / parts);
    whole.seconds /= parts;
    whole.latency += gather.total();
    return whole;
  }

  static std::vector<mesh::Factor> tensor_factors(const mesh::Mesh& mesh) {
    const std::string axes[] = {std::string(config::axis_of(&config::Parallel::tensor).name)};
    return mesh.expand(axes);
  }

  static bool is_over_tensor(const mesh::Mesh& mesh, std::vector<mesh::Factor> group) {
    std::ranges::sort(group);
    return group == tensor_factors(mesh);
  }

  // "data", "data tensor": the axes of a group, regardless of the order of its factors; "data.1" for a part of one.
  static std::string axis_name(const mesh::Mesh& mesh, std::vector<mesh::Factor> group) {
    std::ranges::sort(group);
    return mesh.name_of(group);
  }

  int channel(int from, int to, const program::Queue& queue) {
    return channels_.try_emplace({from, to, queue}, static_cast<int>(channels_.size())).first->second;
  }

  int axis(const std::string& name) {
    const auto found = std::ranges::find(result_.axes, name);
    if (found != result_.axes.end()) return static_cast<int>(found - result_.axes.begin());
    result_.axes.push_back(name);
    return static_cast<int>(result_.axes.size()) - 1;
  }

  const Cluster& cluster_;
  const Software& software_;
  KernelCosts kernels_;
  int rank_ = 0;  // of the stage being added
  TimedPrograms result_;
  std::map<std::tuple<int, int, program::Queue>, int> channels_;  // by the stages at its ends
};

}  // namespace

TimedPrograms timed(const std::vector<Program>& programs, const Cluster& cluster, const Software& software) {
  return Builder(cluster, software).build(programs);
}

}  // namespace kintsugi::simulate
