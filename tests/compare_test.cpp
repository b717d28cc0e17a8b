// `kintsugi compare`: correct layouts pass, in every dtype; an injected error is found where it first appears, by name.
#include "kintsugi/train/compare.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/train/random_samples.h"
#include "tests/layouts.h"
#include "tests/process.h"

namespace kintsugi::tests::compare_test {
namespace {

using program::Instruction;
using program::Kind;
using program::Program;

config::Settings model_of(const std::string& family, const std::string& dtype, const std::string& layout) {
  config::Settings s = small_model(family, dtype);
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.parallel.device = dtype == "fp64" ? "reference" : "cpu";
  s.data.reset_at_document = true;
  set_layout(s, layout);
  s.train.micro_batch /= s.parallel.data;
  return s;
}

train::Comparison compare(const config::Settings& s, int64_t steps = 3,
                          const std::function<void(Program&)>& damage = {}) {
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  return train::compare({.settings = s,
                         .data = samples,
                         .steps = steps,
                         .tolerance = tolerance,
                         .loss_tolerance = tolerance / 10,
                         .damage = damage});
}

std::string verdict(const train::Comparison& c) {
  const std::string text = train::print(c);
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

// Of one value in one step.
const train::Difference& find(const train::Comparison& c, int64_t step, train::Compared what, const std::string& name) {
  for (const train::Difference& d : c.differences)
    if (d.step == step && d.what == what && d.name == name) return d;
  throw base::InternalError("test", "no {} of {}", name_of(what), name);
}

// Removes the collective that reduces a bucket's gradient, and its wait.
void drop_reduction(Program& p, const std::string& value) {
  size_t dropped = 0;
  for (program::Body& body : p.bodies)
    dropped += std::erase_if(body.instructions, [&](const Instruction& i) {
      return i.kind != Kind::compute && p.buffer(i.ins[0]).name == value;
    });
  ASSERT_GT(dropped, 0u) << value;
}

struct Case {
  std::string family, dtype, layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.dtype << " " << c.layout;
}

class Right : public testing::TestWithParam<Case> {};

TEST_P(Right, IsTheSame) {
  const auto& [family, dtype, layout] = GetParam();
  const config::Settings s = model_of(family, dtype, layout);
  const train::Comparison c = compare(s);
  EXPECT_EQ(verdict(c), fmt::format("the same: 3 steps, {} ranks ({})\n", s.parallel.ranks, c.mesh)) << print(c);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Right,
    testing::Values(Case{"gpt", "fp64", "data=2"}, Case{"llama", "fp64", "data=2 tensor=2 zero=3"},
                    Case{"gpt", "fp32", "data=4 zero=2"}, Case{"gpt", "fp32", "tensor=2 sequence_parallel"},
                    Case{"llama", "fp32", "context=2 method=ring"}, Case{"gpt", "fp32", "data=2 wire=bf16"},
                    Case{"gpt", "bf16", "data=2 tensor=2 zero=1"}, Case{"llama", "bf16", "context=2 method=ulysses"},
                    Case{"gpt", "fp16", "data=2 tensor=2 zero=2"}, Case{"gpt", "bf16", "data=4 gradient_dtype=bf16"},
                    Case{"llama", "bf16", "data=2 tensor=2 zero=2 sequence_parallel gradient_dtype=bf16"},
                    Case{"gpt", "bf16", "data=2 context=2 zero=3 shard_context gradient_dtype=bf16"},
                    Case{"gpt", "bf16", "pipe=2 data=2 zero=1 offload=optimizer gradient_dtype=bf16"},
                    Case{"llama", "bf16", "pipe=2 schedule=zero_bubble gradient_dtype=bf16"}));

}  // namespace

// The gradient of a key's bias is zero up to rounding, and AdamW turns it into a full step in a random direction.
TEST(Compare, IsNotAlarmedByAnUpdateThatIsNothingButRounding) {
  config::Settings s = model_of("gpt", "fp32", "tensor=2");
  s.train.epsilon = 1e-15;
  const train::Comparison c = compare(s, 1);
  const train::Difference& d = find(c, 1, train::Compared::weight, "layer0.attention.key.bias");
  EXPECT_GT(d.size(), 1e-4) << "a learning rate of 1e-3 and no difference: the test is in vain";
  EXPECT_TRUE(d.within());
  EXPECT_EQ(c.first(), nullptr) << print(c);
  // For another weight, the same difference is reported.
  EXPECT_LT(find(c, 1, train::Compared::weight, "layer0.ffn.down.weight").limit, 1e-4);
}

// Units of a batch give the same bits for every data size.
TEST(Compare, SeesNoBitOfDifferenceWhereUnitsAreAddedInOneTree) {
  config::Settings s = model_of("gpt", "fp32", "data=4 zero=3");
  s.train.reproducible = 4;
  s.train.micro_batch = 2;
  for (const train::Difference& d : compare(s).differences) EXPECT_EQ(d.size(), 0) << name_of(d.what) << " " << d.name;
}

TEST(Compare, SgdIsComparedThroughItsMomentum) {
  config::Settings s = model_of("gpt", "fp32", "data=2");
  s.train.optimizer = "sgd";
  const train::Comparison c = compare(s, 2);
  EXPECT_EQ(c.first(), nullptr) << print(c);
  const double twice = find(c, 2, train::Compared::weight, "layer0.ffn.up.weight").scale;
  EXPECT_GT(twice, 2 * find(c, 1, train::Compared::weight, "layer0.ffn.up.weight").scale);
}

// The initial loss scale overflows these fp16 gradients and is halved until they fit.
TEST(Compare, AStepWhoseGradientsOverflowIsLeftOut) {
  config::Settings s = model_of("olmo2", "fp16", "tensor=2");
  s.model.context = s.train.sequence = 64;
  s.train.global_batch = s.train.micro_batch = 16;
  const train::Comparison c = compare(s, 12);
  EXPECT_EQ(c.first(), nullptr) << print(c);
  const auto compared = [&](int64_t step) {
    return std::ranges::any_of(c.differences, [&](const train::Difference& d) {
      return d.step == step && d.what == train::Compared::gradient;
    });
  };
  EXPECT_FALSE(compared(1)) << print(c);
  EXPECT_TRUE(compared(12)) << print(c);
  EXPECT_NE(print(c).find("overflow"), std::string::npos);
  EXPECT_EQ(
      error_of([&] { compare(s, 1); }),
      "[compare] the gradients of one rank overflow in every step of 1, so that none was compared; each halves the "
      "scale of the loss: try more --steps, or another dtype");
}

TEST(Compare, FindsAGradientThatIsNotReduced) {
  const train::Comparison c = compare(model_of("gpt", "fp64", "data=2"), 2, [](Program& p) {
    drop_reduction(p, "bucket layer0.attention.query.weight+5.gradient");
  });
  const train::Difference* d = c.first();
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(d->step, 1);
  EXPECT_EQ(d->what, train::Compared::gradient);
  EXPECT_EQ(d->name, "layer0.ffn.down.weight");  // that of the bucket which the backward pass completes first
  EXPECT_NE(verdict(c).find("; 6 of 36 gradients differ there\n"), std::string::npos) << print(c);
}

TEST(Compare, FindsALossThatIsMadeOtherwise) {
  const train::Comparison c = compare(model_of("llama", "fp64", "tensor=2"), 1, [](Program& p) {
    for (program::Body& body : p.bodies)
      for (Instruction& i : body.instructions)
        if (i.kernel == "rms_norm" && i.layer == 1) i.attributes.set("epsilon", 1.1e-5);
  });
  ASSERT_NE(c.first(), nullptr);
  EXPECT_EQ(c.first()->what, train::Compared::loss);
}

TEST(Compare, FindsAWeightThatBeginsOtherwise) {
  const train::Comparison c = compare(model_of("llama", "fp32", "data=2 zero=3"), 1, [](Program& p) {
    for (program::StateInfo& s : p.states)
      if (s.name == "layer1.ffn.up.weight") s.init.value *= 1.001;
  });
  const train::Difference* d = c.first();
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(d->step, 0);
  EXPECT_EQ(d->name, "layer1.ffn.up.weight");
  EXPECT_TRUE(verdict(c).starts_with("first difference: before the first step, weight of layer1.ffn.up.weight["))
      << verdict(c);
}

TEST(Compare, FindsAnOptimizerThatDecaysMore) {
  const train::Comparison c = compare(model_of("gpt", "fp64", "data=2 zero=1"), 2, [](Program& p) {
    for (program::Body& body : p.bodies)
      for (Instruction& i : body.instructions)
        if (i.kernel == "adamw" && i.layer == 1 && i.attributes.number("weight_decay") > 0)
          i.attributes.set("weight_decay", 0.11);
  });
  const train::Difference* d = c.first();
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(d->step, 1);
  EXPECT_EQ(d->what, train::Compared::weight);
  EXPECT_EQ(d->layer, 1);
}

TEST(Compare, TheTwinTakesAllSamplesOfAPass) {
  config::Settings s = model_of("gpt", "fp32", "data=2 tensor=2 zero=3");
  const config::Settings one = train::twin_of(s);
  EXPECT_EQ(one.train.micro_batch, 4);
  EXPECT_EQ(one.parallel, (config::Parallel{.device = "cpu", .threads = 4}));
  s.train.reproducible = 4;
  EXPECT_EQ(train::twin_of(s).train.micro_batch, 2);
  EXPECT_EQ(train::twin_of(s).parallel, (config::Parallel{.device = "cpu", .threads = 1}));
}

TEST(Compare, Errors) {
  config::Settings s = model_of("gpt", "fp32", "");
  EXPECT_EQ(error_of([&] { compare(s); }),
            "[compare] the plan has one rank, and would be compared with itself; --ranks N or [parallel] says more");
  s = model_of("gpt", "fp32", "tensor=32");
  EXPECT_EQ(
      error_of([&] { compare(s); }),
      "[plan] dim \"kv_heads\" of size 2, with \"group\" of size 2, is smaller than mesh axis \"tensor\" of size 32; "
      "nearest kv_heads: 16; nearest tensor: 4");
}

class CompareCommand : public testing::Test {
 protected:
  CompareCommand() {
    base::write_file_atomically(folder / "run.toml",
                                "[model]\nlayers = 3\nembed = 16\nheads = 2\nvocab = 40\n"
                                "[train]\nsequence = 16\nglobal_batch = 8\n[parallel]\nthreads = 1\nbind = false\n");
  }

  Ended kintsugi(const std::string& arguments) { return run_kintsugi(folder.path(), arguments); }
  void expect_error(const std::string& arguments, const std::string& line) {
    const Ended ended = kintsugi(arguments);
    EXPECT_EQ(ended.code, 1) << arguments;
    EXPECT_EQ(ended.err, line + "\n") << arguments;
  }

  TemporaryFolder folder;
};

TEST_F(CompareCommand, ShrinksAndWritesEveryDifference) {
  const Ended ended = kintsugi(
      "compare run.toml --random --ranks 2 --layers 1 --sequence 8 --global-batch 4 --dtype fp64 --steps 2 --csv "
      "d.csv");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(
      ended.out.starts_with("data=2 compared with one rank: fp64, random tokens\n"
                            "tolerance 1e-09 of gradients, 1e-10 of the loss\n\nstep     loss, 2 ranks"))
      << ended.out;
  EXPECT_TRUE(ended.out.ends_with("\nthe same: 2 steps, 2 ranks (data=2)\n")) << ended.out;
  EXPECT_EQ(ended.out.find("layer1."), std::string::npos) << ended.out;
  const std::string csv = base::read_file(folder / "d.csv");
  EXPECT_TRUE(csv.starts_with("step,what,layer,name,element,rank,value,one_rank,difference,limit,scale\n0,weight,-1,"))
      << csv;
  // Weights of steps 0, 1 and 2, two gradients, and two losses.
  const auto lines = std::count(csv.begin(), csv.end(), '\n');
  EXPECT_EQ(lines, 1 + 5 * 20 + 2) << csv;
}

TEST_F(CompareCommand, ADifferenceIsExitCode1) {
  const Ended ended =
      kintsugi("compare run.toml --random --ranks 2 --layers 1 --dtype fp32 --steps 1 --tolerance 1e-16");
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err, "error: [compare] data=2 differs from one rank\n");
  EXPECT_NE(ended.out.find("\nfirst difference: step 1, "), std::string::npos) << ended.out;
}

TEST_F(CompareCommand, Errors) {
  expect_error("compare run.toml --ranks 2",
               "error: [compare] [data] train is not set; set it, or use --random tokens");
  expect_error("compare run.toml --ranks 2 --random --set model.vocab=0",
               "error: [compare] --random reads no data, from which model.vocab would be derived; give it with --set model.vocab=N");
  expect_error(
      "compare run.toml --random",
      "error: [compare] the plan has one rank, and would be compared with itself; --ranks N or [parallel] says "
      "more");
  expect_error("compare run.toml --random --ranks 3",
               "error: [config] --ranks: train.global_batch = 8 is not divisible by mesh axis \"data\" of size 3; "
               "nearest: 6, 9");
  expect_error("compare run.toml --random --ranks 2 --layers 0",
               "error: [compare] --layers 0 is not an integer from 1 to 10,000");
  expect_error("compare run.toml --random --ranks 2 --dtype fp8",
               "error: [config] --set: train.dtype = \"fp8\" is not one of fp32, bf16, fp16, fp64");
  expect_error("compare run.toml --random --ranks 2 --steps 0",
               "error: [compare] --steps 0 is not an integer from 1 to 1,000,000,000,000");
  expect_error("compare run.toml --random --ranks 2 --tolerance -1",
               "error: [compare] --tolerance -1 is not a number above 0");
  expect_error("compare run.toml --random --ranks 2 --loss-tolerance 0",
               "error: [compare] --loss-tolerance 0 is not a number above 0");
  expect_error(
      "compare run.toml --set data.train=nowhere --ranks 2",
      "error: [tokens] there is no token file \"nowhere\" (.bin and .idx); \"kintsugi prepare\" makes one from "
      "text");
}

}  // namespace kintsugi::tests::compare_test
