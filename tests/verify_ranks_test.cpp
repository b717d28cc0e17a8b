// Real programs of several ranks pass verification together; damage to one of them is detected and located.
#include "kintsugi/program/verify_ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/verify.h"
#include "tests/layouts.h"

namespace kintsugi::tests::verify_ranks_test {
namespace {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;

Program program_of(const std::string& family, const std::string& layout) {
  config::Settings s = small_model(family, "fp32");
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 12;
  s.train.micro_batch = 2;
  set_layout(s, layout);
  return compile::only_stage(compile::compile({.settings = s, .kernels = *compile::kernels_of(s)}));
}

std::string error_of_ranks(const std::vector<const Program*>& programs) {
  return error_of([&] { program::verify_ranks(programs); });
}

const std::string kError = "[verify] internal error: train: ";

// The programs of four ranks, of which rank 1's may be changed.
class FourRanks : public testing::Test {
 protected:
  explicit FourRanks(const std::string& layout = "data=2 tensor=2 zero=3")
      : whole(program_of("gpt", layout)), p(whole) {}

  std::string error() { return error_of_ranks({&whole, &p, &whole, &whole}); }

  static std::vector<Instruction>& list(Program& of, std::string_view body) {
    for (Body& b : of.bodies)
      if (b.name == body) return b.instructions;
    throw base::InternalError("test", "no body {}", body);
  }
  std::vector<Instruction>& list(std::string_view body) { return list(p, body); }

  // The nth collective of a kind over an axis, from instruction `begin` on.
  size_t find(std::string_view body, std::string_view kernel, std::string_view axis, int nth = 0, size_t begin = 0) {
    const std::vector<Instruction>& all = list(body);
    for (size_t i = begin; i < all.size(); ++i)
      if (all[i].kind == Kind::collective && (kernel.empty() || name_of(all[i]) == kernel) &&
          (axis.empty() || p.mesh.name_of(all[i].group) == axis) && nth-- == 0)
        return i;
    throw base::InternalError("test", "no {} over {} in {}", kernel, axis, body);
  }

  size_t wait_of(std::string_view body, size_t start) {
    const std::vector<Instruction>& all = list(body);
    for (size_t i = start; i < all.size(); ++i)
      if (all[i].kind == Kind::wait && all[i].event == all[start].event) return i;
    throw base::InternalError("test", "no wait for instruction {} of {}", start, body);
  }

  void erase(std::string_view body, size_t at) {
    list(body).erase(list(body).begin() + static_cast<std::ptrdiff_t>(at));
  }

  // "instruction 17 of backward.last, micro-batch 2 (...)", on a rank.
  static std::string place(Program& of, int rank, std::string_view body, int micro_batch, size_t at) {
    return fmt::format("instruction {} of {}, micro-batch {} ({})", at, body, micro_batch,
                       describe(of, list(of, body)[at], rank));
  }

  Program whole, p;
};

}  // namespace

TEST(VerifyRanks, ProgramsOfLayouts) {
  const std::pair<std::string, std::string> layouts[] = {
      {"gpt", "data=2"},
      {"gpt", "data=2 zero=1"},
      {"gpt", "data=3 zero=2"},
      {"llama", "data=2 zero=3"},
      {"gpt", "tensor=2"},
      {"llama", "tensor=4 sequence_parallel"},
      {"gpt", "context=2"},
      {"gpt", "context=4 method=ring"},
      {"llama", "context=2 method=ulysses"},
      {"gpt", "data=2 tensor=2 zero=3"},
      {"llama", "data=2 tensor=2 zero=2 sequence_parallel"},
      {"gpt", "data=2 context=2 zero=1"},
      {"gpt", "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ring"},
  };
  for (const auto& [family, layout] : layouts) {
    const Program p = program_of(family, layout);
    EXPECT_EQ(error_of([&] { program::verify_ranks(p); }), "no error") << family << " " << layout;
    // The same again with every rank run, since each has its own copy.
    const std::vector<Program> copies(static_cast<size_t>(p.mesh.ranks()), p);
    std::vector<const Program*> programs;
    for (const Program& copy : copies) programs.push_back(&copy);
    EXPECT_EQ(error_of_ranks(programs), "no error") << family << " " << layout;
  }
}

TEST_F(FourRanks, ACollectiveDropped) {
  // Of the data group of ranks 1 and 3. Rank 1 continues with the next one of that group.
  const size_t at = find("backward.first", "reduce_scatter", "data"), end = wait_of("backward.first", at);
  erase("backward.first", end);
  erase("backward.first", at);
  const size_t next = find("backward.first", "", "data", 0, at);
  EXPECT_EQ(error(), kError + "rank 1 at " + place(p, 1, "backward.first", 0, next) +
                         " waits for rank 3, which is at " + place(whole, 3, "backward.first", 0, at));
}

TEST_F(FourRanks, TheLastCollectiveDropped) {
  // No rank is left that could arrive.
  size_t at = find("update", "", "tensor");
  try {
    for (;;) at = find("update", "", "", 0, at + 1);
  } catch (const base::InternalError&) {
  }
  const std::string axis = p.mesh.name_of(list("update")[at].group);
  const int other = axis == "data" ? 3 : 0;
  erase("update", wait_of("update", at));
  erase("update", at);
  const std::string text = error();
  const std::string end = fmt::format("{}rank {} at instruction {} of update ({}) waits for rank 1, which has ended",
                                      kError, other, at, describe(whole, list(whole, "update")[at], other));
  EXPECT_EQ(text, end);
}

TEST_F(FourRanks, TwoSwapped) {
  // Two consecutive gathers of weights that are independent of each other.
  const size_t first = find("forward.first", "all_gather", "data", 1),
               second = find("forward.first", "all_gather", "data", 2);
  ASSERT_EQ(second, first + 1);
  std::swap(list("forward.first")[first], list("forward.first")[second]);
  EXPECT_EQ(error(), kError + "rank 1 at " + place(p, 1, "forward.first", 0, first) +
                         " waits for rank 3, which is at " + place(whole, 3, "forward.first", 0, first));
}

TEST_F(FourRanks, ASizeOrADtypeChanged) {
  for (Program* of : {&p, &whole}) of->lists.resize(1);  // train
  const size_t at = find("forward", "all_gather", "data");
  const Instruction i = list("forward")[at];
  const std::string found = " waits for rank 3, which is at ";
  for (BufferId b : {i.ins[0], i.outs[0]}) p.buffer(b).type.dtype = tensor::DType::bf16;
  // The same buffer is gathered in the first micro-batch.
  const size_t first = find("forward.first", "all_gather", "data");
  ASSERT_EQ(list("forward.first")[first].ins, i.ins);
  EXPECT_EQ(error(), kError + "rank 1 at " + place(p, 1, "forward.first", 0, first) + found +
                         place(whole, 3, "forward.first", 0, first));
  p = whole;
  for (BufferId b : {i.ins[0], i.outs[0]}) {
    const int64_t flat = p.buffer(b).type.shape.size("flat");
    p.buffer(b).type.shape = {{"flat", flat / 2}};
  }
  const std::string text = error();
  EXPECT_EQ(text, kError + "rank 1 at " + place(p, 1, "forward.first", 0, first) + found +
                      place(whole, 3, "forward.first", 0, first));
  EXPECT_NE(describe(p, i, 1), describe(whole, i, 1));
}

TEST_F(FourRanks, AnotherGroup) {
  const size_t at = find("backward", "all_reduce", "tensor"), end = wait_of("backward", at);
  for (size_t i : {at, end}) list("backward")[i].group = list("backward")[find("backward", "", "data")].group;
  EXPECT_EQ(error(), kError + "rank 0 at " + place(whole, 0, "backward", 1, at) + " waits for rank 1, which is at " +
                         place(p, 1, "backward", 1, at));
}

TEST_F(FourRanks, AWaitDroppedOrMoved) {
  const size_t at = find("forward", "all_reduce", "tensor"), end = wait_of("forward", at);
  const Instruction wait = list("forward")[end];
  // The first instruction that reads it.
  size_t use = end + 1;
  const auto reads = [&](const Instruction& i) {
    return std::any_of(i.ins.begin(), i.ins.end(), [&](BufferId b) { return p.overlap(b, wait.outs[0]); });
  };
  while (!reads(list("forward")[use])) ++use;
  const BufferId value = list("forward")[use].ins[0];
  erase("forward", end);
  const std::string text = fmt::format(
      "{}rank 1 at instruction {} of forward ({}) reads #{} \"{}\", which instruction {} ({}) still makes", kError,
      use - 1, name_of(list("forward")[use - 1]), value, p.buffer(value).name, at, describe(p, list("forward")[at], 1));
  EXPECT_EQ(error(), text);
  list("forward").insert(list("forward").begin() + static_cast<std::ptrdiff_t>(use), wait);
  EXPECT_EQ(error(), text);
  // No rank reads it any more, and none waits.
  ASSERT_EQ(find("forward", "all_gather", "data"), 0u);
  const size_t first_wait = wait_of("forward", 0);
  list("forward").resize(first_wait);
  EXPECT_EQ(error(), fmt::format("{}rank 1 at instruction 0 of forward ({}) never waits for it", kError,
                                 describe(p, list("forward")[0], 1)));
}

TEST_F(FourRanks, MessagesWithoutTheirOtherEnd) {
  // Ranks 0 and 1 send to ranks 2 and 3 at the end of the update.
  Program sends = whole, receives = whole;
  const std::vector<mesh::Factor> data = list("forward")[find("forward", "", "data")].group;
  Instruction i = {
      .collective = program::Collective::send, .ins = {p.states[0].buffer}, .phase = program::Phase::update};
  const auto append = [&](Program& to) {
    i.group = data;
    i.event = 1 << 20;
    for (Kind kind : {Kind::collective, Kind::wait}) {
      i.kind = kind;
      list(to, "update").push_back(i);
    }
    i.kind = Kind::collective;
  };
  const size_t start = list("update").size(), at = start + 1;  // the wait comes after the start
  i.peer = 1;
  append(sends);
  const std::string sent = describe(whole, i, 1);
  std::swap(i.ins, i.outs);
  i.collective = program::Collective::receive;
  i.peer = 0;
  append(receives);
  const std::string received = describe(whole, i, 3);
  EXPECT_EQ(error_of_ranks({&sends, &sends, &receives, &receives}), "no error");
  EXPECT_EQ(
      error_of_ranks({&sends, &sends, &receives, &whole}),
      fmt::format("{}rank 1 at instruction {} of update ({}) waits for rank 3, which has ended", kError, at, sent));
  EXPECT_EQ(
      error_of_ranks({&sends, &whole, &receives, &receives}),
      fmt::format("{}rank 3 at instruction {} of update ({}) waits for rank 1, which has ended", kError, at, received));
  EXPECT_EQ(
      error_of_ranks({&sends, &sends, &receives, &sends}),
      fmt::format("{}rank 1 at instruction {} of update ({}) waits for rank 3, which is at instruction {} of update "
                  "({})",
                  kError, at, sent, at, describe(sends, list(sends, "update")[start], 3)));
}

TEST_F(FourRanks, ACallMissing) {
  const auto drop = [&](std::string_view body, int64_t micro_batch) {
    std::erase_if(p.lists[0].calls, [&](const program::Call& c) {
      return c.micro_batch == micro_batch && p.bodies[static_cast<size_t>(c.body)].name == body;
    });
  };
  ASSERT_EQ(p.lists[0].step, program::Step::train);
  drop("backward", 1);
  EXPECT_EQ(error(), kError + "rank 1 at " + place(p, 1, "forward", 2, find("forward", "", "data")) +
                         " waits for rank 3, which is at " +
                         place(whole, 3, "backward", 1, find("backward", "", "data")));
  p = whole;
  drop("update", -1);
  const size_t first = find("update", "", "");
  const int waits = p.mesh.name_of(list("update")[first].group) == "data" ? 3 : 0;
  EXPECT_EQ(error(), fmt::format("{}rank {} at instruction {} of update ({}) waits for rank 1, which has ended", kError,
                                 waits, first, describe(whole, list(whole, "update")[first], waits)));
}

// A forward pass of data parallel ranks communicates nothing: no rank hangs, but the result is wrong.
TEST(VerifyRanks, ACallMissingThatNobodyWaitsFor) {
  const Program whole = program_of("gpt", "data=2");
  Program p = whole;
  ASSERT_EQ(p.lists[0].calls.size(), 8u);  // the last but one waits for sums
  p.lists[0].calls.erase(p.lists[0].calls.begin() + 2);
  EXPECT_EQ(error_of_ranks({&whole, &p}),
            kError +
                "call 2 of rank 1 is backward, micro-batch 1, and of rank 0, which has the same buffers, forward, "
                "micro-batch 1");
}

namespace {

// Whether a and b must keep their order on a rank: the same collective; two of one group; or one writes bytes that the
// other reads or writes.
bool ordered(const Program& p, const Instruction& a, const Instruction& b) {
  const auto range = [&](BufferId id) {
    const program::Buffer& root = p.buffer(p.root(id));
    const int64_t begin = root.offset + (p.is_part(id) ? 0 : p.begin(id, 0));
    return std::tuple(root.region, begin, begin + (p.is_part(id) ? root.bytes() : p.buffer(id).bytes()));
  };
  const auto touch = [&](std::vector<BufferId> x, std::vector<BufferId> y) {
    for (BufferId i : x)
      for (BufferId j : y) {
        const auto [r, b1, e1] = range(i);
        const auto [s, b2, e2] = range(j);
        if (r == s && b1 < e2 && b2 < e1) return true;
      }
    return false;
  };
  const auto written = [](const Instruction& i) {
    std::vector<BufferId> all = i.outs;
    if (i.workspace != program::kNoBuffer) all.push_back(i.workspace);
    return all;
  };
  if (a.event >= 0 && a.event == b.event) return true;
  if (a.kind == Kind::collective && b.kind == Kind::collective && a.group == b.group) return true;
  return touch(written(a), written(b)) || touch(written(a), b.ins) || touch(a.ins, written(b));
}

}  // namespace

TEST(VerifyRanks, RandomDamage) {
  std::mt19937 random(4);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  int dropped = 0, refused = 0, exchanged = 0;
  for (const char* layout :
       {"data=2 tensor=2 zero=3", "data=2 tensor=2 zero=2 sequence_parallel", "data=2 context=2 zero=1"}) {
    const Program whole = program_of("gpt", layout);
    std::vector<size_t> bodies;
    for (const program::Call& c : whole.list(program::Step::train).calls) bodies.push_back(static_cast<size_t>(c.body));
    for (int trial = 0; trial < 100; ++trial) {
      Program p = whole;
      const size_t body = bodies[below(bodies.size())], rank = below(4);
      std::vector<Instruction>& list = p.bodies[body].instructions;
      std::vector<size_t> at;
      for (size_t i = 0; i < list.size(); ++i)
        if (list[i].kind != Kind::compute) at.push_back(i);
      if (at.size() < 2) continue;
      const auto error = [&] {
        std::vector<const Program*> programs(4, &whole);
        programs[rank] = &p;
        return error_of([&] {
          program::verify(p);
          program::verify_ranks(programs);
        });
      };
      const size_t first = below(at.size() - 1);
      const std::string where =
          fmt::format("{}: rank {}, {}, instruction {}", layout, rank, whole.bodies[body].name, at[first]);
      if (trial % 4 == 0) {  // a collective with its wait
        const int event = list[at[first]].event;
        std::erase_if(list, [&](const Instruction& i) { return i.kind != Kind::compute && i.event == event; });
        EXPECT_TRUE(error().starts_with("[verify] internal error: ")) << where;
        ++dropped;
        continue;
      }
      const size_t second = std::min(first + 1 + below(3), at.size() - 1), i = at[first], j = at[second];
      bool free = true;
      for (size_t k = i + 1; k <= j; ++k) free &= !ordered(p, list[i], list[k]);
      for (size_t k = i + 1; k < j; ++k) free &= !ordered(p, list[k], list[j]);
      std::swap(list[i], list[j]);
      const std::string text = error();
      if (text == "no error") {
        EXPECT_TRUE(free) << where << " exchanged with " << j;
        ++exchanged;
      } else {
        EXPECT_TRUE(text.starts_with("[verify] internal error: ")) << where << ": " << text;
        ++refused;
      }
    }
  }
  fmt::print("{} drops and {} exchanges refused; {} exchanges change nothing\n", dropped, refused, exchanged);
  EXPECT_GE(dropped + refused, 200);
  EXPECT_GT(exchanged, 0);
}

}  // namespace kintsugi::tests::verify_ranks_test
