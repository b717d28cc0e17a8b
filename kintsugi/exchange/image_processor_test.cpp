#include "kintsugi/exchange/image_processor.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/models/models.h"

namespace kintsugi::exchange::image_processor_test {
namespace {

using Numbers = std::vector<double>;

config::Model model_of(const std::string& text, config::Model m = models::defaults_of("vit")) {
  m.image_channels = 3;
  read_image_processor("preprocessor_config.json", text, m);
  return m;
}

std::string error_in(const std::string& text, const config::Model& m = models::defaults_of("vit")) {
  try {
    model_of(text, m);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ImageProcessor, PublishedForms) {
  config::Model m = model_of(R"({"do_normalize": true, "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225], "size": 224})");
  EXPECT_EQ(m.image_mean, (Numbers{0.485, 0.456, 0.406}));
  EXPECT_EQ(m.image_deviation, (Numbers{0.229, 0.224, 0.225}));
  m = model_of(R"({"do_rescale": true, "rescale_factor": 0.00392156862745098, "image_mean": [0.5, 0.5, 0.5],
    "image_std": 0.25})");
  EXPECT_TRUE(m.image_mean.empty());  // the default
  EXPECT_EQ(m.image_deviation, Numbers{0.25});
  m = model_of(R"({"do_normalize": false})");
  EXPECT_EQ(m.image_mean, Numbers{0.0});
  m = model_of(R"({"image_mean": [0.25, 0.25, 0.25], "image_std": [0.25, 0.25, 0.5]})");
  EXPECT_EQ(m.image_mean, Numbers{0.25});
  EXPECT_EQ(m.image_deviation, (Numbers{0.25, 0.25, 0.5}));
  config::Model same = models::defaults_of("vit");
  same.image_deviation = {0.25, 0.25, 0.25};
  m = model_of(R"({"image_mean": 0.5, "image_std": 0.25})", same);
  EXPECT_EQ(m.image_deviation, same.image_deviation);
  m = model_of(R"({"do_normalize": false})");
  EXPECT_EQ(m.image_deviation, Numbers{1.0});
}

// (r x - mean) / std of the byte x, as (x / 255 - image_mean) / image_deviation.
TEST(ImageProcessor, OtherScales) {
  config::Model m = model_of(R"({"rescale_factor": 0.0078125, "image_mean": [1, 1, 1], "image_std": [1, 1, 2]})");
  for (const double x : {0.0, 17.0, 255.0})
    for (const size_t c : {0, 1, 2})
      EXPECT_NEAR((x / 255 - m.image_mean[0]) / m.image_deviation[c], (x * 0.0078125 - 1) / (c == 2 ? 2 : 1), 1e-12);
  m = model_of(R"({"do_rescale": false, "image_mean": 127.5, "image_std": 51})");
  EXPECT_TRUE(m.image_mean.empty());
  EXPECT_EQ(m.image_deviation, Numbers{0.2});
  config::Model of_numbers = models::defaults_of("vit");
  of_numbers.image_dtype = "fp32";
  m = model_of(R"({"do_rescale": false, "image_mean": [250, 0, 0], "image_std": [1, 1, 1]})", of_numbers);
  EXPECT_EQ(m.image_mean, (Numbers{250, 0, 0}));
  EXPECT_TRUE(m.image_deviation.empty());
}

TEST(ImageProcessor, Errors) {
  EXPECT_EQ(error_in(R"({"image_mean": [0, 0], "image_std": 1})"),
            "[model] \"preprocessor_config.json\":1: \"image_mean\" has 2 numbers, and config.json says that images "
            "have 3 channels");
  EXPECT_EQ(error_in(R"({"image_mean": 0, "image_std": [1, 0, 1]})"),
            "[model] \"preprocessor_config.json\":1: \"image_std\" holds 0; it must be above 0");
  EXPECT_EQ(error_in(R"({"do_flip_channel_order": true, "do_normalize": false})"),
            "[model] \"preprocessor_config.json\":1: \"do_flip_channel_order\" is true, which is not supported; remove "
            "it");
  config::Model m = models::defaults_of("vit");
  m.image_mean = {0.1, 0.2, 0.3};
  EXPECT_EQ(error_in(R"({"image_mean": [0.1, 0.2, 0.3], "image_std": 0.5})", m), "");
  EXPECT_EQ(error_in(R"({"image_mean": [0.1, 0.2, 0.4], "image_std": 0.5})", m),
            "[model] \"preprocessor_config.json\":1: \"image_mean\" differs from that of config.json; make them equal, "
            "or remove one");
  EXPECT_NE(error_in("{}").find("image_mean"), std::string::npos);
  EXPECT_NE(error_in("[]"), "");
}

}  // namespace
}  // namespace kintsugi::exchange::image_processor_test
