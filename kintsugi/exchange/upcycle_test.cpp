#include "kintsugi/exchange/upcycle.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/exchange/small_models_test.h"

namespace kintsugi::exchange::upcycle_test {
namespace {

using checkpoint::Box;
using checkpoint::Range;
using tensor::DType;

std::vector<float> values_of(const checkpoint::TensorSource& source, const checkpoint::Slice& slice, int64_t elements) {
  std::vector<float> values(static_cast<size_t>(elements));
  source.read(slice, DType::f32, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

TEST(Upcycle, EachExpertIsACopy) {
  checkpoint::ScratchFolder scratch;
  const config::Resolved dense = small_run("llama");
  const auto saved = save_random(dense, scratch / "run");
  config::Model model = dense.settings.model;
  model.experts = 3;
  ASSERT_TRUE(is_upcycled(model, dense.settings.model));
  EXPECT_FALSE(is_upcycled(model, model));
  const auto source = upcycled(std::make_unique<checkpoint::CheckpointReader>(saved), model);
  const checkpoint::CheckpointReader plain(saved);

  const std::string name = "layer1.ffn.up.weight";
  EXPECT_EQ(to_string(source->type(name).shape), "[expert:3 embed:24 ffn:20]");
  EXPECT_EQ(to_string(source->type("layer1.attention.query.weight").shape),
            to_string(plain.type("layer1.attention.query.weight").shape));
  const int64_t one = 24 * 20;
  const std::vector<float> whole = values_of(*source, {.name = name, .box = {}, .flat = {}}, 3 * one),
                           copy = values_of(plain, {.name = name, .box = {}, .flat = {}}, one);
  for (int64_t i = 0; i < 3 * one; ++i)
    ASSERT_EQ(whole[static_cast<size_t>(i)], copy[static_cast<size_t>(i % one)]) << i;

  // A part of a box of two experts: from the first into the second.
  const Box box = {{1, 2, 4}, {2, 5, 10}};
  const std::vector<float> part = values_of(*source, {.name = name, .box = box, .flat = Range{30, 90}}, 60);
  for (int64_t i = 30; i < 90; ++i) {
    const int64_t row = i / 10 % 5 + 2, column = i % 10 + 4;
    ASSERT_EQ(part[static_cast<size_t>(i - 30)], copy[static_cast<size_t>(row * 20 + column)]) << i;
  }
}

TEST(Upcycle, RoutersAreNew) {
  EXPECT_TRUE(is_of_router("layer0.ffn.router.weight"));
  EXPECT_TRUE(is_of_router("layer0.ffn.router.bias"));
  EXPECT_FALSE(is_of_router("layer0.ffn.up.weight"));
}

TEST(Upcycle, AnotherWidthIsRefused) {
  checkpoint::ScratchFolder scratch;
  const config::Resolved dense = small_run("llama");
  const auto saved = save_random(dense, scratch / "run");
  config::Model model = dense.settings.model;
  model.experts = 3;
  model.ffn = 10;
  EXPECT_EQ(checkpoint::error_of([&] { upcycled(std::make_unique<checkpoint::CheckpointReader>(saved), model); }),
            "[train] \"" + saved.string() +
                "\" holds layer0.ffn.gate.weight [embed:24 ffn:20], and an expert of this model needs [embed:24 "
                "ffn:10]: model.ffn must be that of the dense model, of which each expert is a copy");
}

}  // namespace kintsugi::exchange::upcycle_test
