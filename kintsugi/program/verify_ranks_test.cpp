// Hand-written programs of four ranks, and every way in which one of them would wait forever, with the full error.
#include "kintsugi/program/verify_ranks.h"

#include <gtest/gtest.h>

#include <functional>

#include "kintsugi/base/error.h"

namespace kintsugi::program::verify_ranks_test {
namespace {

using tensor::DType;

// data=2 tensor=2: factor 0 is data, 1 is tensor. Ranks 0 1 and 2 3 are tensor groups, 0 2 and 1 3 data groups.
constexpr mesh::Factor kData = 0, kTensor = 1;

Instruction start(Collective kind, BufferId in, BufferId out, mesh::Factor over, int event) {
  Instruction i = {.kind = Kind::collective, .collective = kind, .ins = {in}, .outs = {out}};
  i.group = {over};
  i.reduction = Reduction::sum;
  i.event = event;
  return i;
}

Instruction wait(Instruction i) {
  i.kind = Kind::wait;
  return i;
}

Instruction message(Collective kind, BufferId b, mesh::Factor over, int64_t peer, int event) {
  Instruction i = start(kind, b, b, over, event);
  (i.collective == Collective::send ? i.outs : i.ins).clear();
  i.peer = peer;
  return i;
}

// x, y, w: 64 bytes each, z: 128.
Program whole() {
  const tensor::Type type = {{{"n", 16}}, DType::f32};
  Program p;
  p.mesh = mesh::Mesh({{.name = "data", .size = 2}, {.name = "tensor", .size = 2}});
  p.buffers = {{.name = "x", .type = type, .offset = 0, .input = "x"},
               {.name = "y", .type = type, .offset = 64},
               {.name = "z", .type = {{{"n", 32}}, DType::f32}, .offset = 128},
               {.name = "w", .type = type, .offset = 256}};
  const Instruction a = start(Collective::all_reduce, 0, 1, kTensor, 0),
                    b = start(Collective::all_gather, 1, 2, kData, 1),
                    c = start(Collective::all_reduce, 0, 3, kTensor, 2);
  p.bodies = {{.name = "forward", .instructions = {a, wait(a), b, wait(b)}},
              {.name = "backward", .instructions = {c, wait(c)}}};
  p.lists = {{.step = Step::train, .calls = {{0, 0}, {1, 0}, {0, 1}, {1, 1}}}};
  p.arena_bytes = 320;
  return p;
}

using Change = std::function<void(Program&)>;

std::string error_of(std::vector<Program> programs) {
  std::vector<const Program*> list;
  for (const Program& p : programs) list.push_back(&p);
  try {
    verify_ranks(list);
  } catch (const base::InternalError& e) {
    const std::string text = e.what(), begin = "[verify] internal error: ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  }
  return "";
}

// Only rank 1 is changed.
std::string error_after(const Change& change) {
  std::vector<Program> programs(4, whole());
  change(programs[1]);
  return error_of(std::move(programs));
}

std::string error_of_all(const Change& change) {
  Program p = whole();
  change(p);
  try {
    verify_ranks(p);
  } catch (const base::InternalError& e) {
    return std::string(e.what()).substr(25);
  }
  return "";
}

std::vector<Instruction>& of(Program& p, size_t body) {
  return p.bodies[body].instructions;
}

void erase(std::vector<Instruction>& list, size_t begin, size_t count) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(begin),
             list.begin() + static_cast<std::ptrdiff_t>(begin + count));
}

const std::string kReduce = "all_reduce sum of #0 \"x\" into #1, 64 bytes of fp32, over tensor, ranks 0 1";
const std::string kGather = "all_gather of #1 \"y\" into #2, 64 bytes of fp32, over data, ranks ";
const std::string kReduceBack = "all_reduce sum of #0 \"x\" into #3, 64 bytes of fp32, over tensor, ranks 0 1";

}  // namespace

TEST(VerifyRanks, AWholeProgram) {
  EXPECT_EQ(error_after([](Program&) {}), "");
  EXPECT_EQ(error_of_all([](Program&) {}), "");
}

TEST(VerifyRanks, ACollectiveThatOneRankDoesNotReach) {
  // All micro-batches are damaged; the first is named. Rank 1 has proceeded meanwhile, as far as others reached.
  EXPECT_EQ(error_after([](Program& p) { erase(of(p, 0), 0, 2); }),
            "train: rank 0 at instruction 0 of forward, micro-batch 0 (" + kReduce +
                ") waits for rank 1, which is at instruction 0 of backward, micro-batch 0 (" + kReduceBack + ")");
  EXPECT_EQ(error_after([](Program& p) { erase(of(p, 0), 2, 2); }),
            "train: rank 3 at instruction 2 of forward, micro-batch 0 (" + kGather +
                "1 3) waits for rank 1, which is at instruction 0 of backward, micro-batch 1 (" + kReduceBack + ")");
  EXPECT_EQ(error_after([](Program& p) { p.lists[0].calls.pop_back(); }),
            "train: rank 0 at instruction 0 of backward, micro-batch 1 (" + kReduceBack +
                ") waits for rank 1, which has ended");
  EXPECT_EQ(error_after([](Program& p) { p.lists[0].calls.erase(p.lists[0].calls.begin() + 1); }),
            "train: rank 0 at instruction 0 of backward, micro-batch 0 (" + kReduceBack +
                ") waits for rank 1, which is at instruction 0 of forward, micro-batch 1 (" + kReduce + ")");
}

TEST(VerifyRanks, OperationsThatAreNotTheSame) {
  const std::string begin = "train: rank 0 at instruction 0 of forward, micro-batch 0 (" + kReduce +
                            ") waits for rank 1, which is at instruction 0 of forward, micro-batch 0 (";
  // Sizes, dtypes, names, reductions, kinds, groups.
  EXPECT_EQ(error_after([](Program& p) {
              for (BufferId b : {0, 1, 3}) p.buffer(b).type.shape = {{"n", 8}};
              p.buffer(2).type.shape = {{"n", 16}};
            }),
            begin + "all_reduce sum of #0 \"x\" into #1, 32 bytes of fp32, over tensor, ranks 0 1)");
  EXPECT_EQ(error_after([](Program& p) {
              for (Buffer& b : p.buffers) b.type.dtype = DType::i32;
            }),
            begin + "all_reduce sum of #0 \"x\" into #1, 64 bytes of int32, over tensor, ranks 0 1)");
  EXPECT_EQ(error_after([](Program& p) { p.buffer(0).name = "v"; }),
            begin + "all_reduce sum of #0 \"v\" into #1, 64 bytes of fp32, over tensor, ranks 0 1)");
  EXPECT_EQ(error_after([](Program& p) {
              for (size_t i : {0u, 1u}) of(p, 0)[i].reduction = Reduction::max;
            }),
            begin + "all_reduce max of #0 \"x\" into #1, 64 bytes of fp32, over tensor, ranks 0 1)");
  EXPECT_EQ(error_after([](Program& p) {
              for (size_t i : {0u, 1u}) of(p, 0)[i].collective = Collective::shift;
            }),
            begin + "shift of #0 \"x\" into #1, 64 bytes of fp32, over tensor, ranks 0 1)");
  EXPECT_EQ(error_after([](Program& p) {
              for (size_t i : {0u, 1u}) of(p, 0)[i].group = {kData};
            }),
            begin + "all_reduce sum of #0 \"x\" into #1, 64 bytes of fp32, over data, ranks 1 3)");
  // Buffers of one program are distinguished by more than name and size.
  EXPECT_EQ(error_after([](Program& p) {
              for (size_t i : {0u, 1u}) of(p, 0)[i].outs = {3};
              for (size_t i : {2u, 3u}) of(p, 0)[i].ins = {3};
            }),
            begin + kReduceBack + ")");
  // The same operations of another micro-batch.
  EXPECT_EQ(error_after([](Program& p) {
              for (Call& c : p.lists[0].calls) c.micro_batch = 1 - c.micro_batch;
            }),
            begin.substr(0, begin.find("micro-batch 0 (", 80)) + "micro-batch 1 (" + kReduce + ")");
}

TEST(VerifyRanks, TheOrderOfOperations) {
  // Two of one group.
  const auto three = [](Program& p) {
    of(p, 0) = {of(p, 0)[0], of(p, 0)[1], of(p, 1)[0], of(p, 1)[1]};
    p.lists[0].calls = {{0, 0}};
  };
  const auto exchange = [&](Program& p) {
    three(p);
    std::swap(of(p, 0)[0], of(p, 0)[2]);
    std::swap(of(p, 0)[1], of(p, 0)[3]);
  };
  std::vector<Program> programs(4, whole());
  for (Program& p : programs) three(p);
  EXPECT_EQ(error_of(programs), "");
  exchange(programs[1] = whole());
  EXPECT_EQ(error_of(programs), "train: rank 0 at instruction 0 of forward, micro-batch 0 (" + kReduce +
                                    ") waits for rank 1, which is at instruction 0 of forward, micro-batch 0 (" +
                                    kReduceBack + ")");

  // Two of different groups that are independent of each other.
  const auto apart = [](Program& p) {
    for (size_t i : {2u, 3u}) of(p, 0)[i].ins = {3};
    p.lists[0].calls = {{0, 0}};
  };
  const auto turned = [&](Program& p) {
    apart(p);
    std::rotate(of(p, 0).begin(), of(p, 0).begin() + 2, of(p, 0).end());
  };
  for (Program& p : programs) apart(p = whole());
  turned(programs[1] = whole());
  EXPECT_EQ(error_of(programs), "");  // the others of each group come in time
  turned(programs[2] = whole());
  // 0 is at tensor with 1, 1 at data with 3, 3 at tensor with 2, 2 at data with 0.
  EXPECT_EQ(error_of(programs),
            "train: rank 0 at instruction 0 of forward, micro-batch 0 (" + kReduce +
                ") waits for rank 1, which is at instruction 0 of forward, micro-batch 0 (all_gather of #3 \"w\" into "
                "#2, 64 bytes of fp32, over data, ranks 1 3)");
}

TEST(VerifyRanks, Messages) {
  // Ranks 0 and 1 send x to the ranks at the second data position, which receive it as x.
  std::vector<Program> programs(4, whole());
  const Instruction send = message(Collective::send, 0, kData, 1, 5),
                    receive = message(Collective::receive, 0, kData, 0, 5);
  for (size_t rank = 0; rank < 4; ++rank) {
    const Instruction& i = rank < 2 ? send : receive;
    of(programs[rank], 0) = {i, wait(i)};
    programs[rank].buffer(0).input = "";
    programs[rank].lists[0].calls = {{0, 0}, {0, 1}};
  }
  EXPECT_EQ(error_of(programs), "");
  const auto without = [&](size_t rank, const Change& change) {
    std::vector<Program> damaged = programs;
    change(damaged[rank]);
    return error_of(std::move(damaged));
  };
  const std::string sends =
      "train: rank 0 at instruction 1 of forward, micro-batch 0 (send of #0 \"x\", 64 bytes of "
      "fp32, over data, to rank 2) waits for rank 2, which ";
  const std::string receives =
      "train: rank 2 at instruction 1 of forward, micro-batch 0 (receive of #0 \"x\", 64 "
      "bytes of fp32, over data, from rank 0) waits for rank 0, which ";
  EXPECT_EQ(without(2, [](Program& p) { of(p, 0).clear(); }), sends + "has ended");
  EXPECT_EQ(without(0, [](Program& p) { of(p, 0).clear(); }), receives + "has ended");
  EXPECT_EQ(without(2,
                    [](Program& p) {
                      p.buffer(0).type.shape = {{"n", 8}};
                    }),
            sends +
                "is at instruction 1 of forward, micro-batch 0 (receive of #0 \"x\", 32 bytes of fp32, over data, "
                "from rank 0)");
  EXPECT_EQ(without(2, [](Program& p) { of(p, 0)[0].peer = of(p, 0)[1].peer = 1; }),
            sends +
                "is at instruction 1 of forward, micro-batch 0 (receive of #0 \"x\", 64 bytes of fp32, over data, "
                "from rank 2)");
  EXPECT_EQ(without(0, [](Program& p) { p.lists[0].calls.erase(p.lists[0].calls.begin()); }),
            "train: rank 0 at instruction 1 of forward, micro-batch 1 (send of #0 \"x\", 64 bytes of fp32, over data, "
            "to rank 2) waits for rank 2, which is at instruction 1 of forward, micro-batch 0 (receive of #0 \"x\", 64 "
            "bytes of fp32, over data, from rank 0)");
  // Both wait for their sends: neither completes before the other receives.
  for (size_t rank = 0; rank < 4; ++rank) {
    const Instruction out = message(Collective::send, 0, kData, rank < 2 ? 1 : 0, 5),
                      in = message(Collective::receive, 1, kData, rank < 2 ? 1 : 0, 6);
    of(programs[rank], 0) = {out, wait(out), in, wait(in)};
    programs[rank].buffer(1).name = "x";
  }
  EXPECT_EQ(error_of(programs), sends +
                                    "is at instruction 1 of forward, micro-batch 0 (send of #0 \"x\", 64 bytes of "
                                    "fp32, over data, to rank 0)");
  // One program for all: all send, and none receives.
  EXPECT_EQ(error_of_all([&](Program& p) {
              of(p, 0) = {send, wait(send)};
            }),
            sends +
                "is at instruction 1 of forward, micro-batch 0 (send of #0 \"x\", 64 bytes of fp32, over data, to "
                "rank 2)");
}

TEST(VerifyRanks, AGroupIsMadeByAllItsMembers) {
  // Ranks 0 and 1 use tensor and data, 2 and 3 only tensor; no list calls what would reveal it.
  std::vector<Program> programs(4, whole());
  for (Program& p : programs) p.lists[0].calls.clear();
  for (size_t rank : {2u, 3u}) erase(of(programs[rank], 0), 2, 2);
  EXPECT_EQ(error_of(programs),
            "groups: rank 0 at instruction 2 of forward makes the group over data, ranks 0 2, and rank 2 does not");
}

// Enqueued operations do not block: both may send first and then receive, if the waits come last.
TEST(VerifyRanks, MessagesThatCross) {
  std::vector<Program> programs(4, whole());
  for (size_t rank = 0; rank < 4; ++rank) {
    const Instruction out = message(Collective::send, 0, kData, rank < 2 ? 1 : 0, 5),
                      in = message(Collective::receive, 1, kData, rank < 2 ? 1 : 0, 6);
    of(programs[rank], 0) = {out, in, wait(out), wait(in)};
    of(programs[rank], 1).clear();
    programs[rank].buffer(1).name = "x";
  }
  EXPECT_EQ(error_of(programs), "");
  // Two in the other order.
  for (size_t rank = 0; rank < 4; ++rank) {
    const Instruction a = message(rank < 2 ? Collective::send : Collective::receive, 0, kData, rank < 2 ? 1 : 0, 5),
                      b = message(rank < 2 ? Collective::send : Collective::receive, 3, kData, rank < 2 ? 1 : 0, 6);
    of(programs[rank], 0) = rank < 2 ? std::vector{a, b, wait(a), wait(b)} : std::vector{b, a, wait(a), wait(b)};
  }
  EXPECT_EQ(
      error_of(programs),
      "train: rank 0 at instruction 1 of forward, micro-batch 0 (send of #3 \"w\", 64 bytes of fp32, over data, to "
      "rank 2) waits for rank 2, which is at instruction 1 of forward, micro-batch 0 (receive of #0 \"x\", 64 "
      "bytes of fp32, over data, from rank 0)");
}

// A message that cannot start blocks everything after it on the device, of any communicator.
TEST(VerifyRanks, AMessageThatIsHeldBack) {
  const auto of_channel = [](Instruction i, std::string channel, int event) {
    i.channel = std::move(channel);
    i.event = event;
    return i;
  };
  const auto made = [&](Collective kind, int64_t peer) {
    return std::vector{of_channel(message(kind, 0, kData, peer, 0), "a", 5),
                       of_channel(message(kind, 3, kData, peer, 0), "a", 6),
                       of_channel(message(kind, 1, kData, peer, 0), "c", 7)};
  };
  std::vector<Program> programs(4, whole());
  const std::vector<Instruction> sent = made(Collective::send, 1), received = made(Collective::receive, 0);
  const auto with = [&](const std::vector<Instruction>& first, const std::vector<Instruction>& second) {
    for (size_t rank = 0; rank < 4; ++rank) {
      of(programs[rank], 0) = rank < 2 ? first : second;
      of(programs[rank], 1).clear();
      for (BufferId b : {0, 1, 3}) programs[rank].buffer(b).input = rank < 2 ? "input" : "";
    }
    return error_of(programs);
  };
  const auto &a = sent, &b = received;
  const std::vector<Instruction> ends = {a[0], a[1], a[2], wait(a[0]), wait(a[1]), wait(a[2])};
  EXPECT_EQ(with(ends, {b[0], b[1], b[2], wait(b[0]), wait(b[1]), wait(b[2])}), "");
  EXPECT_EQ(with(ends, {b[2], b[0], b[1], wait(b[2]), wait(b[0]), wait(b[1])}), "");
  // The second message of channel a starts when the first has ended, and c after it; the peer wants c first.
  EXPECT_EQ(with(ends, {b[2], wait(b[2]), b[0], b[1], wait(b[0]), wait(b[1])}),
            "train: rank 0 at instruction 1 of forward, micro-batch 0 (send of #3 \"w\", 64 bytes of fp32, over data, "
            "to rank 2) waits for rank 2, which is at instruction 1 of forward, micro-batch 0 (receive of #1 \"y\", 64 "
            "bytes of fp32, over data, from rank 0)");
  // So does a collective that the other members have reached.
  const Instruction sum = start(Collective::all_reduce, 2, 2, kTensor, 8);
  const std::vector<Instruction> sums = {sum, wait(sum)};
  const auto joined = [](std::vector<Instruction> x, const std::vector<Instruction>& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
  };
  for (Program& p : programs) p.buffer(2).input = "z";
  EXPECT_EQ(with(joined({a[0]}, joined(sums, {wait(a[0])})), joined(sums, {b[0], wait(b[0])})), "");
  EXPECT_EQ(with(joined({a[0], wait(a[0])}, sums), joined(sums, {b[0], wait(b[0])})), "");
  EXPECT_EQ(with(joined({a[0], a[1]}, joined(sums, {wait(a[0]), wait(a[1]), a[2], wait(a[2])})),
                 joined({b[2], wait(b[2]), b[0], b[1]}, joined(sums, {wait(b[0]), wait(b[1])}))),
            "train: rank 0 at instruction 1 of forward, micro-batch 0 (send of #3 \"w\", 64 bytes of fp32, over data, "
            "to rank 2) waits for rank 2, which is at instruction 1 of forward, micro-batch 0 (receive of #1 \"y\", 64 "
            "bytes of fp32, over data, from rank 0)");
}

// A message may be awaited in a later call of its micro-batch, once.
TEST(VerifyRanks, MessagesFromCallToCall) {
  std::vector<Program> programs(4, whole());
  const Instruction send = message(Collective::send, 0, kData, 1, 5),
                    receive = message(Collective::receive, 0, kData, 0, 5);
  for (size_t rank = 0; rank < 4; ++rank) {
    Program& p = programs[rank];
    const Instruction& i = rank < 2 ? send : receive;
    of(p, 0) = {i};
    of(p, 1) = {wait(i)};
    // Each micro-batch has a separate x.
    p.buffer(0).segment = 0;
    p.lists[0].slots = {{0}, {64}};
    p.lists[0].calls = {{0, 0, 0}, {0, 1, 1}, {1, 0, 0}, {1, 1, 1}};
  }
  EXPECT_EQ(error_of(programs), "");
  const auto with = [&](std::vector<Call> calls) {
    std::vector<Program> damaged = programs;
    damaged[0].lists[0].calls = std::move(calls);
    return error_of(std::move(damaged));
  };
  const std::string what = "send of #0 \"x\", 64 bytes of fp32, over data, to rank 2";
  EXPECT_EQ(with({{0, 0, 0}, {0, 1, 1}, {1, 0, 0}}), "train: rank 0, micro-batch 1: nothing waits for " + what);
  EXPECT_EQ(with({{0, 0}, {1, 0}, {1, 1}}),
            "train: rank 0 at instruction 0 of backward, micro-batch 1 (" + what + ") waits for what was not started");
  EXPECT_EQ(with({{0, 0}, {0, 0}, {1, 0}, {1, 1}}),
            "train: rank 0 at instruction 0 of forward, micro-batch 0 (" + what + ") is already in flight");
}

TEST(VerifyRanks, ProgramsThatDoNotBelongTogether) {
  EXPECT_EQ(error_of({whole(), whole()}), "2 programs for 4 ranks");
  EXPECT_EQ(error_of({}), "no program");
  EXPECT_EQ(error_after([](Program& p) { p.mesh = mesh::Mesh({{.name = "data", .size = 4}}); }),
            "rank 1 has the mesh data=4, and rank 0 data=2 tensor=2");
  EXPECT_EQ(error_after([](Program& p) { p.lists[0].step = Step::evaluate; }),
            "list 0 of rank 1 is \"evaluate\", and of rank 0 \"train\"");
  EXPECT_EQ(error_after([](Program& p) { p.lists.push_back({.step = Step::evaluate, .calls = {}}); }),
            "rank 1 has 2 lists, and rank 0 1");
  // A call without communication, which would not be missed.
  std::vector<Program> programs(4, whole());
  for (Program& p : programs) {
    p.bodies.push_back({.name = "quiet", .instructions = {}});
    p.lists[0].calls.push_back({2, -1});
  }
  programs[3].lists[0].calls.pop_back();
  EXPECT_EQ(error_of(programs), "train: call 4 of rank 3 is nothing, and of rank 0, which has the same buffers, quiet");
}

// Damage visible on one rank alone.
TEST(VerifyCommunication, Waits) {
  const std::string first = "train: rank 0 at instruction 0 of forward (" + kReduce + ")";
  const std::string gather = kGather + "0 2";
  EXPECT_EQ(error_of_all([](Program& p) { erase(of(p, 0), 3, 1); }),
            "train: rank 0 at instruction 2 of forward (" + gather + ") never waits for it");
  EXPECT_EQ(error_of_all([](Program& p) { erase(of(p, 0), 1, 1); }),
            "train: rank 0 at instruction 1 of forward (" + gather + ") reads #1 \"y\", which instruction 0 (" +
                kReduce + ") still makes");
  EXPECT_EQ(error_of_all([](Program& p) { erase(of(p, 0), 0, 1); }),
            "train: rank 0 at instruction 0 of forward (" + kReduce + ") waits for what was not started");
  EXPECT_EQ(error_of_all([](Program& p) { std::swap(of(p, 0)[0], of(p, 0)[1]); }),
            first + " waits for what was not started");
  EXPECT_EQ(
      error_of_all([](Program& p) { of(p, 0)[3] = of(p, 0)[1]; }),
      "train: rank 0 at instruction 3 of forward (" + kReduce + ") waits for instruction 0, as instruction 1 did");
  EXPECT_EQ(error_of_all([](Program& p) { of(p, 0)[3].event = 0; }),
            "train: rank 0 at instruction 3 of forward (" + gather + ") waits for instruction 0, which is " + kReduce);
  EXPECT_EQ(error_of_all([](Program& p) { of(p, 0)[2].event = of(p, 0)[3].event = 0; }),
            "train: rank 0 at instruction 2 of forward (" + gather + "): it has the event 0 of instruction 0");
  EXPECT_EQ(error_of_all([](Program& p) { of(p, 0)[0].event = -1; }), first + ": it has no event");
}

TEST(VerifyCommunication, OperandsUnderWay) {
  const auto between = [](std::vector<BufferId> ins, std::vector<BufferId> outs, BufferId workspace) {
    return error_of_all([&](Program& p) {
      Instruction i = {.kernel = "add", .ins = ins, .outs = outs, .attributes = {}, .phase = program::Phase::forward};
      i.workspace = workspace;
      of(p, 0).insert(of(p, 0).begin() + 1, i);
    });
  };
  const std::string begin = "train: rank 0 at instruction 1 of forward (add) ",
                    end = ", which instruction 0 (" + kReduce + ") ";
  EXPECT_EQ(between({0}, {3}, kNoBuffer), "");
  EXPECT_EQ(between({1}, {3}, kNoBuffer), begin + "reads #1 \"y\"" + end + "still makes");
  EXPECT_EQ(between({0}, {1}, kNoBuffer), begin + "writes #1 \"y\"" + end + "still makes");
  EXPECT_EQ(between({3}, {0}, kNoBuffer), begin + "writes #0 \"x\"" + end + "still reads");
  EXPECT_EQ(between({3}, {2}, 1), begin + "writes #1 \"y\"" + end + "still makes");
}

TEST(VerifyCommunication, KindsAndSizes) {
  const std::string first = "train: rank 0 at instruction 0 of forward (" + kReduce + ")";
  const auto changed = [](size_t at, const std::function<void(Program&, Instruction&)>& change) {
    return error_of_all([&](Program& p) { change(p, of(p, 0)[at]); });
  };
  EXPECT_EQ(
      changed(0, [](Program&, Instruction& i) { i.group.clear(); }),
      "train: rank 0 at instruction 0 of forward (all_reduce sum of #0 \"x\" into #1, 64 bytes of fp32, over nothing, "
      "ranks 0): it has no group");
  EXPECT_EQ(changed(0, [](Program&, Instruction& i) { i.peer = 1; }), first + ": it has peer 1 of 2 places");
  EXPECT_EQ(changed(0, [](Program&, Instruction& i) { i.outs = {1, 3}; }), first + ": it has 1 inputs and 2 outputs");
  EXPECT_EQ(changed(0, [](Program&, Instruction& i) { i = message(Collective::send, 0, kTensor, 2, 0); }),
            "train: rank 0 at instruction 0 of forward (send of #0 \"x\", 64 bytes of fp32, over tensor, place 2): it "
            "has peer 2 of "
            "2 places");
  EXPECT_EQ(changed(0, [](Program& p, Instruction&) { p.buffer(1).type.dtype = DType::i32; }),
            first + ": fp32 becomes int32");
  EXPECT_EQ(changed(0,
                    [](Program& p, Instruction&) {
                      p.buffer(1).type.shape = {{"n", 15}};
                    }),
            first + ": 16 elements become 15 instead of 16");
  EXPECT_EQ(changed(2,
                    [](Program& p, Instruction&) {
                      p.buffer(2).type.shape = {{"n", 31}};
                    }),
            "train: rank 0 at instruction 2 of forward (" + kGather + "0 2): 16 elements become 31 instead of 32");
  EXPECT_EQ(changed(0,
                    [](Program& p, Instruction& i) {
                      i.collective = Collective::reduce_scatter;
                      p.buffer(0).type.shape = {{"n", 15}};
                    }),
            "train: rank 0 at instruction 0 of forward (reduce_scatter sum of #0 \"x\" into #1, 60 bytes of fp32, over "
            "tensor, "
            "ranks 0 1): 15 elements are not 2 equal parts");
  // In place: the whole of an all_reduce, the own part of a gather, nothing of an all_to_all.
  EXPECT_EQ(error_of_all([](Program& p) { p.buffer(1).offset = 0; }), "");
  EXPECT_EQ(changed(0, [](Program& p, Instruction&) { p.buffer(1).offset = 32; }),
            first + ": on rank 0, its output overlaps its input");
  const auto own_part = [](Program& p, mesh::Factor f) {
    p.buffer(1).same_as = 2;
    p.buffer(1).part = {f};
  };
  EXPECT_EQ(error_of_all([&](Program& p) { own_part(p, kData); }), "");
  EXPECT_EQ(error_of_all([&](Program& p) { own_part(p, kTensor); }),
            "train: rank 0 at instruction 2 of forward (" + kGather + "0 2): on rank 2, its output overlaps its input");
  EXPECT_EQ(error_of_all([](Program& p) {
              p.buffer(1).offset = 0;
              for (size_t i : {0u, 1u}) of(p, 0)[i].collective = Collective::all_to_all;
            }),
            "train: rank 0 at instruction 0 of forward (all_to_all of #0 \"x\" into #1, 64 bytes of fp32, over tensor, "
            "ranks 0 "
            "1): its output overlaps its input");
}

// 1,024 ranks: all equal, except one with a different program.
TEST(VerifyRanks, ManyRanks) {
  Program p = whole();
  p.mesh = mesh::Mesh({{.name = "data", .size = 32}, {.name = "tensor", .size = 32}});
  const Instruction a = start(Collective::all_reduce, 0, 1, 0, 0), b = start(Collective::all_reduce, 0, 3, 5, 1);
  std::vector<Instruction>& list = of(p, 0);
  list.clear();
  for (int i = 0; i < 500; ++i) {
    for (Instruction one : {a, b}) {
      one.event = static_cast<int>(list.size());
      one.group =
          one.group[0] == 0 ? std::vector<mesh::Factor>{0, 1, 2, 3, 4} : std::vector<mesh::Factor>{5, 6, 7, 8, 9};
      list.push_back(one);
      list.push_back(wait(one));
    }
  }
  p.lists[0].calls = {{0, 0}, {0, 1}};
  verify_ranks(p);
  std::vector<const Program*> programs(1024, &p);
  Program other = p;
  programs[77] = &other;
  verify_ranks(programs);
  erase(of(other, 0), 1998, 2);
  try {
    verify_ranks(programs);
    FAIL();
  } catch (const base::InternalError& e) {
    const std::string reduce =
        "(all_reduce sum of #0 \"x\" into #3, 64 bytes of fp32, over tensor, ranks 64 65 66 ... 95 (32 ranks))";
    EXPECT_EQ(e.what(), "[verify] internal error: train: rank 64 at instruction 1998 of forward, micro-batch 0 " +
                            reduce + " waits for rank 77, which is at instruction 2 of forward, micro-batch 1 " +
                            reduce);
  }
}

}  // namespace kintsugi::program::verify_ranks_test
