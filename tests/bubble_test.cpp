// The bubble of each schedule, measured on the compiled programs of all ranks: their calls in order, and the
// dependencies given by their messages. Forward, input gradient and weight gradient of a chunk cost 1 each,
// communication is free. Also, activations of micro-batches in flight occupy as many slots as the schedule needs, each
// with separate memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "kintsugi/compile/programs.h"
#include "kintsugi/plan/schedule_timeline.h"
#include "tests/layouts.h"

namespace kintsugi::tests::bubble_test {
namespace {

using program::Body;
using program::BufferId;
using program::Call;
using program::CallList;
using program::Instruction;
using program::Kind;
using program::Program;

struct Case {
  std::string schedule;
  int stages, chunks;
  int64_t micro_batches;
  std::string more = {};  // of the layout
  bool tied = false;

  std::string text() const {
    return fmt::format("{} p={} v={} m={} {}{}", schedule, stages, chunks, micro_batches, more, tied ? " tied" : "");
  }
  plan::Schedule made() const { return plan::make_schedule(schedule, stages, chunks, micro_batches); }
};

// Every schedule with 2, 4 and 8 stages and 1, 4, 8 and 32 micro-batches, where it supports them.
const std::vector<Case>& cases() {
  static const std::vector<Case> list = [] {
    std::vector<Case> all;
    for (std::string_view schedule : plan::schedule_names())
      for (int p : {2, 4, 8})
        for (int64_t m : {1, 4, 8, 32}) {
          if (schedule != "interleaved") all.push_back({std::string(schedule), p, 1, m});
          if (schedule == "interleaved" && m % p == 0) all.push_back({std::string(schedule), p, 2, m});
        }
    all.push_back({"interleaved", 2, 3, 8});
    all.push_back({"1f1b", 2, 1, 4, "data=2 tensor=2 zero=3 sequence_parallel"});
    all.push_back({"interleaved", 2, 2, 4, "tensor=2 recompute=full"});
    all.push_back({"zero_bubble", 2, 1, 4, "context=2 method=ring", true});
    all.push_back({"zero_bubble", 4, 1, 8, "recompute=full"});
    all.push_back({"1f1b", 4, 1, 8, "", true});
    return all;
  }();
  return list;
}

const std::vector<Program>& lowered(const Case& c) {
  static std::map<std::string, std::vector<Program>> known;
  const auto [at, fresh] = known.try_emplace(c.text());
  if (!fresh) return at->second;
  config::Settings s = small_model("gpt", "fp32");
  s.model.layers = c.stages * c.chunks;
  s.model.tied = c.tied;
  s.model.context = s.train.sequence = 8;
  set_layout(s, fmt::format("pipe={} schedule={} chunks={} {}", c.stages, c.schedule, c.chunks, c.more));
  std::string one_each;
  for (int i = 0; i < c.stages * c.chunks; ++i) one_each += (i > 0 ? " 1" : "1");
  s.parallel.stages = one_each;
  s.train.micro_batch = 2;
  s.train.global_batch = c.micro_batches * s.train.micro_batch * s.parallel.data;
  const auto kernels = compile::kernels_of(s);
  return at->second = compile::compile({.settings = s, .kernels = *kernels});
}

// The pipeline task of a call, if any.
std::optional<plan::Task> task_of(const Program& p, const Call& call) {
  const Body& body = p.bodies[static_cast<size_t>(call.body)];
  for (plan::Work work : {plan::Work::forward, plan::Work::backward, plan::Work::weight})
    if (body.role == program::Role::work && name_of(body.work) == plan::name_of(work))
      return plan::Task{work, body.chunk, call.micro_batch};
  return std::nullopt;
}

// Simulates the calls of all ranks. A call that receives a message starts after the sending call has ended. A wait for
// a send completes once the receiver has posted its receive.
class Ranks {
 public:
  explicit Ranks(const std::vector<Program>& stages) {
    const mesh::Mesh& mesh = stages[0].mesh;
    for (const Program& p : stages) split_ |= std::any_of(p.bodies.begin(), p.bodies.end(), is_weight);
    for (int r = 0; r < mesh.ranks(); ++r) {
      const Program& p = stages[static_cast<size_t>(mesh.stage_of(r))];
      ranks_.push_back({.rank = r, .program = &p, .list = &p.list(program::Step::train)});
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank& r : ranks_)
        while (r.call < r.list->calls.size() && go(r)) moved = true;
    }
    for (const Rank& r : ranks_) {
      EXPECT_EQ(r.call, r.list->calls.size()) << "rank " << r.rank << " waits forever";
      length = std::max(length, r.ended);
    }
  }

  int64_t length = 0;
  // "forward of chunk 0, micro-batch 3 of rank 0 -> forward of chunk 1, micro-batch 3 of rank 1": dependencies from
  // messages.
  std::set<std::string> edges;
  std::vector<int64_t> idle() const {
    std::vector<int64_t> all;
    for (const Rank& r : ranks_) all.push_back(length - r.busy);
    return all;
  }
  int64_t busy(size_t rank) const { return ranks_[rank].busy; }

 private:
  struct Rank {
    int rank = 0;
    const Program* program;
    const CallList* list;
    size_t call = 0, at = 0;                // the next instruction
    bool sent = false;                      // something, in this task
    int64_t time = 0, busy = 0, ended = 0;  // ended: its last task
  };
  // One direction of a channel: for each message, when it was sent and received, and by which tasks.
  struct Channel {
    std::vector<int64_t> sent, asked;
    std::vector<std::string> from;
  };
  using Key = std::tuple<int, int, std::string>;  // from, to, channel
  static bool is_weight(const Body& b) { return b.does(program::Work::weight); }

  // The channel of a message, and the end of it that a rank is.
  static std::pair<Key, bool> key_of(const Rank& r, const Instruction& i) {
    const int peer = r.program->mesh.group(r.rank, i.group)[static_cast<size_t>(i.peer)];
    const bool sends = i.collective == program::Collective::send;
    return {{sends ? r.rank : peer, sends ? peer : r.rank, i.channel}, sends};
  }

  // Runs the call as far as possible; returns whether it made progress. A message is available when its sending task
  // has ended.
  bool go(Rank& r) {
    const Call& call = r.list->calls[r.call];
    const Body& body = r.program->bodies[static_cast<size_t>(call.body)];
    const auto task = task_of(*r.program, call);
    const int64_t cost = !task ? 0 : task->work == plan::Work::backward && !split_ ? 2 : 1;
    const std::string name = task ? fmt::format("{} of rank {}", to_string(*task), r.rank) : body.name;
    const size_t before = r.at;
    for (; r.at < body.instructions.size(); ++r.at) {
      const Instruction& i = body.instructions[r.at];
      if (i.peer < 0) continue;
      const auto [key, sends] = key_of(r, i);
      Channel& channel = channels_[key];
      size_t& place = under_way_[{r.rank, i.event, call.micro_batch}];
      std::vector<int64_t>&own = sends ? channel.sent : channel.asked, &other = sends ? channel.asked : channel.sent;
      if (i.kind == Kind::collective) {
        place = own.size();
        own.push_back(r.time + cost);
        if (sends) channel.from.push_back(name);
        if (task) r.sent |= sends;
        continue;
      }
      if (other.size() <= place) return r.at > before;
      EXPECT_FALSE(r.sent) << name << " waits behind what it sends";  // then what it sends would come too early here
      r.time = std::max(r.time, other[place]);
      if (!sends) edges.insert(channel.from[place] + " -> " + name);
    }
    r.time += cost;
    r.busy += cost;
    if (task) r.ended = r.time;
    r.sent = false;
    r.at = 0;
    ++r.call;
    return true;
  }

  bool split_ = false;
  std::vector<Rank> ranks_;
  std::map<Key, Channel> channels_;
  std::map<std::tuple<int, int, int64_t>, size_t> under_way_;  // by rank, event, micro-batch: place in its channel
};

// In units of a forward pass of a chunk, for p stages of v chunks and m micro-batches.
int64_t published_idle(const Case& c) {
  const int64_t p = c.stages, m = c.micro_batches;
  if (c.schedule != "zero_bubble") return 3 * (p - 1);
  return m >= p ? p - 1 : 2 * (p - 1) - (m - 1);
}

TEST(Bubble, OfTheProgramsIsThePublishedOne) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const std::vector<Program>& stages = lowered(c);
    const Ranks run(stages);
    const int64_t busy = 3 * c.chunks * c.micro_batches;
    for (size_t r = 0; r < run.idle().size(); ++r) {
      EXPECT_EQ(run.busy(r), busy);
      EXPECT_EQ(run.idle()[r], published_idle(c)) << "rank " << r;
    }
    EXPECT_EQ(static_cast<double>(published_idle(c)) / static_cast<double>(busy), plan::published_bubble(c.made()));
  }
}

// The only dependencies through messages: a forward on the forward of the previous chunk and a backward on the backward
// of the next chunk, of the same micro-batch.
TEST(Bubble, MessagesAreTheDependenciesOfTasks) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const std::vector<Program>& stages = lowered(c);
    const mesh::Mesh& mesh = stages[0].mesh;
    const int beside = mesh.ranks() / c.stages;  // pipe is the outermost axis
    std::set<std::string> expected;
    const auto add = [&](plan::Work work, int from, int to, int64_t m, int r) {
      const auto end = [&](int chunk) {
        return fmt::format("{} of rank {}", to_string(plan::Task{work, chunk, m}), chunk % c.stages * beside + r);
      };
      expected.insert(end(from) + " -> " + end(to));
    };
    for (int g = 1; g < c.stages * c.chunks; ++g)
      for (int64_t m = 0; m < c.micro_batches; ++m)
        for (int r = 0; r < beside; ++r) {
          add(plan::Work::forward, g - 1, g, m, r);
          add(plan::Work::backward, g, g - 1, m, r);
        }
    std::set<std::string> found;
    for (const std::string& edge : Ranks(stages).edges)
      if (edge.find("chunk") != std::string::npos) found.insert(edge);
    EXPECT_EQ(found, expected);
  }
}

// Between adjacent chunks a micro-batch sends the residual stream once and its gradient once.
TEST(Bubble, WhatIsSentIsTheResidualStreamAndItsGradient) {
  for (const Case& c : cases()) {
    if (!c.more.empty()) continue;
    SCOPED_TRACE(c.text());
    for (const Program& p : lowered(c))
      for (const Body& body : p.bodies) {
        if (!body.does(program::Work::forward) && !body.does(program::Work::backward) &&
            !body.does(program::Work::weight))
          continue;
        std::vector<int64_t> sent;
        for (const Instruction& i : body.instructions)
          if (i.kind == Kind::collective) sent.push_back(p.buffer(i.ins[0]).bytes());
        const bool sends = body.does(program::Work::forward)    ? body.chunk + 1 < c.stages * c.chunks
                           : body.does(program::Work::backward) ? body.chunk > 0
                                                                : false;
        EXPECT_EQ(sent, std::vector<int64_t>(sends ? 1 : 0, 2 * 8 * 24 * 4)) << body.name;  // fp32 [batch seq embed]
      }
  }
}

// What a stage keeps of a micro-batch from its forward pass on, in one arena slot: from the first to the last call that
// uses it.
struct Kept {
  BufferId root;
  int chunk;
  plan::Work until;  // which needs it last
  bool received;     // asked for one call early
  int64_t micro_batch;
  size_t first, last;
  int64_t at, bytes;
};

// "" for a body that is not part of the pipeline.
std::string work_text(const program::Body& body) {
  return body.role == program::Role::work ? std::string(name_of(body.work)) : "";
}

std::vector<Kept> kept(const Program& p) {
  const CallList& list = p.list(program::Step::train);
  // By root buffer, the bodies that use it.
  std::map<BufferId, std::set<int>> bodies;
  for (size_t b = 0; b < p.bodies.size(); ++b)
    for (const Instruction& i : p.bodies[b].instructions)
      for (const auto* of : {&i.ins, &i.outs})
        for (BufferId id : *of) bodies[p.root(id)].insert(p.base(static_cast<int>(b)));
  std::vector<Kept> all;
  for (const auto& [root, touching] : bodies) {
    if (p.buffer(root).region != program::Region::arena) continue;
    std::map<std::string, int> works;  // with their chunk
    for (int b : touching) works[work_text(p.bodies[static_cast<size_t>(b)])] = p.bodies[static_cast<size_t>(b)].chunk;
    if (!works.contains("forward") || (!works.contains("backward") && !works.contains("weight"))) continue;
    std::map<int64_t, Kept> by_micro_batch;
    for (size_t c = 0; c < list.calls.size(); ++c) {
      const Call& call = list.calls[c];
      if (!touching.contains(p.base(call.body))) continue;
      const auto until = works.contains("weight") ? plan::Work::weight : plan::Work::backward;
      const Kept made = {root,
                         works["forward"],
                         until,
                         works.contains(""),
                         call.micro_batch,
                         c,
                         c,
                         p.offset(root, list, call.slot),
                         p.aligned(p.buffer(root).bytes())};
      const auto [at, fresh] = by_micro_batch.try_emplace(call.micro_batch, made);
      EXPECT_EQ(at->second.at, made.at) << p.buffer(root).name << " moves";
      at->second.last = c;
    }
    for (const auto& [m, k] : by_micro_batch) all.push_back(k);
  }
  return all;
}

// The maximum number of micro-batches with live buffers at one call.
size_t most_alive(const std::vector<Kept>& all, size_t calls) {
  std::map<std::pair<int, int64_t>, std::pair<size_t, size_t>> lives;  // by chunk and micro-batch
  for (const Kept& k : all) {
    const auto [at, fresh] = lives.try_emplace({k.chunk, k.micro_batch}, k.first, k.last);
    at->second = {std::min(at->second.first, k.first), std::max(at->second.second, k.last)};
  }
  std::vector<int64_t> change(calls + 1, 0);
  for (const auto& [of, life] : lives) ++change[life.first], --change[life.second + 1];
  int64_t now = 0, most = 0;
  for (int64_t c : change) most = std::max(most, now += c);
  return static_cast<size_t>(most);
}

std::vector<Kept> those(const std::vector<Kept>& all, const std::function<bool(const Kept&)>& which) {
  std::vector<Kept> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), which);
  return some;
}

// Per chunk, and over all chunks. With separate weight gradients, some activations are kept until these are computed.
TEST(Slots, AreAsManyAsTheScheduleHasInFlight) {
  for (const Case& c : cases()) {
    if (c.more.find("recompute") != std::string::npos) continue;  // keeps what it received, and no more
    for (const Program& p : lowered(c)) {
      SCOPED_TRACE(fmt::format("{}, stage {}", c.text(), p.stage));
      const std::vector<Kept> all = kept(p);
      const size_t calls = p.list(program::Step::train).calls.size();
      const bool split = c.schedule == "zero_bubble";
      for (plan::Work until : {plan::Work::backward, plan::Work::weight}) {
        if (until == plan::Work::weight && !split) continue;
        const plan::InFlight expected = plan::in_flight(c.made(), p.stage, until);
        const auto own = those(all, [&](const Kept& k) { return k.until == until && !k.received; });
        EXPECT_EQ(most_alive(own, calls), expected.together);
        for (int v = 0; v < c.chunks; ++v) {
          const int chunk = p.stage + v * c.stages;
          const auto in_flight = static_cast<size_t>(expected.by_chunk[static_cast<size_t>(v)]);
          EXPECT_EQ(most_alive(those(own, [&](const Kept& k) { return k.chunk == chunk; }), calls), in_flight);
          // A received value has memory one call before its use, so that its receive can be posted early.
          const auto received =
              those(all, [&](const Kept& k) { return k.until == until && k.received && k.chunk == chunk; });
          EXPECT_LE(most_alive(received, calls), in_flight + 1);
        }
      }
    }
  }
}

TEST(Slots, OfWhatLivesAtOneTimeAreApart) {
  for (const Case& c : cases())
    for (const Program& p : lowered(c)) {
      std::vector<Kept> all = kept(p);
      std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.at < b.at; });
      for (size_t i = 0; i < all.size(); ++i) {
        const Kept& k = all[i];
        EXPECT_TRUE(k.at >= 0 && k.at + k.bytes <= p.list(program::Step::train).arena_bytes);
        for (size_t j = i + 1; j < all.size() && all[j].at < k.at + k.bytes; ++j)
          EXPECT_TRUE(k.last < all[j].first || all[j].last < k.first)
              << fmt::format("{}, stage {}: {} of micro-batch {} and {} of micro-batch {}", c.text(), p.stage,
                             p.buffer(k.root).name, k.micro_batch, p.buffer(all[j].root).name, all[j].micro_batch);
      }
    }
}

// 24 additional micro-batches do not change the arena's lower bound, except by those in flight.
TEST(Slots, MoreMicroBatchesCostWhatIsInFlightOfThem) {
  for (std::string_view schedule : plan::schedule_names())
    for (int stages : {2, 4}) {
      const int chunks = schedule == "interleaved" ? 2 : 1;
      const Case few = {std::string(schedule), stages, chunks, 8}, many = {std::string(schedule), stages, chunks, 32};
      for (int s = 0; s < stages; ++s) {
        SCOPED_TRACE(fmt::format("{}, stage {}", few.text(), s));
        const Program &p = lowered(few)[static_cast<size_t>(s)], &q = lowered(many)[static_cast<size_t>(s)];
        const int64_t more =
            q.list(program::Step::train).lower_bound_bytes - p.list(program::Step::train).lower_bound_bytes;
        const int64_t in_flight = plan::in_flight(many.made(), s).together - plan::in_flight(few.made(), s).together;
        EXPECT_EQ(in_flight, schedule == "gpipe" ? 24 : 0);
        int64_t bytes = 0;
        for (const Kept& k : kept(p))
          if (k.micro_batch == 0) bytes += k.bytes;
        EXPECT_EQ(more, in_flight * bytes);
      }
    }
}

}  // namespace
}  // namespace kintsugi::tests::bubble_test
