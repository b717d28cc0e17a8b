// The adapters of a model (models/lora.h): their layers, their factors in memory, and a model with adapters merged into
// the weights.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::exchange {

struct AdaptedLayer {
  std::string name;     // "layer0.attention.query"
  tensor::Shape a, b;   // [in ... lora], [lora out ...]; of experts [expert in lora], [expert lora out]
  tensor::Shape shape;  // of the weight: [in ... out ...]; of experts [expert in out]
  size_t inputs = 0;    // number of input dims

  std::string weight() const { return name + ".weight"; }
  bool of_experts() const { return b[0].name != "lora"; }
  int64_t experts() const { return of_experts() ? b[0].size : 1; }
  int64_t rank() const { return b.size("lora"); }
  int64_t in() const { return a.elements() / rank() / experts(); }
  int64_t out() const { return b.elements() / rank() / experts(); }
};

// In the order of the model's graph; empty without adapters.
std::vector<AdaptedLayer> adapted_layers(const config::Settings& settings);

// A [in rank] and B [rank out] of a layer, row-major; those of experts one after another.
struct Factors {
  std::vector<float> a, b;
};
Factors read_factors(const checkpoint::TensorSource& from, const AdaptedLayer& layer);

// The weights of the equivalent model without adapters: W + alpha / rank A B, summed in fp32 and rounded once. Excludes
// the adapters.
class MergedSource : public checkpoint::TensorSource {
 public:
  MergedSource(std::unique_ptr<checkpoint::TensorSource> weights, const config::Settings& settings);

  const std::filesystem::path& folder() const override { return weights_->folder(); }
  const tensor::Type& type(std::string_view name) const override { return weights_->type(name); }
  void read(const checkpoint::Slice& slice, tensor::DType dtype, std::span<std::byte> out) const override;
  void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const override {
    weights_->verify(share, shares, wanted);
  }
  void trust(const std::function<bool(std::string_view)>& wanted) const override { weights_->trust(wanted); }

 private:
  std::shared_ptr<const Factors> factors_of(const AdaptedLayer& layer) const;

  std::unique_ptr<checkpoint::TensorSource> weights_;
  double scale_;
  std::map<std::string, AdaptedLayer, std::less<>> layers_;  // by weight
  mutable std::mutex mutex_;                                 // guards the following: the last layer read
  mutable std::string last_;
  mutable std::shared_ptr<const Factors> factors_;
};

}  // namespace kintsugi::exchange
