#include "kintsugi/exchange/averaged_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/models/averages.h"

namespace kintsugi::exchange {
namespace {

std::string average_of(std::string_view weight) {
  return std::string(weight) + std::string(models::kAverageSuffix);
}

class AveragedSource : public checkpoint::TensorSource {
 public:
  AveragedSource(std::unique_ptr<checkpoint::TensorSource> weights, const checkpoint::CheckpointReader& reader)
      : weights_(std::move(weights)), reader_(reader) {}

  const std::filesystem::path& folder() const override { return weights_->folder(); }
  const tensor::Type& type(std::string_view name) const override { return weights_->type(stored(name)); }
  void read(const checkpoint::Slice& slice, tensor::DType dtype, std::span<std::byte> out) const override {
    const std::string name = stored(slice.name);
    weights_->read({.name = name, .box = slice.box, .flat = slice.flat}, dtype, out);
  }
  void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const override {
    weights_->verify(share, shares, of_stored(wanted));
  }
  void trust(const std::function<bool(std::string_view)>& wanted) const override { weights_->trust(of_stored(wanted)); }

 private:
  std::string stored(std::string_view name) const {
    std::string average = average_of(name);
    return reader_.has(average) ? average : std::string(name);
  }
  // Selects the average of each wanted weight, instead of the weight.
  std::function<bool(std::string_view)> of_stored(const std::function<bool(std::string_view)>& wanted) const {
    if (!wanted) return nullptr;
    return [this, wanted](std::string_view name) {
      if (reader_.has(average_of(name))) return false;
      if (name.ends_with(models::kAverageSuffix)) name.remove_suffix(models::kAverageSuffix.size());
      return wanted(name);
    };
  }

  std::unique_ptr<checkpoint::TensorSource> weights_;
  const checkpoint::CheckpointReader& reader_;  // the same
};

}  // namespace

std::unique_ptr<checkpoint::TensorSource> with_averages(std::unique_ptr<checkpoint::TensorSource> weights) {
  const auto* reader = dynamic_cast<const checkpoint::CheckpointReader*>(weights.get());
  const auto is_average = [](const auto& tensor) { return tensor.first.ends_with(models::kAverageSuffix); };
  if (!reader || std::ranges::none_of(reader->index().tensors, is_average))
    throw base::UserError("model",
                          "--average: {} holds no averages of weights; a run with train.ema_decay above 0 saves them",
                          base::in_quotes(weights->folder().string()));
  return std::make_unique<AveragedSource>(std::move(weights), *reader);
}

}  // namespace kintsugi::exchange
