// Properties of a program before it runs: damage is found by name, memory is near its lower bound, sizes are as
// published.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/program/verify.h"
#include "tests/small_model.h"

namespace kintsugi::tests::program_test {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Program;

class Damaged : public testing::Test {
 protected:
  Damaged() : p(build()) { program::verify(p); }

  static Program build() {
    const config::Settings s = small_model("llama", "fp32");
    return compile::only_stage(compile::compile({.settings = s, .kernels = *compile::kernels_of(s)}));
  }

  Body& body(std::string_view name) {
    for (Body& b : p.bodies)
      if (b.name == name) return b;
    throw base::InternalError("test", "no body {}", name);
  }

  // The index of the nth instruction of a kind in a body.
  size_t find(std::string_view of, std::string_view kernel, int nth = 0) {
    const Body& b = body(of);
    for (size_t i = 0; i < b.instructions.size(); ++i)
      if (b.instructions[i].kernel == kernel && nth-- == 0) return i;
    throw base::InternalError("test", "no {} in {}", kernel, of);
  }

  // The first instruction of a body, from `begin` on, that reads a buffer.
  size_t reader(std::string_view of, BufferId b, size_t begin = 0) {
    const Body& in = body(of);
    for (size_t i = begin; i < in.instructions.size(); ++i)
      for (BufferId read : in.instructions[i].ins)
        if (p.root(read) == p.root(b)) return i;
    throw base::InternalError("test", "nothing in {} reads #{}", of, b);
  }

  BufferId read_by(std::string_view of, size_t at, BufferId b) {
    for (BufferId read : body(of).instructions[at].ins)
      if (p.root(read) == p.root(b)) return read;
    return program::kNoBuffer;
  }

  std::string error() {
    return error_of([&] { program::verify(p); });
  }

  // "reads" etc. of an absent operand.
  std::string missing(std::string_view of, size_t at, BufferId b) {
    return fmt::format("[verify] internal error: train: instruction {} of {} ({}) reads #{} \"{}\", which is not there",
                       at, of, body(of).instructions[at].kernel, b, p.buffer(b).name);
  }

  Program p;
};

TEST_F(Damaged, ABufferThatOverlapsALiveOne) {
  // Both live from the forward to the backward pass and have the same size.
  const BufferId first = body("forward.first").instructions[find("forward.first", "attention", 0)].outs[1];
  const BufferId second = body("forward.first").instructions[find("forward.first", "attention", 1)].outs[1];
  ASSERT_EQ(p.buffer(first).bytes(), p.buffer(second).bytes());
  p.buffer(p.root(second)).offset = p.buffer(p.root(first)).offset;
  const size_t at = reader("backward.first", first);
  EXPECT_EQ(error(), missing("backward.first", at, read_by("backward.first", at, first)));
}

TEST_F(Damaged, AnInstructionThatIsDropped) {
  const size_t at = find("forward.first", "rms_norm", 1);
  Body& b = body("forward.first");
  const BufferId lost = b.instructions[at].outs[0];
  b.instructions.erase(b.instructions.begin() + static_cast<std::ptrdiff_t>(at));
  const size_t user = reader("forward.first", lost, at);
  EXPECT_EQ(error(), missing("forward.first", user, read_by("forward.first", user, lost)));
}

TEST_F(Damaged, AReadBeforeItsWrite) {
  const size_t at = find("forward.first", "rms_norm", 0);
  Body& b = body("forward.first");
  const BufferId early = b.instructions[at].outs[0];
  ASSERT_EQ(reader("forward.first", early), at + 1);
  std::swap(b.instructions[at], b.instructions[at + 1]);
  EXPECT_EQ(error(), missing("forward.first", at, early));
}

TEST_F(Damaged, AnInstructionMissingFromALaterMicroBatchAlone) {
  const size_t at = find("backward", "rms_norm_grad", 0);
  Body& b = body("backward");
  const BufferId lost = b.instructions[at].outs[0];
  b.instructions.erase(b.instructions.begin() + static_cast<std::ptrdiff_t>(at));
  const size_t user = reader("backward", lost, at);
  EXPECT_EQ(error(), missing("backward", user, read_by("backward", user, lost)));
}

TEST_F(Damaged, AnOffsetOutsideTheRegion) {
  const BufferId b = p.root(body("forward.first").instructions[find("forward.first", "attention")].outs[0]);
  const int64_t good = p.buffer(b).offset;
  const auto outside = [&](int64_t offset) {
    p.buffer(b).offset = offset;
    EXPECT_EQ(
        error(),
        fmt::format(
            "[verify] internal error: buffer \"{}\" at arena+{} of {} bytes is outside the {} bytes of its region",
            p.buffer(b).name, offset, p.buffer(b).bytes(), p.arena_bytes));
  };
  outside(p.arena_bytes);
  outside(p.aligned(p.arena_bytes - p.buffer(b).bytes()) + p.alignment());
  outside(good + 4);  // not a multiple of the alignment
  p.buffer(b).offset = -1;
  EXPECT_EQ(error(), fmt::format("[verify] internal error: buffer #{} \"{}\" has no place", b, p.buffer(b).name));
}

TEST_F(Damaged, AStateOutsideItsRegion) {
  const program::StateInfo& s = *p.state("final_norm.gamma");
  p.buffer(s.buffer).offset = p.state_bytes;
  EXPECT_EQ(error(),
            fmt::format("[verify] internal error: buffer \"bucket final_norm.gamma\" at state+{} of {} bytes is "
                        "outside the {} bytes of its region",
                        p.state_bytes, p.buffer(s.buffer).bytes(), p.state_bytes));
}

TEST_F(Damaged, StatesThatShareBytes) {
  // The second weight overlaps the first, which is overwritten before it is read.
  p.buffer(p.state("layer1.ffn_norm.gamma")->buffer).offset =
      p.buffer(p.state("layer0.attention_norm.gamma")->buffer).offset;
  const BufferId lost = p.state("layer0.attention_norm.gamma")->buffer;
  const size_t at = reader("forward.first", lost);
  EXPECT_EQ(error(), missing("forward.first", at, read_by("forward.first", at, lost)));
}

TEST_F(Damaged, AnOutputOnItsInput) {
  const size_t at = find("forward.first", "rms_norm", 1);
  const Instruction& i = body("forward.first").instructions[at];
  const BufferId x = p.root(i.ins[0]);
  p.buffer(p.root(i.outs[0])).offset = p.buffer(x).offset;
  EXPECT_EQ(
      error(),
      fmt::format(
          "[verify] internal error: train: instruction {} of forward.first (rms_norm) overwrites its input #{} \"{}\"",
          at, i.ins[0], p.buffer(i.ins[0]).name));
}

TEST_F(Damaged, TwoOutputsInOnePlace) {
  const size_t at = find("forward.first", "attention");
  const Instruction& i = body("forward.first").instructions[at];
  p.buffer(p.root(i.outs[1])).offset = p.buffer(p.root(i.outs[0])).offset;
  EXPECT_EQ(error(),
            fmt::format("[verify] internal error: train: instruction {} of forward.first (attention): output 0 "
                        "overlaps another",
                        at));
}

TEST_F(Damaged, AWorkspaceUnderAnOutput) {
  config::Settings s = small_model("llama", "fp32");
  s.parallel.device = "cpu";
  p = compile::only_stage(compile::compile({.settings = s, .kernels = *compile::kernels_of(s)}));
  const Body& b = body("forward.first");
  for (size_t at = 0; at < b.instructions.size(); ++at) {
    const Instruction& i = b.instructions[at];
    if (i.workspace == program::kNoBuffer || p.buffer(p.root(i.outs[0])).region != program::Region::arena) continue;
    p.buffer(i.workspace).offset = p.buffer(p.root(i.outs[0])).offset;
    EXPECT_EQ(
        error(),
        fmt::format(
            "[verify] internal error: train: instruction {} of forward.first ({}): its workspace overlaps an output",
            at, i.kernel));
    return;
  }
  FAIL() << "no instruction has a workspace";
}

// Compiled, not run.
TEST(MemoryPlan, OfGpt2IsNearItsLowerBound) {
  config::Settings s;
  s.model = models::catalog().size("gpt2")->model;
  s.model.dropout = 0.1;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.train.sequence = 256;
  s.train.min_learning_rate = 0;
  s.parallel.threads = 2;
  for (const std::string dtype : {"fp32", "bf16"}) {
    s.train.dtype = dtype;
    const Program p = compile::only_stage(compile::compile({.settings = s, .kernels = *compile::kernels_of(s)}));
    int64_t weights = 0;
    for (const program::StateInfo& info : p.states)
      if (info.kind == program::StateKind::weight) weights += info.whole.shape.elements();
    EXPECT_EQ(weights, 124'439'808);
    for (const program::CallList& list : p.lists) {
      const double ratio = static_cast<double>(list.arena_bytes) / static_cast<double>(list.lower_bound_bytes);
      fmt::print("gpt2 {}, 4 x 256, {}: arena {}, lower bound {}, ratio {:.4f}\n", dtype, name_of(list.step),
                 list.arena_bytes, list.lower_bound_bytes, ratio);
      EXPECT_GE(ratio, 1.0);
      EXPECT_LT(ratio, 1.02);
      EXPECT_LE(list.arena_bytes, p.arena_bytes);
    }
  }
}

int64_t parameters(std::string_view name) {
  config::Settings s;
  s.model = models::catalog().size(name)->model;
  s.train.sequence = 8;
  s.train.micro_batch = 1;
  graph::StateTable states;
  models::build_forward(s, states);
  int64_t n = 0;
  for (const graph::State& state : states)
    if (state.kind == graph::StateKind::weight) n += state.type.shape.elements();
  return n;
}

// Parameter counts of the published weights.
TEST(NamedSizes, HaveTheirPublishedNumberOfParameters) {
  const std::pair<std::string_view, int64_t> published[] = {
      {"gpt2", 124'439'808},          {"gpt2-medium", 354'823'168},      {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},     {"llama-7b", 6'738'415'616},       {"llama-13b", 13'015'864'320},
      {"llama-33b", 32'528'943'616},  {"llama-65b", 65'285'660'672},     {"llama2-7b", 6'738'415'616},
      {"llama2-13b", 13'015'864'320}, {"llama2-70b", 68'976'648'192},    {"llama3-8b", 8'030'261'248},
      {"llama3-70b", 70'553'706'496}, {"tinyllama-1.1b", 1'100'048'384}, {"stories260k", 260'032},
      {"stories15m", 15'191'712},
  };
  for (const auto& [name, count] : published) EXPECT_EQ(parameters(name), count) << name;
}

// Tables that give billions only, to their digits.
TEST(NamedSizes, RoundToThoseOfTheirTables) {
  struct Row {
    std::string_view name;
    double billions, digit;
  };
  const Row rows[] = {
      {"gpt3-125m", 0.125, 0.002},    {"gpt3-350m", 0.356, 0.002},    {"gpt3-760m", 0.760, 0.002},
      {"gpt3-1.3b", 1.3, 0.05},       {"gpt3-2.7b", 2.7, 0.05},       {"gpt3-6.7b", 6.7, 0.05},
      {"gpt3-13b", 13.0, 0.5},        {"gpt3-175b", 175.0, 0.5},      {"megatron-1.2b", 1.2, 0.05},
      {"megatron-2.5b", 2.5, 0.05},   {"megatron-4.2b", 4.2, 0.05},   {"megatron-8.3b", 8.3, 0.05},
      {"megatron-1.7b", 1.7, 0.05},   {"megatron-3.6b", 3.6, 0.05},   {"megatron-7.5b", 7.5, 0.05},
      {"megatron-18b", 18.4, 0.05},   {"megatron-39b", 39.1, 0.05},   {"megatron-76b", 76.1, 0.05},
      {"megatron-145b", 145.6, 0.05}, {"megatron-310b", 310.1, 0.05}, {"megatron-530b", 529.6, 0.05},
      {"megatron-1t", 1008.0, 0.05},
  };
  for (const Row& r : rows) EXPECT_NEAR(static_cast<double>(parameters(r.name)) * 1e-9, r.billions, r.digit) << r.name;
}

}  // namespace kintsugi::tests::program_test
