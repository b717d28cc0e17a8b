#include "kintsugi/simulate/simulate.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "kintsugi/base/error.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/simulate/timed_program.h"

namespace kintsugi::simulate {

using program::CallList;
using program::EventKey;
using program::Program;

namespace {

struct HashOfKey {
  size_t operator()(const EventKey& k) const {
    return static_cast<size_t>(k.event) * 0x9E3779B97F4A7C15u ^ static_cast<size_t>(k.micro_batch + 1);
  }
};

constexpr int kLinks = 3;

class Run {
 public:
  Run(const std::vector<Program>& programs, const Cluster& cluster, const Software& software, const Options& options)
      : cluster_(cluster),
        options_(options),
        slowest_(cluster.slowest_of(programs[0].mesh.ranks())),
        occupied_(cluster.device.units / (cluster.device.units - software.channels)),
        timed_(timed(programs, cluster, software)),
        stages_(programs.size()),
        computing_(static_cast<double>(programs.size())),
        lanes_(programs.size() * kLinks * 2),
        channels_(static_cast<size_t>(timed_.channels)) {
    for (const Program& p : programs) lists_.push_back(&p.list(options.step));
    result_.axes = timed_.axes;
    result_.stages.resize(programs.size());
    for (StageTime& s : result_.stages) {
      s.exposed.resize(timed_.axes.size());
      s.transfers.resize(timed_.axes.size());
    }
  }

  Simulated run() {
    for (size_t s = 0; s < stages_.size(); ++s) advance(static_cast<int>(s));
    take_turns();
    while (!events_.empty()) {
      const Event e = events_.top();
      events_.pop();
      switch (e.kind) {
        case Event::Kind::kernels:
          if (stages_[static_cast<size_t>(e.index)].version != e.version) break;
          now_ = e.time;
          end_kernels(e.index);
          break;
        case Event::Kind::flow:
          now_ = e.time;
          begin_flow(e.index);
          break;
        case Event::Kind::transfer:
          if (live_[static_cast<size_t>(e.index)].version != e.version) break;
          now_ = e.time;
          end_transfer(e.index);
          break;
      }
      take_turns();
    }
    for (size_t s = 0; s < stages_.size(); ++s)
      base::require(stages_[s].state == Stage::State::ended, "simulate", "stage {} waits forever, in call {}", s,
                    stages_[s].call);
    result_.seconds = now_;
    for (size_t s = 0; s < stages_.size(); ++s) result_.stages[s].bubble += now_ - stages_[s].since;
    return std::move(result_);
  }

 private:
  // kernels: those of a stage are done. flow: bytes of a transfer begin to flow. transfer: it is done.
  struct Event {
    enum class Kind : uint8_t { kernels, flow, transfer };
    double time = 0;
    Kind kind = Kind::kernels;
    int index = 0;    // stage or transfer
    int version = 0;  // void if older than that of the stage or transfer
    int64_t order = 0;

    bool operator<(const Event& other) const {  // earliest on top
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  struct Awaited {
    bool done = false;
    int transfer = 0;  // index into timed_.transfers
  };

  struct Stage {
    enum class State : uint8_t { working, waiting, ended };
    State state = State::working;
    size_t call = 0, item = 0;
    double begin = 0;   // of the current kernels
    double since = 0;   // when it began to work at the current rate, to wait, or ended
    double alone = 0;   // seconds of the kernels at the nominal rate
    double left = 0;    // remaining
    double factor = 1;  // current slowdown of kernels
    int version = 0;
    EventKey awaited = {};
    std::array<int, kLinks> flowing = {};  // [link]: number of transfers
    std::unordered_map<EventKey, Awaited, HashOfKey> awaited_by_key = {};
  };

  // One end of a transfer, as started by a stage.
  struct End {
    int stage = 0;
    size_t call = 0;
    EventKey key = {};
    int transfer = 0;
  };

  // own: the stage that starts a collective, or sends. other: the receiving stage.
  struct Channel {
    std::deque<End> own, other;
    bool busy = false;
  };

  struct Live {
    End own = {}, other = {};
    bool is_message = false;
    double begin = 0, since = 0, left = 0, rate = 0;
    int version = 0;
    LinkKind link = LinkKind::node;
  };

  const TimedTransfer& timed_transfer(const End& end) const {
    return timed_.transfers[static_cast<size_t>(end.transfer)];
  }

  // The current item of a stage.
  const Item& timed_item(int s) const {
    const Stage& stage = stages_[static_cast<size_t>(s)];
    const int body = lists_[static_cast<size_t>(s)]->calls[stage.call].body;
    return timed_.bodies[static_cast<size_t>(s)][static_cast<size_t>(body)][stage.item];
  }

  void push(double time, Event::Kind kind, int index, int version) {
    events_.push({time, kind, index, version, order_++});
  }

  // Advances a stage until it works, waits or has ended.
  void advance(int s) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    const CallList& list = *lists_[static_cast<size_t>(s)];
    for (;;) {
      if (stage.call == list.calls.size()) {
        stage.state = Stage::State::ended;
        stage.since = now_;
        return;
      }
      const program::Call& call = list.calls[stage.call];
      const std::vector<Item>& items = timed_.bodies[static_cast<size_t>(s)][static_cast<size_t>(call.body)];
      if (stage.item == items.size()) {
        ++stage.call;
        stage.item = 0;
        continue;
      }
      const Item& item = items[stage.item];
      const EventKey key = {item.event, call.micro_batch};
      switch (item.kind) {
        case Item::Kind::kernels:
          begin_kernels(s, item);
          return;
        case Item::Kind::start: {
          ++stage.item;
          const TimedTransfer& t = timed_.transfers[static_cast<size_t>(item.transfer)];
          stage.awaited_by_key[key] = {.done = t.buffered, .transfer = item.transfer};
          if (!t.late) post(s, key, item.transfer);
          break;
        }
        case Item::Kind::wait: {
          const auto found = stage.awaited_by_key.find(key);
          base::require(found != stage.awaited_by_key.end(), "simulate", "stage {} waits for what was not started", s);
          const int transfer = found->second.transfer;
          if (!found->second.done) {
            stage.state = Stage::State::waiting;
            stage.since = now_;
            stage.awaited = key;
            if (timed_.transfers[static_cast<size_t>(transfer)].late) post(s, key, transfer);
            return;
          }
          stage.awaited_by_key.erase(found);
          ++stage.item;
          break;
        }
      }
    }
  }

  void begin_kernels(int s, const Item& item) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    StageTime& time = result_.stages[static_cast<size_t>(s)];
    const double slow = slowest_ * (options_.changes.slow_stage == s ? options_.changes.slowness : 1);
    stage.left = 0;
    for (size_t c = 0; c < kClasses; ++c) {
      stage.left += item.kernels[c] * slow;
      time.kernels[c] += item.kernels[c] * slow;
    }
    stage.alone = stage.left;
    stage.state = Stage::State::working;
    stage.since = now_;
    stage.begin = now_;
    stage.factor = factor_of(stage);
    push(now_ + stage.left * stage.factor, Event::Kind::kernels, s, ++stage.version);
  }

  double factor_of(const Stage& stage) const {
    const bool in_node = stage.flowing[static_cast<size_t>(LinkKind::node)] > 0,
               over_network = stage.flowing[static_cast<size_t>(LinkKind::network)] > 0;
    const double slowdown = cluster_.slowdown(in_node, over_network);
    const double factor = in_node || over_network ? std::max(slowdown, occupied_) : slowdown;
    return factor / std::min(cluster_.device.turns, static_cast<double>(stages_.size()) / computing_);
  }

  // Continues the kernels of a stage at the current rate.
  void change_rate(int s) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    if (stage.state != Stage::State::working) return;
    const double factor = factor_of(stage);
    if (factor == stage.factor) return;
    stage.left = std::max(0.0, stage.left - (now_ - stage.since) / stage.factor);
    stage.since = now_;
    stage.factor = factor;
    push(now_ + stage.left * factor, Event::Kind::kernels, s, ++stage.version);
  }

  // If devices share cores, active ones get what the others do not use.
  void take_turns() {
    if (cluster_.device.turns == 1) return;
    const auto works = [](const Stage& stage) { return stage.state == Stage::State::working; };
    const auto computing = static_cast<double>(std::ranges::count_if(stages_, works));
    if (computing == computing_ || computing == 0) return;
    computing_ = computing;
    for (size_t s = 0; s < stages_.size(); ++s) change_rate(static_cast<int>(s));
  }

  void end_kernels(int s) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    StageTime& time = result_.stages[static_cast<size_t>(s)];
    const double took = now_ - stage.begin;
    if (cluster_.device.turns == 1 || took >= stage.alone) {
      time.slowed += took - stage.alone;
    } else {
      const auto& kernels = timed_item(s).kernels;
      const double sum = std::accumulate(kernels.begin(), kernels.end(), 0.0);
      for (size_t c = 0; c < kClasses; ++c) time.kernels[c] -= kernels[c] / sum * (stage.alone - took);
    }
    if (options_.spans) result_.spans.push_back({.stage = s, .call = stage.call, .begin = stage.begin, .end = now_});
    ++stage.item;
    advance(s);
  }

  void post(int s, EventKey key, int transfer) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    const TimedTransfer& t = timed_.transfers[static_cast<size_t>(transfer)];
    Channel& channel = channels_[static_cast<size_t>(t.channel)];
    (t.receives ? channel.other : channel.own).push_back({s, stage.call, key, transfer});
    begin_next(t.channel);
  }

  void begin_next(int c) {
    Channel& channel = channels_[static_cast<size_t>(c)];
    if (channel.busy || channel.own.empty()) return;
    const TimedTransfer& t = timed_transfer(channel.own.front());
    const bool is_message = t.other >= 0;
    if (is_message && channel.other.empty()) return;
    channel.busy = true;
    int id = 0;
    if (free_.empty()) {
      id = static_cast<int>(live_.size());
      live_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    Live& live = live_[static_cast<size_t>(id)];
    const int version = live.version + 1;
    live = {.own = channel.own.front(),
            .is_message = is_message,
            .begin = now_,
            .since = now_,
            .left = t.time.seconds,
            .version = version,
            .link = t.time.link};
    if (is_message) live.other = channel.other.front();
    push(now_ + t.time.latency, Event::Kind::flow, id, 0);
  }

  template <typename F>
  void for_ends(const Live& live, F&& f) {
    f(live.own);
    if (live.is_message) f(live.other);
  }

  // The transfers that share the link on which a transfer leaves or enters a stage. A collective does both.
  std::vector<int>& lane(int stage, LinkKind link, bool in) {
    return lanes_[(static_cast<size_t>(stage) * kLinks + static_cast<size_t>(link)) * 2 + (in ? 1 : 0)];
  }
  std::array<std::vector<int>*, 2> lanes_of(const Live& live) {
    return {&lane(live.own.stage, live.link, false),
            &lane(live.is_message ? live.other.stage : live.own.stage, live.link, true)};
  }

  void begin_flow(int id) {
    for (std::vector<int>* l : lanes_of(live_[static_cast<size_t>(id)])) l->push_back(id);
    flow_changed(id, 1);
  }

  // A transfer begins or ceases to flow: updates the rates of concurrent transfers and kernels.
  void flow_changed(int id, int by) {
    for (std::vector<int>* l : lanes_of(live_[static_cast<size_t>(id)]))
      for (const int other : *l) set_rate(other);
    const Live& live = live_[static_cast<size_t>(id)];
    for_ends(live, [&](const End& end) {
      Stage& stage = stages_[static_cast<size_t>(end.stage)];
      stage.flowing[static_cast<size_t>(live.link)] += by;
      change_rate(end.stage);
    });
  }

  void set_rate(int id) {
    Live& live = live_[static_cast<size_t>(id)];
    size_t beside = 1;
    for (const std::vector<int>* l : lanes_of(live)) beside = std::max(beside, l->size());
    const double rate = 1 / static_cast<double>(beside);
    if (rate == live.rate) return;
    live.left = std::max(0.0, live.left - (now_ - live.since) * live.rate);
    live.since = now_;
    live.rate = rate;
    push(now_ + live.left / rate, Event::Kind::transfer, id, ++live.version);
  }

  void end_transfer(int id) {
    for (std::vector<int>* l : lanes_of(live_[static_cast<size_t>(id)])) std::erase(*l, id);
    flow_changed(id, -1);
    const Live live = live_[static_cast<size_t>(id)];
    const TimedTransfer& t = timed_transfer(live.own);
    Channel& channel = channels_[static_cast<size_t>(t.channel)];
    channel.busy = false;
    channel.own.pop_front();
    if (live.is_message) channel.other.pop_front();
    ++live_[static_cast<size_t>(id)].version;
    free_.push_back(id);
    if (options_.spans)
      result_.spans.push_back({.stage = live.own.stage,
                               .call = live.own.call,
                               .axis = t.axis,
                               .to = live.is_message ? live.other.stage : -1,
                               .begin = live.begin,
                               .end = now_});
    begin_next(t.channel);
    for_ends(live, [&](const End& end) {
      result_.stages[static_cast<size_t>(end.stage)].transfers[static_cast<size_t>(t.axis)] += now_ - live.begin;
      Stage& stage = stages_[static_cast<size_t>(end.stage)];
      const auto awaited = stage.awaited_by_key.find(end.key);
      if (awaited == stage.awaited_by_key.end()) return;  // buffered
      awaited->second.done = true;
      if (stage.state != Stage::State::waiting || stage.awaited != end.key) return;
      end_wait(end.stage, live);
    });
  }

  void end_wait(int s, const Live& live) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    StageTime& time = result_.stages[static_cast<size_t>(s)];
    const double late = live.is_message ? std::max(0.0, live.begin - stage.since) : 0;
    time.bubble += late;
    time.exposed[static_cast<size_t>(timed_transfer(live.own).axis)] += now_ - stage.since - late;
    stage.state = Stage::State::working;
    advance(s);
  }

  const Cluster& cluster_;
  const Options& options_;
  const double slowest_;   // all ranks wait for it, sooner or later
  const double occupied_;  // slowdown of kernels that leave multiprocessors to a collective
  TimedPrograms timed_;
  std::vector<const CallList*> lists_;
  std::vector<Stage> stages_;
  double computing_;  // number of stages
  std::vector<std::vector<int>> lanes_;
  std::vector<Channel> channels_;
  std::vector<Live> live_;
  std::vector<int> free_;  // free indices in live_
  std::priority_queue<Event> events_;
  int64_t order_ = 0;
  double now_ = 0;
  Simulated result_;
};

}  // namespace

double StageTime::total() const {
  return std::accumulate(kernels.begin(), kernels.end(), 0.0) + slowed +
         std::accumulate(exposed.begin(), exposed.end(), 0.0) + bubble;
}

Simulated simulate(const std::vector<Program>& programs, const Cluster& cluster, const Software& software,
                   const Options& options) {
  const int64_t ranks = programs[0].mesh.ranks();
  if (ranks > cluster.devices())
    throw base::UserError("simulate", "{} ranks, and {} has {} devices: {} nodes of {}", ranks, cluster.path,
                          cluster.devices(), cluster.nodes, cluster.devices_per_node);
  return Run(programs, cluster, software, options).run();
}

}  // namespace kintsugi::simulate
