// A stage that receives one call early and waits for its send two calls later, and every way in which a call in between
// may access memory in flight, with the full error.
#include "kintsugi/program/verify_messages.h"

#include <gtest/gtest.h>

#include <functional>

#include "kintsugi/base/error.h"
#include "kintsugi/program/verify.h"
#include "kintsugi/program/verify_communication.h"

namespace kintsugi::program::verify_messages_test {
namespace {

enum : BufferId { x, y, z, t, ids, part };             // buffers
enum : size_t { receives, forward, backward, waits };  // bodies

Instruction message(Collective kind, BufferId b, int event) {
  Instruction i = {.kind = Kind::collective, .collective = kind, .group = {0}, .peer = 0, .event = event};
  (kind == Collective::send ? i.ins : i.outs) = {b};
  return i;
}

Instruction kernel(const std::string& name, std::vector<BufferId> ins, std::vector<BufferId> outs) {
  return {.kernel = name, .ins = std::move(ins), .outs = std::move(outs)};
}

// The second of two stages. x is received, y = f(x) is sent, z = g(x) belongs to the backward call. x and y have
// separate segments with two slots each: even micro-batches use the first.
Program whole() {
  const tensor::Type type = {{{"n", 16}}, tensor::DType::f32};
  const auto buffer = [&](std::string name, int64_t offset, int segment) {
    return Buffer{.name = std::move(name), .type = type, .offset = offset, .segment = segment};
  };
  const Instruction receive = message(Collective::receive, x, 0), send = message(Collective::send, y, 1);
  Program p;
  p.mesh = mesh::Mesh({{.name = "pipe", .size = 2, .cuts_layers = true}});
  p.stage = 1;
  p.buffers = {buffer("x", 0, 0), buffer("y", 0, 1), buffer("z", 256, -1), buffer("t", 320, -1),
               buffer("ids", 384, -1)};
  p.buffers[ids].input = "ids";
  p.buffers.push_back({.name = "part", .type = {{{"n", 4}}, tensor::DType::f32}, .same_as = y, .shift = 32});
  p.bodies = {{.name = "forward.receive", .instructions = {receive}, .role = Role::receives},
              {.name = "forward", .instructions = {wait_for(receive), kernel("gelu", {x}, {y}), send}},
              {.name = "backward", .instructions = {kernel("gelu", {x}, {z}), kernel("add", {z, ids}, {t})}},
              {.name = "forward.sent", .instructions = {wait_for(send)}, .role = Role::waits_for_sent}};
  p.lists = {{.step = Step::train,
              .calls = {{receives, 0, 0},
                        {receives, 1, 1},
                        {forward, 0, 0},
                        {backward, 0, 0},
                        {forward, 1, 1},
                        {waits, 0, 0},
                        {backward, 1, 1},
                        {waits, 1, 1}},
              .slots = {{0, 64}, {128, 192}}}};
  p.arena_bytes = 448;
  return p;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const base::InternalError& e) {
    const std::string text = e.what(), begin = "[verify] internal error: train: rank 1 ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  }
  return "";
}

std::string error_after(const std::function<void(Program&)>& change) {
  Program p = whole();
  change(p);
  return error_of([&] { verify_messages(p, 1); });
}

const std::string kSend =
    "instruction 2 of forward, micro-batch 0 (send of #1 \"y\", 64 bytes of fp32, over pipe, to rank 0)";
const std::string kReceive =
    "instruction 0 of forward.receive, micro-batch 1 (receive of #0 \"x\", 64 bytes of fp32, over pipe, from rank 0)";

std::vector<Instruction>& of(Program& p, size_t body) {
  return p.bodies[body].instructions;
}

}  // namespace

TEST(VerifyMessages, AWholeProgram) {
  EXPECT_EQ(error_after([](Program&) {}), "");
  const Program p = whole();
  EXPECT_EQ(error_of([&] { verify(p); }), "");
  EXPECT_EQ(error_of([&] { verify_communication(p, 1); }), "");
}

TEST(VerifyMessages, ABodyBetweenThatWritesWhatIsSent) {
  // Through the same buffer, which byte ownership cannot distinguish from its previous content.
  const auto damage = [](Program& p) { of(p, backward).insert(of(p, backward).begin(), kernel("scale", {y}, {y})); };
  const std::string text =
      "at instruction 0 of backward, micro-batch 0 (scale) writes #1 \"y\", which " + kSend + " still reads";
  EXPECT_EQ(error_after(damage), text);
  Program p = whole();
  damage(p);
  EXPECT_EQ(error_of([&] { verify(p); }), text);
  EXPECT_EQ(error_of([&] { verify_communication(p, 1); }), text);
  // Reading it is allowed.
  EXPECT_EQ(error_after([](Program& q) { of(q, backward).push_back(kernel("add", {y, z}, {t})); }), "");
  // Through a view of it, as a workspace, by other buffers at the same place.
  EXPECT_EQ(error_after([](Program& q) { of(q, backward)[1].outs = {part}; }),
            "at instruction 1 of backward, micro-batch 0 (add) writes #5 \"part\", which " + kSend + " still reads");
  EXPECT_EQ(error_after([](Program& q) { of(q, backward)[0].workspace = y; }),
            "at instruction 0 of backward, micro-batch 0 (gelu) writes #1 \"y\", which " + kSend + " still reads");
  EXPECT_EQ(error_after([](Program& q) { q.buffer(t).offset = 32; }),
            "at instruction 1 of backward, micro-batch 0 (add) writes #3 \"t\", which " + kSend + " still reads");
}

// While a sum is in flight, no call in between reads or writes it.
TEST(VerifyMessages, ASumThatALaterCallAwaits) {
  const auto with_sum = [](Program& p) {
    const Instruction sum = {.kind = Kind::collective, .ins = {y}, .outs = {y}, .group = {0}, .event = 1};
    of(p, forward)[2] = sum;
    of(p, waits) = {wait_for(sum)};
    p.bodies[waits].role = Role::waits_for_sums;
  };
  EXPECT_EQ(error_after(with_sum), "");
  const std::string reads = error_after([&](Program& p) {
    with_sum(p);
    of(p, backward)[1].ins = {z, y};
  });
  EXPECT_TRUE(
      reads.starts_with("at instruction 1 of backward, micro-batch 0 (add) reads #1 \"y\", which instruction 2 "
                        "of forward, micro-batch 0 (all_reduce sum of #1 \"y\""))
      << reads;
  EXPECT_TRUE(reads.ends_with(" still makes")) << reads;
  EXPECT_NE(error_after([&](Program& p) {
              with_sum(p);
              p.lists[0].calls.pop_back();
            }).find("nothing waits for all_reduce sum of #1"),
            std::string::npos);
  Program p = whole();  // in its own body
  with_sum(p);
  EXPECT_EQ(error_of([&] { verify_communication(p, 1); }), "");
  of(p, forward).push_back(kernel("gelu", {y}, {t}));
  EXPECT_NE(error_of([&] { verify_communication(p, 1); }).find("of forward (gelu) reads #1 \"y\""), std::string::npos);
}

// Segments of two calls that share bytes.
TEST(VerifyMessages, APlaceThatIsTakenTooEarly) {
  EXPECT_EQ(error_after([](Program& p) { p.lists[0].slots[1][1] = 64; }),
            "at instruction 1 of forward, micro-batch 1 (gelu) writes #1 \"y\", which " + kSend + " still reads");
  EXPECT_EQ(error_after([](Program& p) { p.lists[0].slots[0][1] = 128 + 32; }),
            "at instruction 1 of forward, micro-batch 0 (gelu) writes #1 \"y\", which " + kReceive + " still makes");
}

TEST(VerifyMessages, WhatIsReceivedIsNeitherReadNorWritten) {
  const std::string receive =
      "instruction 0 of forward.receive, micro-batch 0 (receive of #0 \"x\", 64 bytes of fp32, over pipe, from rank 0)";
  const auto with = [](BufferId in, BufferId out) {
    return error_after([&](Program& p) {
      p.lists[0].calls.insert(p.lists[0].calls.begin() + 1, {backward, 0, 0});
      of(p, backward) = {kernel("gelu", {in}, {out})};
    });
  };
  const std::string gelu = "at instruction 0 of backward, micro-batch 0 (gelu) ";
  EXPECT_EQ(with(x, z), gelu + "reads #0 \"x\", which " + receive + " still makes");
  EXPECT_EQ(with(z, x), gelu + "writes #0 \"x\", which " + receive + " still makes");
  // By a receive for another micro-batch into the same place.
  EXPECT_EQ(
      error_after([](Program& p) {
        p.lists[0].calls = {{receives, 0, 0}, {receives, 1, 0}};
      }),
      "at instruction 0 of forward.receive, micro-batch 1 (receive of #0 \"x\", 64 bytes of fp32, over pipe, from "
      "rank 0) writes #0 \"x\", which " +
          receive + " still makes");
}

// Also in the bodies of the start and the wait, but only before the one and after the other.
TEST(VerifyMessages, TheCallsOfTheStartAndTheWait) {
  EXPECT_EQ(error_after([](Program& p) { of(p, forward).push_back(kernel("scale", {y}, {y})); }),
            "at instruction 3 of forward, micro-batch 0 (scale) writes #1 \"y\", which " + kSend + " still reads");
  EXPECT_EQ(error_after([](Program& p) { of(p, waits).insert(of(p, waits).begin(), kernel("scale", {y}, {y})); }),
            "at instruction 0 of forward.sent, micro-batch 0 (scale) writes #1 \"y\", which " + kSend + " still reads");
  EXPECT_EQ(error_after([](Program& p) { of(p, waits).push_back(kernel("scale", {y}, {y})); }), "");
}

// An input placed over a buffer being sent is filled before the call that reads it.
TEST(VerifyMessages, AnInputThatTheRunFills) {
  EXPECT_EQ(error_after([](Program& p) { p.buffer(ids).offset = 64; }),
            "before backward, micro-batch 0 fills #4 \"ids\", which " + kSend + " still reads");
}

// A part counts as its whole, since its offset depends on the rank.
TEST(VerifyMessages, APartIsTheWhole) {
  EXPECT_EQ(error_after([](Program& p) {
              p.buffer(part).part = {0};
              p.buffer(part).type = {{{"n", 8}}, tensor::DType::f32};
              of(p, backward)[1].outs = {part};
            }),
            "at instruction 1 of backward, micro-batch 0 (add) writes #5 \"part\", which " + kSend + " still reads");
}

// In a long list, similar calls are checked once; the first deviating one is found.
TEST(VerifyMessages, ALaterMicroBatchAlone) {
  const auto list = [](Program& p, int64_t micro_batches) {
    p.lists[0].calls.clear();
    for (int64_t m = 0; m < micro_batches; ++m)
      for (size_t body : {receives, forward, backward, waits})
        p.lists[0].calls.push_back({static_cast<int>(body), m, static_cast<int>(m % 2)});
  };
  EXPECT_EQ(error_after([&](Program& p) { list(p, 100); }), "");
  EXPECT_EQ(error_after([&](Program& p) {
              list(p, 100);
              p.lists[0].slots.push_back({256, 320});
              for (size_t body : {receives, forward, backward, waits}) p.lists[0].calls[4 * 97 + body].slot = 2;
            }),
            "at instruction 1 of backward, micro-batch 97 (add) writes #3 \"t\", which instruction 2 of forward, "
            "micro-batch 97 (send of #1 \"y\", 64 bytes of fp32, over pipe, to rank 0) still reads");
}

TEST(VerifyMessages, StartsAndWaitsAreOneToOne) {
  const auto with = [](const std::vector<Call>& calls) {
    return error_after([&](Program& p) { p.lists[0].calls = calls; });
  };
  const std::string receive = "receive of #0 \"x\", 64 bytes of fp32, over pipe, from rank 0";
  EXPECT_EQ(with({{receives, 0, 0}, {receives, 0, 0}}),
            "at instruction 0 of forward.receive, micro-batch 0 (" + receive + ") is already in flight");
  EXPECT_EQ(with({{receives, 0, 0}, {forward, 1, 1}}),
            "at instruction 0 of forward, micro-batch 1 (" + receive + ") waits for what was not started");
  EXPECT_EQ(error_after([](Program& p) {
              p.lists[0].calls = {{receives, 2, 0}, {receives, 1, 1}};
            }),
            "[verify] internal error: train: rank 1, micro-batch 1: nothing waits for " + receive);
}

}  // namespace kintsugi::program::verify_messages_test
