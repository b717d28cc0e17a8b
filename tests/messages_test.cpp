// Two ranks with separate programs, one sending to the other: what is verified is what runs.
#include <gtest/gtest.h>

#include <chrono>

#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/program/verify.h"
#include "kintsugi/program/verify_ranks.h"
#include "tests/layouts.h"
#include "tests/small_model.h"

namespace kintsugi::tests::messages_test {
namespace {

using program::Instruction;
using program::Kind;
using program::Program;

// Rank 0 sends x, and rank 1 receives it, `times` times.
Program end_of(int rank, int times) {
  Program p;
  p.mesh = mesh::Mesh({{.name = "pipe", .size = 2, .cuts_layers = true}});
  p.buffers = {{.name = "x", .type = {{{"n", 16}}, tensor::DType::f32}, .region = program::Region::state, .offset = 0}};
  p.states = {{.name = "x", .buffer = 0, .kind = program::StateKind::weight, .whole = p.buffers[0].type, .init = {}}};
  p.state_bytes = 64;
  p.bodies = {{.name = "forward", .instructions = {}}};
  for (int i = 0; i < times; ++i) {
    Instruction message = {.kind = Kind::collective,
                           .collective = rank == 0 ? program::Collective::send : program::Collective::receive};
    (rank == 0 ? message.ins : message.outs) = {0};
    message.kind = Kind::collective;
    message.group = {0};
    message.peer = 1 - rank;
    message.event = i;
    p.bodies[0].instructions.push_back(message);
    message.kind = Kind::wait;
    p.bodies[0].instructions.push_back(message);
  }
  p.lists = {{.step = program::Step::train, .calls = {{0, 0}}}};
  return p;
}

// The final value of x on rank 1.
std::vector<double> run(const Program& first, const Program& second) {
  const auto kernels = compile::kernels_of(small_model("gpt", "fp32"));
  const auto worlds = comm::thread_worlds(2, {.time_limit = std::chrono::milliseconds(1000)});
  std::vector<double> got;
  comm::run_ranks(worlds, [&](comm::World& world) {
    base::ThreadTeam team(1);
    run::Executor executor(world.rank() == 0 ? first : second, *kernels, team, &world);
    for (float& x : executor.state("x").as<float>()) x = world.rank() == 0 ? 2.5f : 1.0f;
    kernels::Numbers numbers;
    executor.run(program::Step::train, numbers, [](const auto&) {});
    if (world.rank() == 1) got = values(executor.state("x"));
  });
  return got;
}

}  // namespace

TEST(Messages, ArriveWhereTheProgramsSaySo) {
  const Program first = end_of(0, 2), second = end_of(1, 2);
  for (const Program* p : {&first, &second}) program::verify(*p);
  program::verify_ranks(std::vector<const Program*>{&first, &second});
  EXPECT_EQ(run(first, second), std::vector<double>(16, 2.5));
}

// Of the gradient after a norm that follows the residual addition, one term is whole and the other is reduced first.
// They are added before they are sent.
TEST(Messages, ASumOfAnotherStageIsSentOnce) {
  for (const char* layout :
       {"pipe=2 tensor=2", "pipe=2 tensor=2 sequence_parallel", "pipe=2 tensor=2 schedule=interleaved chunks=2"}) {
    config::Settings s = small_model("gpt", "fp32");
    s.model.norm_place = "after";
    s.model.layers = 4;
    s.train.global_batch = 8;
    set_layout(s, layout);
    const train::LayoutRun run(s);
    int64_t calls = 0, received = 0;
    const Program& p = run.program();
    for (const program::Call& call : p.list(program::Step::train).calls) {
      const program::Body& body = p.bodies[static_cast<size_t>(call.body)];
      if (!body.name.starts_with("backward")) continue;
      calls += body.role == program::Role::work;
      for (const Instruction& i : body.instructions)
        received += i.kind == Kind::collective && i.collective == program::Collective::receive;
    }
    EXPECT_EQ(calls, 4 * s.parallel.chunks) << layout;
    EXPECT_EQ(received, calls) << layout;
  }
}

TEST(Messages, WhatIsNotSentIsRefusedAndEndsInTime) {
  const Program first = end_of(0, 1), second = end_of(1, 2);
  EXPECT_EQ(
      error_of([&] {
        program::verify_ranks(std::vector<const Program*>{&first, &second});
      }),
      "[verify] internal error: train: rank 1 at instruction 3 of forward, micro-batch 0 (receive of #0 \"x\", 64 "
      "bytes of fp32, over pipe, from rank 0) waits for rank 0, which has ended");
  const std::string late = error_of([&] { run(first, second); });
  EXPECT_TRUE(late.starts_with("[comm] rank 1: receive of \"x\" over pipe (forward, layer 0): ")) << late;
}

}  // namespace kintsugi::tests::messages_test
