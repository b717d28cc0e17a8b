// Batch norms in groups of samples: every layout gives the loss, gradients and running statistics of one rank with the
// same groups, and data ranks exchange nothing in a pass.
#include <gtest/gtest.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/train/batches.h"
#include "kintsugi/train/compare.h"
#include "tests/layouts.h"
#include "tests/small_model.h"

namespace kintsugi::tests::batch_norm_groups_test {
namespace {

// "resnet18", "unet": groups of two samples. Batches of 8.
config::Settings grouped_model(const std::string& name, const std::string& dtype) {
  config::Settings s = small_model(name, dtype);
  config::Model& m = s.model;
  m.dropout = 0.0;
  m.image_channels = 2;
  m.image_height = name == "unet" ? 32 : 16;
  m.image_width = 16;
  m.layers = 9;
  m.embed = 2;
  m.batch_norm = "replica";
  m.batch_norm_samples = 2;
  s.train.global_batch = 8;
  s.train.micro_batch = 8;
  s.parallel.device = "cpu";
  return s;
}

// The running statistics of all norms.
Numbers running_statistics(const train::LayoutRun& run) {
  Numbers found;
  for (int rank = 0; rank < run.ranks(); ++rank)
    for (const program::StateInfo& s : run.executor(rank).program().states)
      if (s.name.ends_with(".norm.mean") || s.name.ends_with(".norm.variance")) found[s.name] = run.state(s.name);
  return found;
}

// Passes have consecutive samples of a batch, which is the same for every number of passes.
Record record_of(const config::Settings& s, int64_t steps, Numbers* statistics = nullptr) {
  config::Settings one_pass = s;
  one_pass.parallel = {};
  one_pass.train.micro_batch = s.train.global_batch;
  train::LayoutRun run(s);
  Record r;
  for (int64_t step = 0; step < steps; ++step) {
    run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) {
      samples::BatchMemory whole;
      draw_batch(one_pass, step, 0, whole);
      const int64_t rows = s.train.micro_batch * config::data_ranks(s.parallel);
      batch.resize(rows, train::parts_of(s));
      for (int64_t row = 0; row < rows; ++row)
        for (const samples::PartView& part : batch.view().parts())
          for (const samples::PartView& from : whole.view().parts())
            if (from.name == part.name)
              std::ranges::copy(whole.view().row(m * rows + row).bytes(from),
                                batch.view().row(row).bytes(part).begin());
    });
    r.losses.push_back(run.loss());
    r.gradients.push_back(run.states(program::StateKind::gradient));
  }
  if (statistics) *statistics = running_statistics(run);
  return r;
}

void expect_statistics(const Numbers& got, const Numbers& want, double tolerance) {
  EXPECT_EQ(want.size(), 36u);  // of the 18 norms of a U-Net
  for (const auto& [name, x] : want) {
    const std::vector<double>& y = got.at(name);
    ASSERT_EQ(y.size(), x.size()) << name;
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i], x[i], tolerance * std::max(1.0, std::abs(x[i]))) << name << " " << i;
  }
}

}  // namespace

class GroupedNorms : public testing::TestWithParam<ModelLayout> {};

TEST_P(GroupedNorms, OfOneRankInFp32) {
  const Record found = run_layout(grouped_model, GetParam(), "fp32", 1);
  EXPECT_EQ(difference(found, twin(grouped_model, GetParam().model, "fp32", 1), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(All, GroupedNorms,
                         testing::Values(ModelLayout{"unet", "data=2"}, ModelLayout{"unet", "data=4 zero=1"},
                                         ModelLayout{"unet", "data=2 zero=2"}, ModelLayout{"unet", "data=4 zero=3"},
                                         ModelLayout{"unet", "space=2"}, ModelLayout{"unet", "space=2 data=2"},
                                         ModelLayout{"unet", "tensor=2"}, ModelLayout{"unet", "tensor=2 data=2"},
                                         ModelLayout{"unet", "pipe=2 data=2"},
                                         ModelLayout{"unet", "data=2 recompute=full"},
                                         ModelLayout{"unet", "data=2 recompute=light"},
                                         ModelLayout{"resnet18", "data=2"}),
                         [](const auto& info) { return test_name(info.param); });

TEST(GroupedNorms, ReplicasOfTwoRanksAreThePassesOfOneOver3Steps) {
  config::Settings one = grouped_model("unet", "fp64"), two = one;
  one.parallel.device = two.parallel.device = "reference";
  one.model.batch_norm_samples = two.model.batch_norm_samples = 0;
  one.train.micro_batch = two.train.micro_batch = 4;
  set_layout(two, "data=2");
  Numbers of_one, of_two;
  const Record want = record_of(one, 3, &of_one), got = record_of(two, 3, &of_two);
  EXPECT_EQ(difference(got, want, 1e-9), "");
  expect_statistics(of_two, of_one, 1e-9);
  for (const std::string layout : {"space=2 data=2 zero=3", "pipe=2 tensor=2"}) {
    SCOPED_TRACE(layout);
    config::Settings other = grouped_model("unet", "fp64");
    other.parallel.device = "reference";
    other.model.batch_norm_samples = 4;
    set_layout(other, layout);
    other.train.micro_batch /= config::data_ranks(other.parallel);
    EXPECT_EQ(difference(record_of(other, 3, &of_two), want, 1e-9), "");
    expect_statistics(of_two, of_one, 1e-9);
  }
  // Other groups are another model.
  one.model.batch_norm_samples = 2;
  EXPECT_NE(difference(record_of(one, 1), want, 1e-3), "");
  one.model.batch_norm = "all";
  one.train.micro_batch = 8;
  EXPECT_NE(difference(record_of(one, 1), want, 1e-3), "");
}

// With one pass per step and one group, both kinds are the same.
TEST(GroupedNorms, OneGroupIsTheWholeBatch) {
  config::Settings one = grouped_model("unet", "fp64");
  one.parallel.device = "reference";
  one.model.batch_norm_samples = 0;
  config::Settings all = one;
  all.model.batch_norm = "all";
  Numbers of_one, of_all;
  EXPECT_EQ(difference(record_of(one, 2, &of_one), record_of(all, 2, &of_all), 1e-12), "");
  expect_statistics(of_one, of_all, 1e-12);
}

TEST(GroupedNorms, CompareKeepsTheGroups) {
  config::Settings s = grouped_model("unet", "fp32");
  s.model.batch_norm_samples = 0;
  s.train.micro_batch = 2;
  set_layout(s, "data=2");
  const config::Settings twin = train::twin_of(s);
  EXPECT_EQ(twin.train.micro_batch, 4);
  EXPECT_EQ(twin.model.batch_norm_samples, 2);
}

TEST(GroupedNorms, DataRanksExchangeOnlyGradientsAndRunningStatistics) {
  const auto sent = [](const std::string& batch_norm) {
    config::Settings s = grouped_model("unet", "fp32");
    s.model.batch_norm = batch_norm;
    s.train.micro_batch = 4;
    set_layout(s, "data=2");
    const std::unique_ptr<kernels::KernelSet> kernels = compile::kernels_of(s);
    const program::Program p = compile::only_stage(compile::compile({.settings = s, .kernels = *kernels}));
    int forward = 0;
    for (const program::Body& body : p.bodies)
      if (body.variant_of < 0 && body.does(program::Work::forward))
        for (const program::Instruction& i : body.instructions) forward += starts(i, program::Collective::all_reduce);
    return forward;
  };
  EXPECT_GT(sent("all"), 10);
  EXPECT_EQ(sent("replica"), 0);
}

TEST(GroupedNorms, OneValueHasNoVariance) {
  config::Settings s = grouped_model("resnet18", "fp32");
  s.model.image_height = s.model.image_width = 8;
  const auto error_of = [](const config::Settings& of) -> std::string {
    try {
      models::build_training(of);
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "";
  };
  s.model.batch_norm_samples = 1;
  EXPECT_EQ(error_of(s),
            "[model] layer4.0.conv1.norm: with model.batch_norm = \"replica\" and one sample per group, its statistics "
            "are of one value per channel; raise train.micro_batch or model.batch_norm_samples, or use larger images");
  s.model.batch_norm = "all";
  s.model.batch_norm_samples = 0;
  EXPECT_EQ(error_of(s), "");
  s.train.micro_batch = 1;
  EXPECT_EQ(error_of(s),
            "[model] layer4.0.conv1.norm: with one sample per pass, its statistics are of one value per channel; raise "
            "train.micro_batch, or use larger images");
  s.parallel.data = 2;
  s.parallel.ranks = 2;
  EXPECT_EQ(error_of(s), "");
}

}  // namespace kintsugi::tests::batch_norm_groups_test
