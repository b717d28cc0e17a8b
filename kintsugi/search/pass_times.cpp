#include "kintsugi/search/pass_times.h"

#include <algorithm>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/simulate/arrange.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::search {

using program::Instruction;
using program::Program;

Steps::Steps(const Program& p, mesh::Mesh whole, const simulate::Cluster& cluster, double slowest,
             const Candidate& candidate)
    : p_(p),
      whole_(std::move(whole)),
      cluster_(cluster),
      slowest_(slowest),
      candidate_(candidate),
      costs_(cluster, simulate::softwares().front()) {
  const std::vector<mesh::Axis>& axes = p.mesh.axes();
  const auto found = std::ranges::find(axes, config::axis_of(&config::Parallel::data).name, &mesh::Axis::name);
  data_ = static_cast<int>(found - axes.begin());
}

std::vector<Step> Steps::of(const program::Body& body) {
  std::vector<Step> steps;
  const Handed handed = handed_on(body);
  std::set<int> awaited;  // events
  for (const Instruction& i : body.instructions)
    if (i.kind == program::Kind::wait) awaited.insert(i.event);
  for (const simulate::Arranged& a : simulate::arranged(p_, body, simulate::softwares().front())) {
    const Instruction& i = *a.instruction;
    Step step = {.hands_on = handed.from.contains(&i),
                 .takes_up = handed.to.contains(&i),
                 .layer = i.layer,
                 .event = i.event,
                 .instruction = &i};
    if (i.kind == program::Kind::compute) {
      step.seconds = seconds(a);
      if (std::ranges::any_of(i.ins, [&](program::BufferId b) { return is_shard(b); }))
        step.seconds *= 2.0 / candidate_.data();
      if (step.seconds == 0) continue;
    } else if (i.kind == program::Kind::collective) {
      const program::Queue queue = program::queue_of(i);
      step.kind = Step::Kind::start;
      step.over_data = is_over_data(i) || is_of_states(i);
      step.of_step = !awaited.contains(i.event);
      step.queue = queues_.try_emplace(queue, static_cast<int>(queues_.size())).first->second;
      const Group& group = group_of(queue);
      step.transfer = simulate::transfer_time(cluster_, group.shape, i.collective, group.bytes * i.cost.wire_bytes);
    } else if (i.kind == program::Kind::wait && i.awaited == program::Kind::collective) {
      step.kind = Step::Kind::wait;
    } else {
      continue;
    }
    steps.push_back(step);
  }
  return steps;
}

// Finds what produces a value that another layer consumes later, or waits for it, and what consumes that of the
// adjacent layer.
Steps::Handed Steps::handed_on(const program::Body& body) const {
  std::map<program::BufferId, std::vector<const Instruction*>> makers;
  Handed found;
  for (const Instruction& i : body.instructions) {
    for (const program::BufferId b : i.ins)
      if (const auto made = makers.find(p_.root(b)); made != makers.end())
        for (const Instruction* maker : made->second) {
          if (maker->layer != i.layer) found.from.insert(maker);
          if (std::abs(maker->layer - i.layer) == 1) found.to.insert(&i);
        }
    for (const program::BufferId b : i.outs) {
      if (p_.buffer(p_.root(b)).region != program::Region::arena) continue;
      std::vector<const Instruction*>& made = makers[p_.root(b)];
      if (i.kind != program::Kind::wait) made.clear();
      made.push_back(&i);
    }
  }
  return found;
}

bool Steps::is_over_data(const Instruction& i) const {
  return std::ranges::any_of(i.group, [&](mesh::Factor f) { return is_data(f); });
}

bool Steps::is_of_states(const Instruction& i) const {
  return std::ranges::any_of(i.ins, [&](program::BufferId b) { return p_.buffer(b).type.shape.has(tensor::kFlat); });
}

// The batch grows with the axis, so that a rank's share is constant.
bool Steps::is_shard(program::BufferId b) const {
  return std::ranges::any_of(p_.buffer(b).layout.splits(), [&](const mesh::Split& split) {
    return split.dim != tensor::kSamples &&
           std::ranges::any_of(split.factors, [&](mesh::Factor f) { return is_data(f); });
  });
}

// Of a queue in the run: the data axis is as large as there.
const Steps::Group& Steps::group_of(const program::Queue& queue) {
  const auto [found, is_new] = groups_.try_emplace(queue);
  Group& group = found->second;
  if (!is_new) return group;
  std::vector<int> ranks = program::members(p_.mesh, queue, 0);
  if (std::ranges::any_of(queue.group, [&](mesh::Factor f) { return is_data(f); })) {
    const auto few = static_cast<double>(ranks.size());
    std::vector<std::string> names;
    for (const mesh::Factor f : queue.group)
      names.push_back(is_data(f) ? p_.mesh.axes()[static_cast<size_t>(data_)].name : p_.mesh.factor(f).name);
    ranks = whole_.group(0, whole_.expand(names));
    const auto all = static_cast<double>(ranks.size());
    group.bytes = (all - 1) / all / ((few - 1) / few);
  }
  group.shape = simulate::shape_of(cluster_, ranks);
  return group;
}

PassTimes::PassTimes(const std::vector<Step>& list, int kinds, int queues)
    : kinds_(kinds), queues_(queues), blocks_(static_cast<size_t>(kinds)) {
  constexpr size_t kNowhere = static_cast<size_t>(-1);
  const int layers = 3 * kinds;
  std::vector<size_t> begins(static_cast<size_t>(layers), kNowhere);  // [layer]: of its kernels
  for (size_t at = 0; at < list.size(); ++at) {
    const Step& s = list[at];
    if (s.kind != Step::Kind::kernel || s.layer < 0 || s.layer >= layers) continue;
    size_t& begin = begins[static_cast<size_t>(s.layer)];
    begin = std::min(begin, at);
  }
  ascending_ = begins.front() < begins.back();
  if (!ascending_) std::ranges::reverse(begins);
  base::require(std::ranges::is_sorted(begins) && begins.back() != kNowhere, "search",
                "the layers of a pass are not consecutive");
  const auto position = [&](int layer) { return ascending_ ? layer : layers - 1 - layer; };  // in pass order
  // Identifies the same collectives of different layers.
  std::map<std::tuple<int, double, double, int>, int> known;
  std::map<std::tuple<int, int, double, double>, int> number;  // number of such collectives of a layer
  std::map<int, int> events;
  const auto event_of = [&](const Step& s) {
    if (s.kind == Step::Kind::kernel) return -1;
    if (s.kind == Step::Kind::wait) return events.contains(s.event) ? events.at(s.event) : -1;
    const int n = number[{s.layer, s.queue, s.transfer.latency, s.transfer.seconds}]++;
    const auto [found, is_new] =
        known.try_emplace({s.queue, s.transfer.latency, s.transfer.seconds, n}, static_cast<int>(known.size()));
    return events[s.event] = found->second;
  };
  for (size_t at = 0; at < list.size(); ++at) {
    const Step& s = list[at];
    const int event = event_of(s);
    const int here = static_cast<int>(std::ranges::upper_bound(begins, at) - begins.begin()) - 1;  // position
    if (s.layer < 0 || s.layer >= layers) {
      const Piece::Place place = here < 0            ? Piece::Place::front
                                 : here < layers / 2 ? Piece::Place::first
                                                     : Piece::Place::last;
      pieces_.push_back({s, s.layer < 0 ? Piece::Of::embedding : Piece::Of::head, place, event});
      continue;
    }
    if (here < 0 && s.over_data && s.kind == Step::Kind::start && position(s.layer) == 0)
      pieces_.push_back({s, Piece::Of::first_layer, Piece::Place::front, event});
    int beside = position(s.layer) - here, block = here;
    // A gather that was moved to the beginning of the previous layer.
    if (s.kind == Step::Kind::start && beside == 2) --beside, ++block;
    if (block < kinds || block >= 2 * kinds || std::abs(beside) > 1) continue;
    const int kind = position(block) % kinds;
    blocks_[static_cast<size_t>(kind)].push_back({s, beside, event});
  }
  events_ = static_cast<int>(known.size());
}

PassSeconds PassTimes::seconds(const simulate::Cluster& cluster, const PassRange& range, bool late) const {
  const int layers = static_cast<int>(range.kinds.size());
  Clock clock(cluster, queues_);
  // [layer in pass order], between two entries for the embedding and the head.
  std::vector<double> ends(static_cast<size_t>((layers + 2) * events_), 0);
  double last = 0;    // end of all transfers that the pass awaits
  double sums = 0;    // end of the others
  double result = 0;  // when the last layer has produced what another consumes
  const auto run = [&](const Step& s, int place, int event) {
    double* end = event < 0 ? nullptr : &ends[static_cast<size_t>((place + 1) * events_ + event)];
    if (late) {
      if (end != nullptr) *end = 0;
    } else if (s.kind == Step::Kind::kernel) {
      clock.run(s.seconds);
    } else if (s.kind == Step::Kind::start) {
      *end = clock.transfer(s.queue, s.transfer);
      (s.of_step ? sums : last) = std::max(s.of_step ? sums : last, *end);
    } else if (end != nullptr) {
      clock.now = std::max(clock.now, *end);
    }
  };
  const auto run_piece = [&](const Piece& piece) {
    if (piece.of == Piece::Of::first_layer || (piece.of == Piece::Of::head ? range.head : range.embedding))
      run(piece.step, piece.of == Piece::Of::first_layer ? 0 : piece.of == Piece::Of::head ? layers : -1, piece.event);
  };
  const auto run_pieces = [&](Piece::Place place, bool starts) {
    for (const Piece& piece : pieces_)
      if (piece.place == place && (piece.step.kind == Step::Kind::start) == starts) run_piece(piece);
  };
  const auto kind_at = [&](int place) {
    return range.kinds[static_cast<size_t>(ascending_ ? place : layers - 1 - place)];
  };
  for (const Piece& piece : pieces_)
    if (piece.place == Piece::Place::front) run_piece(piece);
  for (int place = 0; place < layers; ++place) {
    if (place == 0) run_pieces(Piece::Place::first, true);
    if (place == layers - 1) run_pieces(Piece::Place::last, true);
    for (const Placed& p : blocks_[static_cast<size_t>(kind_at(place))]) {
      if (place + p.beside < 0 || place + p.beside >= layers) continue;
      if (p.beside == 0 && p.step.takes_up) late = false;
      run(p.step, place + p.beside, p.event);
      if (place == layers - 1 && p.beside == 0 && p.step.hands_on && result == 0) result = clock.now;
    }
    if (place == 0) run_pieces(Piece::Place::first, false);
    if (place == layers - 1) run_pieces(Piece::Place::last, false);
  }
  // What would belong to another layer after the last.
  const int next = (kind_at(layers - 1) + (ascending_ ? 1 : kinds_ - 1)) % kinds_;
  for (const Placed& p : blocks_[static_cast<size_t>(next)])
    if (p.beside == -1) run(p.step, layers - 1, p.event);
  const double all = std::max(clock.now, last);
  return {.all = all, .result = result, .sums = std::max(0.0, sums - all)};
}

}  // namespace kintsugi::search
