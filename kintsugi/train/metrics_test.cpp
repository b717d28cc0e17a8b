#include "kintsugi/train/metrics.h"

#include <gtest/gtest.h>

#include "kintsugi/base/file.h"

namespace kintsugi::train::metrics_test {

TEST(Metrics, LinesAfterTheCheckpointAreCut) {
  const auto path = std::filesystem::temp_directory_path() / ("kintsugi_metrics_" + std::to_string(::getpid()));
  std::filesystem::remove(path);
  Metrics m;
  {
    MetricsFile file(path, 0);
    for (m.step = 1; m.step <= 5; ++m.step) file.write(m);
  }
  base::write_file_atomically(path, base::read_file(path) + "{\"step\": 6, \"lo");
  m.step = 4;
  m.validation_loss = 1.5;
  { MetricsFile(path, 3).write(m); }
  const std::string text = base::read_file(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_NE(text.find("{\"step\":4,\"loss\":0.0,\"validation_loss\":1.5,"), std::string::npos) << text;
  std::filesystem::remove(path);
}

TEST(Metrics, ScalarsAreNamedInGroups) {
  Metrics m;
  m.loss = 2.5;
  m.tokens = 1000;
  m.memory_bytes = 7;
  const auto value = [&](std::string_view tag) -> std::optional<double> {
    for (const report::Scalar& scalar : to_scalars(m))
      if (scalar.tag == tag) return scalar.value;
    return std::nullopt;
  };
  EXPECT_EQ(value("loss/train"), 2.5);
  EXPECT_EQ(value("train/tokens"), 1000);
  EXPECT_EQ(value("memory/bytes"), 7);
  EXPECT_EQ(value("loss/validation"), std::nullopt);
  EXPECT_EQ(value("speed/planned_seconds"), std::nullopt);
  EXPECT_EQ(to_json(m).find("planned"), std::string::npos);
  m.planned_seconds = 0.25;
  EXPECT_EQ(value("speed/planned_seconds"), 0.25);
  EXPECT_NE(to_json(m).find("\"planned_seconds\":0.25"), std::string::npos) << to_json(m);
  EXPECT_EQ(to_json(m).find("loss_scale"), std::string::npos);
  m.scaling = {{.scale = 32, .skipped = 3, .skips = true}};
  EXPECT_NE(to_json(m).find("\"loss_scale\":32.0,\"skipped_steps\":3"), std::string::npos) << to_json(m);
  EXPECT_EQ(value("train/skipped_steps"), 3);
  m.experts = {{6, 2}, 1.5};
  EXPECT_NE(to_json(m).find("\"busiest_expert\":1.5,\"expert_tokens\":[6,2],\"learning_rate\""), std::string::npos);
  m.experts->dropped = 4;
  EXPECT_NE(to_json(m).find("\"expert_tokens\":[6,2],\"dropped_tokens\":4"), std::string::npos) << to_json(m);
  EXPECT_EQ(value("experts/busiest"), 1.5);
  EXPECT_EQ(value("experts/tokens_0"), 6);
  EXPECT_EQ(value("experts/dropped_tokens"), 4);
  m.validation_loss = 3.5;
  EXPECT_EQ(value("loss/validation"), 3.5);
  m.domains = {{"a_domain_with_a_long_name", 4.5}, {"b", 5.5}};
  EXPECT_EQ(value("loss/validation_a_domain_with_a_long_name"), 4.5);
  EXPECT_EQ(value("loss/validation_b"), 5.5);
}

}  // namespace kintsugi::train::metrics_test
