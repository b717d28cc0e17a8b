// The queues of a program of four ranks with every kind of instruction.
#include "kintsugi/program/queue.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"

namespace kintsugi::program::queue_test {
namespace {

// data=2 tensor=2: factor 0 is data, 1 is tensor.
constexpr mesh::Factor kData = 0, kTensor = 1;

Instruction collective(Collective kind, std::vector<mesh::Factor> group) {
  return {.kind = Kind::collective, .collective = kind, .group = std::move(group)};
}

Instruction message(Collective kind, std::string channel, int64_t peer) {
  Instruction i = collective(kind, {kData});
  i.channel = std::move(channel);
  i.peer = peer;
  return i;
}

Program sample() {
  const Instruction gather = collective(Collective::all_gather, {kTensor}),
                    reduce = collective(Collective::all_reduce, {kTensor}),
                    both = collective(Collective::all_reduce, {kData, kTensor}),
                    send = message(Collective::send, "forward from 0", 1),
                    receive = message(Collective::receive, "backward from 1", 1), fetch = {.kind = Kind::copy};
  Program p;
  p.mesh = mesh::Mesh({{.name = "data", .size = 2}, {.name = "tensor", .size = 2}});
  p.bodies = {{.name = "forward", .instructions = {gather, {.kernel = "add"}, wait_for(gather), reduce, both, send}},
              {.name = "backward", .instructions = {fetch, receive, wait_for(fetch), wait_for(receive)}}};
  return p;
}

TEST(Queue, EachInstructionHasOne) {
  const Program p = sample();
  const Queues queues = queues_of(p);
  const Queue compute, copy = {.kind = QueueKind::copy}, both = {QueueKind::channel, {kData, kTensor}, "", -1},
                       receive = {QueueKind::channel, {kData}, "backward from 1", 1},
                       send = {QueueKind::channel, {kData}, "forward from 0", 1},
                       tensor = {QueueKind::channel, {kTensor}, "", -1};
  EXPECT_EQ(queues.all, (std::vector<Queue>{compute, copy, receive, send, both, tensor}));
  using Numbers = std::vector<std::vector<int>>;
  EXPECT_EQ(queues.of, (Numbers{{5, 0, 0, 5, 4, 3}, {1, 2, 0, 0}}));
  EXPECT_EQ(queues.awaited, (Numbers{{-1, -1, 5, -1, -1, -1}, {-1, -1, 1, 2}}));
  EXPECT_EQ(queue_of(p.bodies[1].instructions[3]), compute);
  EXPECT_EQ(awaited_queue(p.bodies[1].instructions[3]), receive);
  EXPECT_EQ(queues_of({}).all, std::vector<Queue>{compute});
}

TEST(Queue, AChannelHasItsRanks) {
  const mesh::Mesh mesh = sample().mesh;
  EXPECT_EQ(members(mesh, {QueueKind::channel, {kData, kTensor}, "", -1}, 2), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(members(mesh, {QueueKind::channel, {kTensor}, "", -1}, 2), (std::vector<int>{2, 3}));
  // Both ends of messages: rank 3 and the first of its data group.
  EXPECT_EQ(members(mesh, {QueueKind::channel, {kData}, "forward from 0", 0}, 3), (std::vector<int>{1, 3}));
}

TEST(Queue, OnlyAWaitAwaits) {
  try {
    awaited_queue({.kernel = "gelu"});
    FAIL();
  } catch (const base::InternalError& e) {
    EXPECT_STREQ(e.what(), "[program] internal error: gelu waits for nothing");
  }
  Program p = sample();
  p.bodies.erase(p.bodies.begin(), p.bodies.begin() + 1);
  p.bodies[0].instructions.erase(p.bodies[0].instructions.begin());
  try {
    queues_of(p);
    FAIL();
  } catch (const base::InternalError& e) {
    EXPECT_STREQ(e.what(), "[program] internal error: a wait for a queue that does nothing");
  }
}

}  // namespace
}  // namespace kintsugi::program::queue_test
