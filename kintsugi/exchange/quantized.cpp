#include "kintsugi/exchange/quantized.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/convert.h"
#include "kintsugi/exchange/row_parts.h"
#include "kintsugi/models/lora.h"
#include "kintsugi/models/step.h"

namespace kintsugi::exchange {
namespace {

using checkpoint::Box;
using checkpoint::Range;
using checkpoint::Slice;
using checkpoint::TensorSource;
using tensor::DType;

constexpr int64_t kPiece = int64_t{1} << 18;  // elements read at once

// What both directions share: the matrices by the name of their weight and of their scales.
class CodedSource : public TensorSource {
 public:
  CodedSource(std::unique_ptr<TensorSource> inner, const config::Settings& settings) : inner_(std::move(inner)) {
    for (CodedWeight& w : coded_weights(settings)) {
      const std::string weight = w.weight, scale = w.scale;
      Entry& entry = by_weight_[weight];
      entry.layer = std::move(w);
      by_scale_[scale] = &entry;
    }
  }

  const std::filesystem::path& folder() const override { return inner_->folder(); }
  // The codes need all of a weight, and the weight needs its scales.
  void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const override {
    inner_->verify(share, shares, with_others(wanted));
  }
  void trust(const std::function<bool(std::string_view)>& wanted) const override { inner_->trust(with_others(wanted)); }

 protected:
  struct Entry {
    CodedWeight layer;
    mutable std::once_flag once;
    mutable std::vector<float> scales;
  };

  const TensorSource& inner() const { return *inner_; }
  const Entry* of_weight(std::string_view name) const {
    const auto found = by_weight_.find(name);
    return found == by_weight_.end() ? nullptr : &found->second;
  }
  const Entry* of_scale(std::string_view name) const {
    const auto found = by_scale_.find(name);
    return found == by_scale_.end() ? nullptr : found->second;
  }
  const std::vector<float>& scales_of(const Entry& entry) const {
    std::call_once(entry.once, [&] { entry.scales = find_scales(entry.layer); });
    return entry.scales;
  }
  virtual std::vector<float> find_scales(const CodedWeight& layer) const = 0;

  void require_shape(const std::string& name, const tensor::Shape& shape) const {
    const tensor::Shape& stored = inner_->type(name).shape;
    if (stored != shape)
      throw base::UserError("model", "{} holds {} {}, its configuration says {}", base::in_quotes(folder().string()),
                            name, to_string(stored), to_string(shape));
  }

  // Calls f(piece, first output element) for pieces of a slice of the layer.
  template <typename F>
  void for_pieces(const Slice& slice, const tensor::Shape& shape, const F& f) const {
    const Box box = slice.box.value_or(checkpoint::whole_box(shape));
    const Range flat = slice.flat.value_or(checkpoint::whole_range(box));
    for (int64_t at = flat.begin; at < flat.end; at += kPiece) f(box, Range{at, std::min(at + kPiece, flat.end)});
  }

 private:
  std::function<bool(std::string_view)> with_others(const std::function<bool(std::string_view)>& wanted) const {
    if (!wanted) return nullptr;
    return [this, wanted](std::string_view name) {
      if (wanted(name)) return true;
      if (const Entry* e = of_weight(name)) return wanted(e->layer.scale);
      const Entry* e = of_scale(name);
      return e && wanted(e->layer.weight);
    };
  }

  std::unique_ptr<TensorSource> inner_;
  std::map<std::string, Entry, std::less<>> by_weight_;
  std::map<std::string, const Entry*, std::less<>> by_scale_;
};

class QuantizedSource : public CodedSource {
 public:
  QuantizedSource(std::unique_ptr<TensorSource> inner, const config::Settings& settings)
      : CodedSource(std::move(inner), settings) {
    for (const CodedWeight& w : coded_weights(settings)) {
      types_[w.weight] = {w.shape, DType::i8};
      types_[w.scale] = {w.scales, DType::f32};
    }
  }

  const tensor::Type& type(std::string_view name) const override {
    const Entry* weight = of_weight(name);
    if (!weight && !of_scale(name)) return inner().type(name);
    if (weight) require_shape(weight->layer.weight, weight->layer.shape);
    return types_.find(name)->second;
  }

  void read(const Slice& slice, DType dtype, std::span<std::byte> out) const override {
    if (const Entry* entry = of_scale(slice.name)) return read_scales(*entry, slice, dtype, out);
    const Entry* entry = of_weight(slice.name);
    if (!entry) return inner().read(slice, dtype, out);
    base::require(dtype == DType::i8, "exchange", "codes of {} read as {}", slice.name, name_of(dtype));
    const std::vector<float>& scales = scales_of(*entry);
    const CodedWeight& layer = entry->layer;
    auto* const codes = reinterpret_cast<int8_t*>(out.data());
    int64_t done = 0;
    std::vector<float> w;
    for_pieces(slice, layer.shape, [&](const Box& box, const Range& piece) {
      w.resize(static_cast<size_t>(piece.size()));
      inner().read({.name = slice.name, .box = box, .flat = piece}, DType::f32, std::as_writable_bytes(std::span(w)));
      for_each_row_part(box, piece, layer.shape, [&](int64_t at, int64_t first, int64_t count) {
        for (int64_t i = 0; i < count; ++i)
          codes[done + at - piece.begin + i] = code_of(w[static_cast<size_t>(at - piece.begin + i)],
                                                       scales[static_cast<size_t>(layer.scale_at(first + i))]);
      });
      done += piece.size();
    });
  }

 private:
  std::vector<float> find_scales(const CodedWeight& layer) const override {
    std::vector<float> scales(static_cast<size_t>(layer.scales.elements())), w;
    for_pieces({.name = layer.weight, .box = {}, .flat = {}}, layer.shape, [&](const Box& box, const Range& piece) {
      w.resize(static_cast<size_t>(piece.size()));
      inner().read({.name = layer.weight, .box = box, .flat = piece}, DType::f32, std::as_writable_bytes(std::span(w)));
      raise_magnitudes(layer, piece.begin, w, scales);
    });
    for (float& s : scales) {
      if (!std::isfinite(s))
        throw base::UserError("model", "{}: {} has elements that are NaN or infinite, which int8 codes cannot store",
                              base::in_quotes(folder().string()), layer.weight);
      s /= static_cast<float>(models::kMostCode);
    }
    return scales;
  }

  void read_scales(const Entry& entry, const Slice& slice, DType dtype, std::span<std::byte> out) const {
    const std::vector<float>& scales = scales_of(entry);
    const Box box = slice.box.value_or(checkpoint::whole_box(entry.layer.scales));
    const Range flat = slice.flat.value_or(checkpoint::whole_range(box));
    for_each_row_part(box, flat, entry.layer.scales, [&](int64_t at, int64_t first, int64_t count) {
      checkpoint::convert(DType::f32, reinterpret_cast<const std::byte*>(scales.data() + first), dtype,
                          out.data() + (at - flat.begin) * size_of(dtype), count);
    });
  }

  std::map<std::string, tensor::Type, std::less<>> types_;
};

class DequantizedSource : public CodedSource {
 public:
  DequantizedSource(std::unique_ptr<TensorSource> inner, const config::Settings& settings)
      : CodedSource(std::move(inner), settings) {
    for (const CodedWeight& w : coded_weights(settings))
      types_[w.weight] = {w.shape, tensor::dtype_from(settings.train.dtype)};
  }

  const tensor::Type& type(std::string_view name) const override {
    const Entry* entry = of_weight(name);
    if (!entry) return inner().type(name);
    require_shape(entry->layer.weight, entry->layer.shape);
    return types_.find(name)->second;
  }

  void read(const Slice& slice, DType dtype, std::span<std::byte> out) const override {
    const Entry* entry = of_weight(slice.name);
    if (!entry) return inner().read(slice, dtype, out);
    const std::vector<float>& scales = scales_of(*entry);
    const CodedWeight& layer = entry->layer;
    int64_t done = 0;
    std::vector<int8_t> codes;
    std::vector<float> w;
    for_pieces(slice, layer.shape, [&](const Box& box, const Range& piece) {
      codes.resize(static_cast<size_t>(piece.size()));
      w.resize(codes.size());
      inner().read({.name = slice.name, .box = box, .flat = piece}, DType::i8,
                   std::as_writable_bytes(std::span(codes)));
      for_each_row_part(box, piece, layer.shape, [&](int64_t at, int64_t first, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const auto to = static_cast<size_t>(at - piece.begin + i);
          w[to] = static_cast<float>(codes[to]) * scales[static_cast<size_t>(layer.scale_at(first + i))];
        }
      });
      checkpoint::convert(DType::f32, reinterpret_cast<const std::byte*>(w.data()), dtype,
                          out.data() + done * size_of(dtype), piece.size());
      done += piece.size();
    });
  }

 private:
  std::vector<float> find_scales(const CodedWeight& layer) const override {
    require_shape(layer.scale, layer.scales);
    std::vector<float> scales(static_cast<size_t>(layer.scales.elements()));
    inner().read({.name = layer.scale, .box = {}, .flat = {}}, DType::f32, std::as_writable_bytes(std::span(scales)));
    return scales;
  }

  std::map<std::string, tensor::Type, std::less<>> types_;
};

}  // namespace

std::vector<CodedWeight> coded_weights(const config::Settings& settings) {
  std::vector<CodedWeight> list;
  if (models::frozen_dtype(settings.lora) != DType::i8) return list;
  const models::Graphs graphs = models::build_evaluation(settings, 1, 1);
  const graph::StateTable& states = *graphs.states;
  for (const graph::State& s : states) {
    if (s.kind != graph::StateKind::weight || s.type.dtype != DType::i8) continue;
    const std::string layer = s.name.substr(0, s.name.size() - models::kWeight.size());
    CodedWeight w = {
        .weight = s.name, .scale = layer + std::string(models::kScale), .shape = s.type.shape, .scales = {}};
    w.scales = states[states.find(w.scale)].type.shape;
    const int64_t experts = s.matrix.batch > 0 ? s.type.shape[0].size : 1;
    w.columns = w.scales.elements() / experts;
    w.rows = w.shape.elements() / experts / w.columns;
    list.push_back(std::move(w));
  }
  return list;
}

void raise_magnitudes(const CodedWeight& layer, int64_t first, std::span<const float> w, std::span<float> magnitudes) {
  for (size_t i = 0; i < w.size(); ++i) {
    float& most = magnitudes[static_cast<size_t>(layer.scale_at(first + static_cast<int64_t>(i)))];
    const float magnitude = std::abs(w[i]);
    if (!(magnitude <= most)) most = std::isnan(most) ? most : magnitude;  // NaN stays
  }
}

int8_t code_of(float w, float scale) {
  if (scale == 0.0f) return 0;
  constexpr auto kMost = static_cast<float>(models::kMostCode);
  return static_cast<int8_t>(std::clamp(std::nearbyint(w / scale), -kMost, kMost));
}

std::unique_ptr<TensorSource> quantized(std::unique_ptr<TensorSource> weights, const config::Settings& settings) {
  return std::make_unique<QuantizedSource>(std::move(weights), settings);
}

std::unique_ptr<TensorSource> dequantized(std::unique_ptr<TensorSource> codes, const config::Settings& settings) {
  return std::make_unique<DequantizedSource>(std::move(codes), settings);
}

}  // namespace kintsugi::exchange
