#include "kintsugi/exchange/adapters.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/exchange/row_parts.h"
#include "kintsugi/models/lora.h"
#include "kintsugi/models/step.h"

namespace kintsugi::exchange {
namespace {

using checkpoint::Box;
using checkpoint::Range;
using tensor::DType;

std::vector<float> read_whole(const checkpoint::TensorSource& from, const std::string& name,
                              const tensor::Shape& shape) {
  const tensor::Shape& stored = from.type(name).shape;
  if (stored != shape)
    throw base::UserError("model", "\"{}\" holds {} {}, its configuration says {}", from.folder().string(), name,
                          to_string(stored), to_string(shape));
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  from.read({.name = name, .box = {}, .flat = {}}, DType::f32, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

std::vector<AdaptedLayer> adapted_layers(const config::Settings& settings) {
  std::vector<AdaptedLayer> layers;
  if (settings.lora.rank == 0) return layers;
  const models::Graphs graphs = models::build_evaluation(settings, 1, 1);
  const graph::StateTable& states = *graphs.states;
  for (const graph::State& state : states) {
    if (!state.name.ends_with(models::kLoraA)) continue;
    AdaptedLayer layer = {.name = state.name.substr(0, state.name.size() - models::kLoraA.size()),
                          .a = state.type.shape,
                          .b = {},
                          .shape = {}};
    layer.b = states[states.find(layer.name + std::string(models::kLoraB))].type.shape;
    layer.shape = states[states.find(layer.weight())].type.shape;
    layer.inputs = layer.a.rank() - (layer.of_experts() ? 2 : 1);
    for (size_t d = 0; d + 1 < layer.a.rank(); ++d)
      base::require(layer.shape[d] == layer.a[d], "exchange", "{} of {} {}", state.name, layer.weight(),
                    to_string(layer.shape));
    layers.push_back(std::move(layer));
  }
  return layers;
}

Factors read_factors(const checkpoint::TensorSource& from, const AdaptedLayer& layer) {
  return {.a = read_whole(from, layer.name + std::string(models::kLoraA), layer.a),
          .b = read_whole(from, layer.name + std::string(models::kLoraB), layer.b)};
}

MergedSource::MergedSource(std::unique_ptr<checkpoint::TensorSource> weights, const config::Settings& settings)
    : weights_(std::move(weights)), scale_(models::lora_scale(settings.lora)) {
  for (AdaptedLayer& layer : adapted_layers(settings)) layers_.emplace(layer.weight(), std::move(layer));
}

std::shared_ptr<const Factors> MergedSource::factors_of(const AdaptedLayer& layer) const {
  const std::lock_guard lock(mutex_);
  if (last_ != layer.name) {
    factors_ = std::make_shared<const Factors>(read_factors(*weights_, layer));
    last_ = layer.name;
  }
  return factors_;
}

void MergedSource::read(const checkpoint::Slice& slice, DType dtype, std::span<std::byte> out) const {
  const auto found = layers_.find(slice.name);
  if (found == layers_.end()) return weights_->read(slice, dtype, out);
  const AdaptedLayer& layer = found->second;
  const std::shared_ptr<const Factors> factors = factors_of(layer);
  const Box box = slice.box.value_or(checkpoint::whole_box(layer.shape));
  const Range flat = slice.flat.value_or(checkpoint::whole_range(box));
  std::vector<float> sums(static_cast<size_t>(flat.size()));
  weights_->read(slice, DType::f32, std::as_writable_bytes(std::span(sums)));
  const int64_t rank = layer.rank(), rows = layer.in(), columns = layer.out();
  for_each_row_part(box, flat, layer.shape, [&](int64_t at, int64_t first, int64_t count) {
    for (int64_t done = 0; done < count;) {
      const int64_t k = (first + done) / columns, n = (first + done) % columns;  // k: a row of any expert
      const int64_t some = std::min(count - done, columns - n);
      float* to = sums.data() + (at - flat.begin) + done;
      for (int64_t r = 0; r < rank; ++r) {
        const auto a = static_cast<float>(scale_ * static_cast<double>(factors->a[static_cast<size_t>(k * rank + r)]));
        const float* b = factors->b.data() + (k / rows * rank + r) * columns + n;
        for (int64_t i = 0; i < some; ++i) to[i] += a * b[i];
      }
      done += some;
    }
  });
  tensor::dispatch(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < sums.size(); ++i) {
      const T value = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(sums[i]));
      std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}

}  // namespace kintsugi::exchange
