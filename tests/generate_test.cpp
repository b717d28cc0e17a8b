// Generation: results with caches equal those without, and sampling respects its options.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/run/evaluate_pass.h"
#include "tests/small_model.h"

namespace kintsugi::tests::generate_test {

struct GenerateCase {
  std::string family, dtype, kernels;
  double tolerance;

  friend std::ostream& operator<<(std::ostream& out, const GenerateCase& c) {
    return out << c.family << " " << c.dtype << " " << c.kernels;
  }
};

// A small model with weights large enough to separate its logits.
class Generates : public testing::TestWithParam<GenerateCase> {
 protected:
  Generates() : s(small_model(GetParam().family, GetParam().dtype)) {
    config::Model& m = s.model;
    if (m.experts > 0) m.experts = 4, m.experts_per_token = 2;
    if (m.attention_sinks) m.window = 5;
    if (m.kv_rank > 0) {
      m.kv_heads = m.heads;
      m.kv_rank = 7, m.query_rank = 9, m.head_dim = 6, m.rotary_head_dim = 4, m.value_head_dim = 5;
      m.expert_groups = 2, m.groups_per_token = 1;
    }
    s.parallel.device = GetParam().kernels;
    kernels = compile::kernels_of(s);
  }

  std::unique_ptr<run::Executor> load(const models::Graphs& graphs) {
    auto executor = std::make_unique<run::Executor>(
        compile::only_stage(compile::compile({.settings = s, .kernels = *kernels, .graphs = &graphs, .threads = 1})),
        *kernels, team);
    executor->initialize(3);
    for (const program::StateInfo& info : executor->program().states)
      if (info.kind == program::StateKind::weight && info.init.kind == tensor::Init::Kind::normal) {
        std::vector<double> x = values(executor->state(info.name));
        for (double& e : x) e *= 8;
        put(executor->state(info.name), x);
      }
    return executor;
  }

  std::vector<int32_t> tokens(int64_t count) const {
    std::vector<int32_t> ids;
    for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i)
      ids.push_back(static_cast<int32_t>(kernels::random_word(kernels::random_key(5, "text"), 0, i) %
                                         static_cast<uint32_t>(s.model.vocab)));
    return ids;
  }

  static void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                          const std::string& where) {
    ASSERT_EQ(a.size(), b.size());
    double top = 0;
    for (double x : b) top = std::max(top, std::abs(x));
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * top) << where << ", id " << i;
  }

  config::Settings s;
  std::unique_ptr<kernels::KernelSet> kernels;
  base::ThreadTeam team{1};
};

// Every position: by one prefill, by prefills of another length in several chunks, and by prefill and decode.
TEST_P(Generates, TheSameLogitsWithCachesAndWithout) {
  const int64_t context = s.model.context;
  const auto whole = load(models::build_generation(s, 1, context, context));
  const auto chunks = load(models::build_generation(s, 1, 6, context));  // 6 does not divide 16
  evaluate::Generator one(*whole), many(*chunks), steps(*chunks);
  const std::vector<int32_t> ids = tokens(context);
  const auto text = std::span(ids);
  std::vector<std::vector<double>> want;
  for (int64_t n = 1; n <= context; ++n) {
    one.read(text.first(static_cast<size_t>(n)));
    want.push_back(values(whole->output(program::Step::prefill, "logits")));
    many.read(text.first(static_cast<size_t>(n)));
    expect_near(values(chunks->output(program::Step::prefill, "logits")), want.back(), GetParam().tolerance,
                fmt::format("chunks, position {}", n));
  }
  for (const size_t prompt : {size_t{1}, size_t{5}, size_t{6}, size_t{11}}) {
    steps.read(text.first(prompt));
    for (size_t n = prompt; n < ids.size(); ++n) {
      steps.feed(ids[n]);
      EXPECT_EQ(steps.position(), static_cast<int64_t>(n) + 1);
      expect_near(values(chunks->output(program::Step::decode, "logits")), want[n], GetParam().tolerance,
                  fmt::format("prompt of {}, position {}", prompt, n + 1));
    }
    EXPECT_EQ(error_of([&] { steps.feed(0); }), "[generate] internal error: the caches are full");
  }
}

// Evaluation and generation programs compute the same model.
TEST_P(Generates, TheLossOfTheLogitsIsTheLossOfEvaluation) {
  const int64_t length = s.model.context - 1;
  const std::vector<int32_t> ids = tokens(length + 1);
  const auto generation = load(models::build_generation(s, 1, 4, s.model.context));
  const auto evaluation = load(models::build_evaluation(s, 1, length));
  evaluate::Generator generator(*generation);
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) {
    const std::span<const float> logits =
        i == 0 ? generator.read(std::span(ids).first(1)) : generator.feed(ids[static_cast<size_t>(i)]);
    double top = logits[0], total = 0;
    for (float x : logits) top = std::max(top, static_cast<double>(x));
    for (float x : logits) total += std::exp(x - top);
    sum += std::log(total) + top - logits[static_cast<size_t>(ids[static_cast<size_t>(i) + 1])];
  }
  const run::LossSum loss = run::run_evaluation(*evaluation, 1, [&](const run::Executor::Inputs& inputs, int64_t) {
    inputs.set("tokens", {std::span(ids).first(static_cast<size_t>(length)), 0, length}, -1);
    inputs.set("labels", {std::span(ids).subspan(1, static_cast<size_t>(length)), 0, length}, -1);
  });
  EXPECT_EQ(loss.count, static_cast<double>(length));
  EXPECT_NEAR(loss.sum, sum, std::max(GetParam().tolerance, 1e-6) * sum);
}

// Beyond the context, the last half is read again: equals a loop that only uses prefill.
TEST_P(Generates, TextLongerThanTheContextGoesOn) {
  const auto context = static_cast<size_t>(s.model.context);
  const auto executor = load(models::build_generation(s, 1, 6, s.model.context));
  const auto other = load(models::build_generation(s, 1, s.model.context, s.model.context));
  evaluate::Generator generator(*executor), reader(*other);
  for (const size_t prompt : {size_t{3}, context, context + 9}) {
    const std::vector<int32_t> begin = tokens(static_cast<int64_t>(prompt));
    std::vector<int32_t> made, want, text = begin;
    generator.generate(begin, {.temperature = 1.0, .top_k = 20, .seed = 4}, [&](int32_t id) {
      made.push_back(id);
      return made.size() < 3 * context;
    });
    size_t window = std::min(prompt, context);
    while (want.size() < 3 * context) {
      want.push_back(evaluate::sample(reader.read(std::span(text).last(window)),
                                      {.temperature = 1.0, .top_k = 20, .seed = 4}, want.size()));
      text.push_back(want.back());
      window = window < context ? window + 1 : context / 2;
    }
    EXPECT_EQ(made, want) << "prompt of " << prompt;
    EXPECT_GT(std::set<int32_t>(made.begin(), made.end()).size(), 8u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Generates,
    testing::Values(GenerateCase{"gpt", "fp64", "reference", 1e-12}, GenerateCase{"llama", "fp64", "reference", 1e-12},
                    GenerateCase{"gpt", "fp32", "cpu", 1e-5}, GenerateCase{"llama", "fp32", "cpu", 1e-5},
                    GenerateCase{"gpt_oss", "fp64", "reference", 1e-12}, GenerateCase{"gpt_oss", "fp32", "cpu", 1e-5},
                    GenerateCase{"deepseek_v3", "fp64", "reference", 1e-12},
                    GenerateCase{"deepseek_v3", "fp32", "cpu", 1e-5}),
    [](const auto& info) { return info.param.family + "_" + info.param.dtype + "_" + info.param.kernels; });

TEST(Sample, TemperatureZeroTakesTheMostLikely) {
  const std::vector<float> logits = {0.5f, -1.0f, 3.0f, 2.9f, 3.0f};
  for (uint64_t number = 0; number < 100; ++number)
    EXPECT_EQ(evaluate::sample(logits, {.temperature = 0.0, .top_k = 0, .seed = number}, number),
              2);  // the first of two alike
}

TEST(Sample, DrawsAsTheSoftmaxSays) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f, -INFINITY};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    for (const int64_t top_k : {0, 2}) {
      std::vector<double> want, seen(logits.size());
      for (size_t i = 0; i < logits.size(); ++i)
        want.push_back(top_k == 2 && i != 1 && i != 2 ? 0.0 : std::exp(static_cast<double>(logits[i]) / temperature));
      const double total = std::accumulate(want.begin(), want.end(), 0.0);
      constexpr uint64_t kDraws = 20000;
      for (uint64_t n = 0; n < kDraws; ++n)
        seen[static_cast<size_t>(
            evaluate::sample(logits, {.temperature = temperature, .top_k = top_k, .seed = 9}, n))] += 1.0 / kDraws;
      for (size_t i = 0; i < logits.size(); ++i) {
        const double p = want[i] / total;
        EXPECT_NEAR(seen[i], p, 4 * std::sqrt(p * (1 - p) / kDraws))
            << "temperature " << temperature << ", top_k " << top_k << ", id " << i;
      }
    }
  }
}

TEST(Sample, IsAFunctionOfSeedAndNumber) {
  const std::vector<float> logits(50, 0.0f);
  const auto draw = [&](uint64_t seed) {
    std::vector<int32_t> ids;
    for (uint64_t n = 0; n < 40; ++n)
      ids.push_back(evaluate::sample(logits, {.temperature = 1.0, .top_k = 0, .seed = seed}, n));
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  const std::vector<int32_t> ids = draw(1);
  EXPECT_GT(std::set<int32_t>(ids.begin(), ids.end()).size(), 15u);
}

TEST(Sample, TopKOfOneIsTheMostLikelyAndALargeKIsAll) {
  const std::vector<float> logits = {0.5f, 1.0f, 0.75f};
  for (uint64_t n = 0; n < 50; ++n) {
    EXPECT_EQ(evaluate::sample(logits, {.temperature = 5.0, .top_k = 1, .seed = 1}, n), 1);
    EXPECT_EQ(evaluate::sample(logits, {.temperature = 5.0, .top_k = 99, .seed = 1}, n),
              evaluate::sample(logits, {.temperature = 5.0, .top_k = 0, .seed = 1}, n));
  }
}

TEST(PromptBucket, IsAPowerOfTwoWithinTheCaches) {
  EXPECT_EQ(evaluate::prompt_bucket(1, 1024), 16);
  EXPECT_EQ(evaluate::prompt_bucket(16, 1024), 16);
  EXPECT_EQ(evaluate::prompt_bucket(17, 1024), 32);
  EXPECT_EQ(evaluate::prompt_bucket(5000, 1024), 512);
  EXPECT_EQ(evaluate::prompt_bucket(5000, 100), 100);
}

}  // namespace kintsugi::tests::generate_test
