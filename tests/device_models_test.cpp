// Whole models on the emulated device compared with one CPU rank: losses, gradients and weights of steps, of which the
// first is enqueued, the second captured and the rest replayed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "kintsugi/compile/programs.h"
#include "kintsugi/kernels/gpu/device_kernels.h"
#include "kintsugi/models/sample_outputs.h"
#include "kintsugi/models/step.h"
#include "kintsugi/program/program.h"
#include "kintsugi/train/compare.h"
#include "kintsugi/train/random_samples.h"
#include "tests/device_layouts.h"
#include "tests/layouts.h"

namespace kintsugi::tests::device_models_test {
namespace {

struct Case {
  std::string family, dtype, layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.dtype << " " << c.layout;
}

class OnADevice : public testing::TestWithParam<Case> {};

TEST_P(OnADevice, IsAsOnTheProcessor) {
  const auto& [family, dtype, layout] = GetParam();
  config::Settings s = small_model(family, dtype);
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.parallel.device = "cpu";
  set_layout(s, "device=emulated " + layout);
  s.model.layers = std::max<int64_t>(2, s.parallel.pipe * s.parallel.chunks);
  s.train.micro_batch /= s.parallel.data;
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  const train::Comparison c = train::compare(
      {.settings = s, .data = samples, .steps = 4, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);
}

INSTANTIATE_TEST_SUITE_P(
    Models, OnADevice,
    testing::Values(
        Case{"gpt", "fp32", ""}, Case{"gpt", "bf16", ""}, Case{"gpt", "fp16", ""}, Case{"llama", "fp32", ""},
        Case{"llama", "bf16", "recompute=full"}, Case{"bert", "fp32", ""}, Case{"gpt", "fp32", "data=2"},
        Case{"gpt", "fp32", "data=2 zero=1"}, Case{"llama", "fp32", "data=2 zero=2"},
        Case{"gpt", "fp32", "data=2 zero=3"}, Case{"llama", "bf16", "data=2 zero=3"}, Case{"gpt", "fp32", "tensor=2"},
        Case{"llama", "fp32", "tensor=2 sequence_parallel"}, Case{"gpt", "bf16", "tensor=2 sequence_parallel"},
        Case{"gpt", "fp32", "context=2"}, Case{"llama", "fp32", "context=2 method=ring"},
        Case{"llama", "fp32", "context=2 method=ulysses"}, Case{"gpt", "fp32", "context=4 method=ring"},
        Case{"llama", "bf16", "context=4 method=ring"}, Case{"gpt", "fp32", "data=2 context=4 method=ring"},
        Case{"gpt", "fp32", "pipe=2 schedule=gpipe"}, Case{"llama", "fp32", "pipe=2 schedule=1f1b"},
        Case{"gpt", "fp32", "pipe=2 schedule=interleaved chunks=2"}, Case{"gpt", "fp32", "pipe=2 schedule=zero_bubble"},
        Case{"llama", "fp32", "pipe=2 data=2 tensor=2"}, Case{"gpt", "bf16", "offload=optimizer"},
        Case{"llama", "fp32", "data=2 zero=1 offload=all"}, Case{"gpt", "fp16", "data=2 tensor=2 zero=2"},
        Case{"gpt", "bf16", "data=2 tensor=2 zero=1 gradient_dtype=bf16"},
        Case{"llama", "bf16", "pipe=2 offload=optimizer gradient_dtype=bf16"},
        Case{"llama", "bf16", "context=2 tensor=2 zero=1"}, Case{"gpt", "fp32", "sequence=32"},
        Case{"gpt", "bf16", "sequence=32 pipe=2 schedule=zero_bubble"},
        Case{"bert", "fp32", "sequence=32 data=2 zero=3"},
        Case{"gpt", "fp16", "sequence=32 tensor=2 sequence_parallel"}));

// Networks of images, with windows whose blocks need positions of other ranks.
class ImagesOnADevice : public testing::TestWithParam<DeviceLayout> {};

TEST_P(ImagesOnADevice, AreAsOnTheProcessor) {
  config::Settings s = settings_of(GetParam());
  const bool wide = s.model.family == "resnet18", normalizes = wide || s.model.family == "unet";
  s.train.global_batch = wide ? 2 : 4;
  s.train.micro_batch = 2 / s.parallel.data;
  s.train.label_smoothing = 0.1;
  s.train.loss = "relative_l2";  // of fields
  // Batch norms of few elements amplify rounding: here of the processor's Winograd convolutions.
  if (normalizes) s.train.learning_rate = s.train.min_learning_rate = 1e-6;
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  const train::Comparison c = train::compare({.settings = s,
                                              .data = samples,
                                              .steps = wide ? 1 : 3,
                                              .tolerance = tolerance,
                                              .loss_tolerance = normalizes ? tolerance : tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);
}

INSTANTIATE_TEST_SUITE_P(
    Models, ImagesOnADevice,
    testing::Values(DeviceLayout{"lenet", "fp32", ""}, DeviceLayout{"lenet", "bf16", ""},
                    DeviceLayout{"lenet", "fp16", "recompute=full"}, DeviceLayout{"lenet", "fp32", "space=2"},
                    DeviceLayout{"lenet", "fp32", "space=3"}, DeviceLayout{"lenet", "fp32", "space=4 tiles"},
                    DeviceLayout{"lenet", "fp32", "space=2 data=2 zero=1"},
                    DeviceLayout{"lenet", "fp32", "space=2 data=2 zero=3"},
                    DeviceLayout{"lenet", "fp32", "space=2 tensor=2"}, DeviceLayout{"lenet", "fp32", "data=2 zero=2"},
                    DeviceLayout{"lenet", "fp32", "pipe=2 schedule=1f1b"},
                    DeviceLayout{"lenet", "fp32", "space=2 pipe=2"}, DeviceLayout{"unet", "fp32", ""},
                    DeviceLayout{"unet", "fp32", "space=2"}, DeviceLayout{"unet", "fp32", "pipe=2 schedule=gpipe"},
                    DeviceLayout{"unet", "fp32", "data=2 replica"}, DeviceLayout{"vit", "fp32", ""},
                    DeviceLayout{"vit", "bf16", "data=2 tensor=2"}, DeviceLayout{"vit:fields", "fp32", "space=2"},
                    DeviceLayout{"resnet18", "fp32", "space=2"}));

// Operations of training, evaluation and outputs for which a device has no kernel.
TEST(OnADevice, HasAKernelForEveryOperationOfAFamily) {
  const auto device = kernels::planned_device_kernels();
  for (const models::Family& family : models::families()) {
    if (family.config.defaults.experts > 0) continue;  // layouts with experts train elsewhere
    config::Settings s = settings_of({std::string(family.config.name), "fp32", "device=cpu"});
    std::set<std::string> lacking;
    const auto look = [&](const std::vector<program::Program>& programs) {
      for (const program::Program& p : programs)
        for (const program::Body& body : p.bodies)
          for (const program::Instruction& i : body.instructions)
            if (i.kind == program::Kind::compute && !device->has(i.kernel)) lacking.insert(i.kernel);
    };
    const auto kernels = compile::kernels_of(s);
    for (const char* optimizer : {"adamw", "sgd"}) {
      s.train.optimizer = optimizer;
      look(compile::compile({.settings = s, .kernels = *kernels}));
    }
    if (models::reads_images(s.model)) {
      const models::Graphs outputs = models::build_outputs(s, s.train.micro_batch, s.train.sequence);
      look(compile::compile({.settings = s, .kernels = *kernels, .graphs = &outputs}));
    }
    EXPECT_EQ(lacking, std::set<std::string>()) << family.config.name;
  }
}

// How often the gradients of query, key and value are computed as one buffer: in each layer with more positions than
// this costs, except with rotary positions or if ranks exchange gradients of keys. One matmul then computes the
// gradients of their weights.
TEST(OnADevice, MakesGradientsSideBySide) {
  struct Expected {
    std::string family, layout;
    int64_t layers;
  };
  for (const Expected& e : {Expected{"gpt", "device=emulated sequence=32", 2},
                            {"gpt", "device=emulated sequence=32 pipe=2 schedule=zero_bubble", 2},
                            {"gpt", "device=emulated sequence=32 tensor=2 sequence_parallel", 2},
                            {"bert", "device=emulated sequence=32 data=2 zero=3", 2},
                            {"gpt", "device=emulated sequence=4", 0},
                            {"gpt", "device=emulated sequence=32 context=2", 0},
                            {"llama", "device=emulated sequence=32", 0},
                            {"gpt", "device=cpu sequence=32", 0}}) {
    config::Settings s = small_model(e.family, "fp32");
    s.train.global_batch = 8, s.train.micro_batch = 4;
    set_layout(s, e.layout);
    s.model.layers = 2;
    s.train.micro_batch /= s.parallel.data;
    std::map<std::string, int64_t> count;  // of kernels, and of products that take some of the columns
    for (const program::Program& p : compile::compile({.settings = s, .kernels = *compile::kernels_of(s)}))
      for (const program::Body& body : p.bodies)
        for (const program::Instruction& i : body.instructions)
          if (body.variant_of < 0) ++count[i.attributes.has("first") ? "of columns" : i.kernel];
    EXPECT_EQ(count["join_columns"], e.layers) << e.family << " " << e.layout;
    EXPECT_EQ(count["split_columns"], e.layers) << e.family << " " << e.layout;
    EXPECT_EQ(count["of columns"], 0) << e.family << " " << e.layout;
  }
}

// The losses of steps, each read after the next has been enqueued, or at once.
std::vector<double> losses(const config::Settings& s, bool late) {
  train::LayoutRun run(s);
  run::Executor& executor = run.executor(0);
  std::vector<double> read;
  const auto take = [&] {
    executor.answer(std::span(&read.emplace_back(), 1));
    // The emulated device uses host memory: work enqueued since then has not started.
    EXPECT_EQ(read.back(), *reinterpret_cast<const double*>(executor.state(models::kLossSum).data));
  };
  for (int64_t step = 0; step < 5; ++step) {
    run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
    executor.ask(std::array{models::kLossSum});
    if (!late || step > 0) take();
  }
  if (late) take();
  return read;
}

TEST(OnADevice, TheLossOfAStepIsReadWhileTheNextWaits) {
  for (const std::string layout : {"", "data=2 zero=1"}) {
    config::Settings s = small_model("gpt", "fp32");
    set_layout(s, "device=emulated " + layout);
    s.train.micro_batch /= s.parallel.data;
    const std::vector<double> read = losses(s, true);
    EXPECT_EQ(read, losses(s, false));
    EXPECT_NE(read[3], read[4]);
  }
}

// Losses, and the states after the steps; `looks`: values may be inspected, so every step is enqueued with separate
// waits.
struct Trained {
  std::vector<double> losses;
  Numbers weights, moments;
};

Trained trained(const config::Settings& s, bool looks) {
  train::LayoutRun run(s);
  for (int rank = 0; looks && rank < run.ranks(); ++rank) run.executor(rank).watch = [](const auto&) {};
  Trained t;
  for (int64_t step = 0; step < 3; ++step) {
    run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
    t.losses.push_back(run.loss());
  }
  for (int rank = 0; rank < run.ranks(); ++rank)
    EXPECT_EQ(run.executor(rank).captured(program::Step::train), s.parallel.device == "emulated" && !looks) << rank;
  t.weights = run.states(program::StateKind::weight);
  t.moments = run.states(program::StateKind::optimizer);
  return t;
}

bool copies_in(const program::Program& p, program::Work work) {
  return std::any_of(p.bodies.begin(), p.bodies.end(), [&](const program::Body& body) {
    return body.does(work) && std::any_of(body.instructions.begin(), body.instructions.end(), program::is_copy);
  });
}

class OffloadOnADevice : public testing::TestWithParam<std::string> {};

TEST_P(OffloadOnADevice, IsCapturedAndHasTheBitsOfStepsThatAreEnqueued) {
  config::Settings s = offload_model("gpt", "fp32");
  s.train.global_batch = 4;
  s.train.micro_batch = 2;
  s.parallel.device = "cpu";
  const Trained processor = trained(s, false);
  set_layout(s, "device=emulated offload=all " + GetParam());
  const std::vector<program::Program> programs = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  EXPECT_TRUE(std::any_of(programs.begin(), programs.end(), [](const program::Program& p) {
    return copies_in(p, program::Work::forward) && copies_in(p, program::Work::backward);
  }));
  EXPECT_TRUE(copies_in(programs[0], program::Work::update));
  const Trained replayed = trained(s, false), enqueued = trained(s, true);
  EXPECT_EQ(replayed.losses, enqueued.losses);
  EXPECT_EQ(replayed.weights, enqueued.weights);
  EXPECT_EQ(replayed.moments, enqueued.moments);
  const double tolerance = train::default_tolerance(s);
  for (size_t step = 0; step < processor.losses.size(); ++step)
    EXPECT_NEAR(replayed.losses[step], processor.losses[step], tolerance * processor.losses[step]) << step;
  EXPECT_NE(replayed.losses[1], replayed.losses[2]);
}

INSTANTIATE_TEST_SUITE_P(Layouts, OffloadOnADevice, testing::Values("", "data=2 zero=1", "pipe=2 schedule=1f1b"));

}  // namespace
}  // namespace kintsugi::tests::device_models_test
