#include "kintsugi/train/inspect.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/models/models.h"

namespace kintsugi::train::inspect_test {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

config::Settings small() {
  config::Settings s;
  s.model = models::defaults_of("llama");
  s.model.layers = 1;
  s.model.embed = 8;
  s.model.heads = 2;
  s.model.kv_heads = 1;
  s.model.ffn = 12;
  s.model.vocab = 11;
  s.model.context = 6;
  s.train.dtype = "fp64";
  s.parallel.threads = 1;
  return s;
}

}  // namespace

TEST(Inspect, Samples) {
  const Samples s = parse_samples("ids.txt", "1 2  3\n\n\t4 5 6 \r\n");
  EXPECT_EQ(s.count, 2);
  EXPECT_EQ(s.sequence, 3);
  EXPECT_EQ(s.ids, (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  const auto error = [](std::string_view text) { return error_of([&] { parse_samples("ids.txt", text); }); };
  EXPECT_EQ(error("1 2\n1 2 3\n"),
            "[evaluate] \"ids.txt\":2: 3 ids, where the first sample has 2; all must be equally long");
  EXPECT_EQ(error("1 two"), "[evaluate] \"ids.txt\":1: \"two\" is no token id; a line holds ids separated by spaces");
  EXPECT_EQ(error("1 -2"), "[evaluate] \"ids.txt\":1: \"-2\" is no token id; a line holds ids separated by spaces");
  EXPECT_EQ(error("1 99999999999"),
            "[evaluate] \"ids.txt\":1: \"99999999999\" is no token id; a line holds ids separated by spaces");
  for (const char* text : {"", "\n\n", "7\n8\n"})
    EXPECT_EQ(error(text),
              "[evaluate] \"ids.txt\" holds no sample of two ids or more, of which each predicts the next");
}

TEST(Inspect, SamplesThatDoNotFit) {
  const auto error = [](const std::string& text, int64_t data) {
    config::Settings s = small();
    s.parallel.data = s.parallel.ranks = data;
    return error_of([&] { inspect(s, parse_samples("ids.txt", text), [](run::Executor&) {}); });
  };
  EXPECT_EQ(error("1 2 3 4 5 6 7", 1), "[evaluate] samples of 7 ids are longer than the model's 6 positions");
  EXPECT_EQ(error("1 11", 1), "[evaluate] the id 11 is outside of the model's vocabulary of 11");
  EXPECT_EQ(error("1 2\n3 4\n5 6\n", 2), "[evaluate] 3 samples are not divisible among parallel.data = 2");
}

// The loss equals that of the logits, and a gradient is the slope of the loss.
TEST(Inspect, LossLogitsAndGradientsBelongTogether) {
  const Samples samples = parse_samples("ids.txt", "1 2 3 4\n10 0 7 7\n");
  const auto at = [&](double move) {
    return inspect(small(), samples,
                   [&](run::Executor& executor) { executor.state("final_norm.gamma").as<double>()[3] += move; });
  };
  const Inspection found = at(0.0);
  double loss = 0;
  for (size_t i = 0; i < samples.ids.size(); ++i) {
    if (i % 4 == 3) continue;
    const double* logits = found.logits.values.data() + i * 11;
    double sum = 0;
    for (int v = 0; v < 11; ++v) sum += std::exp(logits[v]);
    loss += (std::log(sum) - logits[samples.ids[i + 1]]) / 6;
  }
  EXPECT_NEAR(found.loss, loss, 1e-14);
  constexpr double kMove = 1e-5;
  const double slope = (at(kMove).loss - at(-kMove).loss) / (2 * kMove);
  EXPECT_NEAR(found.gradients.at("final_norm.gamma").values[3], slope, 1e-9);
}

}  // namespace kintsugi::train::inspect_test
