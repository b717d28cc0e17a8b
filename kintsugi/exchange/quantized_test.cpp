// Codes and scales are those of the definition, in whole and in parts; weights from codes differ by half a step.
#include "kintsugi/exchange/quantized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kintsugi/exchange/random_source_test.h"
#include "kintsugi/exchange/small_models_test.h"
#include "kintsugi/models/lora.h"

namespace kintsugi::exchange::quantized_test {
namespace {

using checkpoint::Box;
using checkpoint::error_of;
using checkpoint::Range;
using tensor::DType;

config::Settings coded(std::string_view family) {
  config::Settings s = small_run(family, family == "mixtral" ? "experts = 4\nexperts_per_token = 2\n" : "").settings;
  s.lora = {.rank = 2, .alpha = 4, .dropout = 0, .targets = {}, .frozen_dtype = "int8"};
  return s;
}

config::Settings same(config::Settings s) {
  s.lora.frozen_dtype = "same";
  return s;
}

std::vector<int8_t> codes(const checkpoint::TensorSource& from, const std::string& name, std::optional<Box> box = {},
                          std::optional<Range> flat = {}) {
  const Box all = box.value_or(checkpoint::whole_box(from.type(name).shape));
  std::vector<int8_t> values(static_cast<size_t>(flat.value_or(checkpoint::whole_range(all)).size()));
  from.read({.name = name, .box = box, .flat = flat}, DType::i8, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

TEST(Quantized, CodesAndScalesAreThoseOfTheDefinition) {
  for (const std::string_view family : {"llama", "gpt", "mixtral", "deepseek_v3"}) {
    SCOPED_TRACE(family);
    const config::Settings s = coded(family);
    const std::vector<CodedWeight> layers = coded_weights(s);
    EXPECT_GE(layers.size(), 3u * 6u);
    EXPECT_TRUE(coded_weights(same(s)).empty());
    const RandomSource source(same(s));
    auto with_zeros = std::make_unique<RandomSource>(same(s));
    const std::string zeros = layers[0].weight;
    for (size_t i = 0; i < with_zeros->values(zeros).size(); i += static_cast<size_t>(layers[0].columns))
      with_zeros->values(zeros)[i] = 0.0f;  // the first column
    const auto made = quantized(std::move(with_zeros), s);
    for (const CodedWeight& layer : layers) {
      EXPECT_EQ(made->type(layer.weight), (tensor::Type{layer.shape, DType::i8}));
      std::vector<float> w = read(source, layer.weight);
      if (layer.weight == zeros)
        for (size_t i = 0; i < w.size(); i += static_cast<size_t>(layer.columns)) w[i] = 0.0f;
      const std::vector<float> scales = read(*made, layer.scale);
      const std::vector<int8_t> all = codes(*made, layer.weight);
      const auto columns = static_cast<size_t>(layer.columns), matrix = static_cast<size_t>(layer.rows) * columns;
      for (size_t column = 0; column < scales.size(); ++column) {
        float most = 0;
        const size_t first = column / columns * matrix + column % columns;
        for (size_t row = 0; row < matrix / columns; ++row) most = std::max(most, std::abs(w[first + row * columns]));
        ASSERT_EQ(scales[column], most / 127.0f) << layer.weight << " " << column;
        for (size_t row = 0; row < matrix / columns; ++row) {
          const size_t i = first + row * columns;
          const float want = most == 0 ? 0.0f : std::nearbyint(w[i] / scales[column]);
          ASSERT_EQ(static_cast<float>(all[i]), want) << layer.weight << " " << i;
        }
      }
      std::mt19937 random(3);
      const Box whole = checkpoint::whole_box(layer.shape);
      for (int n = 0; n < 5; ++n) {  // parts of boxes
        Box box = whole;
        for (size_t d = 0; d < box.size.size(); ++d) {
          box.start[d] = static_cast<int64_t>(random() % static_cast<uint32_t>(box.size[d]));
          box.size[d] -= box.start[d];
        }
        const int64_t begin = static_cast<int64_t>(random() % static_cast<uint32_t>(box.elements()));
        const Range flat = {begin, box.elements()};
        const std::vector<int8_t> part = codes(*made, layer.weight, box, flat);
        checkpoint::for_each_common_run(
            {whole, checkpoint::whole_range(whole)}, {box, flat}, [&](int64_t from, int64_t to, int64_t count) {
              for (int64_t i = 0; i < count; ++i)
                ASSERT_EQ(part[static_cast<size_t>(to + i)], all[static_cast<size_t>(from + i)]) << layer.weight;
            });
      }
    }
    for (const std::string& name : source.names())  // other weights are as they were
      if (name.find(".norm") != name.npos) {
        EXPECT_EQ(read(*made, name), read(source, name));
      }
  }
}

TEST(Quantized, WeightsFromCodesAreWithinHalfAStep) {
  for (const std::string_view family : {"llama", "mixtral"}) {
    const config::Settings s = coded(family);
    const RandomSource source(same(s));
    const auto again = dequantized(quantized(std::make_unique<RandomSource>(same(s)), s), s);
    for (const CodedWeight& layer : coded_weights(s)) {
      EXPECT_EQ(again->type(layer.weight), (tensor::Type{layer.shape, tensor::dtype_from(s.train.dtype)}));
      const std::vector<float> want = read(source, layer.weight), got = read(*again, layer.weight);
      double most = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 0.5 / 127 * 1.001) << layer.weight;  // magnitudes are at most 1
        most = std::max(most, std::abs(static_cast<double>(got[i] - want[i])));
      }
      EXPECT_GT(most, 0);
    }
  }
}

TEST(Quantized, RefusesWhatCodesCannotStore) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const config::Settings s = coded("llama");
    auto source = std::make_unique<RandomSource>(same(s));
    source->values("layer2.ffn.up.weight")[33] = bad;
    const auto made = quantized(std::move(source), s);
    EXPECT_EQ(error_of([&] { codes(*made, "layer2.ffn.up.weight"); }),
              "[model] \"random\": layer2.ffn.up.weight has elements that are NaN or infinite, which int8 codes cannot "
              "store");
    EXPECT_FALSE(codes(*made, "layer1.ffn.up.weight").empty());
  }
}

}  // namespace kintsugi::exchange::quantized_test
