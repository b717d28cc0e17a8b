// Random weights of a model in memory, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/models/step.h"

namespace kintsugi::exchange {

// Random weights of a model, in memory, independent of its adapters.
class RandomSource : public checkpoint::TensorSource {
 public:
  explicit RandomSource(const config::Settings& s) {
    const models::Graphs graphs = models::build_evaluation(s, 1, 1);
    for (const graph::State& state : *graphs.states) {
      if (state.kind != graph::StateKind::weight) continue;
      std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(state.name)));
      auto& [type, values] = weights_[state.name];
      type = {state.type.shape, tensor::DType::f32};
      for (int64_t i = 0; i < type.shape.elements(); ++i)
        values.push_back(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
    }
  }

  // The elements of a weight, to change.
  std::vector<float>& values(std::string_view name) { return weights_.find(name)->second.second; }

  const std::filesystem::path& folder() const override { return folder_; }
  const tensor::Type& type(std::string_view name) const override {
    const auto found = weights_.find(name);
    if (found == weights_.end()) throw base::UserError("test", "no {}", name);
    return found->second.first;
  }
  void read(const checkpoint::Slice& slice, tensor::DType dtype, std::span<std::byte> out) const override {
    ASSERT_EQ(dtype, tensor::DType::f32);
    const auto& [type, values] = weights_.find(slice.name)->second;
    const checkpoint::Box all = checkpoint::whole_box(type.shape), box = slice.box.value_or(all);
    checkpoint::for_each_common_run(
        {all, checkpoint::whole_range(all)}, {box, slice.flat.value_or(checkpoint::whole_range(box))},
        [&](int64_t from, int64_t to, int64_t count) {
          std::memcpy(out.data() + to * 4, &values[static_cast<size_t>(from)], static_cast<size_t>(count) * 4);
        });
  }
  void verify(int, int, const std::function<bool(std::string_view)>&) const override {}
  void trust(const std::function<bool(std::string_view)>&) const override {}

  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& [name, weight] : weights_) list.push_back(name);
    return list;
  }

 private:
  std::map<std::string, std::pair<tensor::Type, std::vector<float>>, std::less<>> weights_;
  std::filesystem::path folder_ = "random";
};

inline std::vector<float> read(const checkpoint::TensorSource& from, const std::string& name,
                               std::optional<checkpoint::Box> box = {}, std::optional<checkpoint::Range> flat = {}) {
  const checkpoint::Box all = box.value_or(checkpoint::whole_box(from.type(name).shape));
  std::vector<float> values(static_cast<size_t>(flat.value_or(checkpoint::whole_range(all)).size()));
  from.read({.name = name, .box = box, .flat = flat}, tensor::DType::f32, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace kintsugi::exchange
