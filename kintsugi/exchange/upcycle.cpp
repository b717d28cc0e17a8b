#include "kintsugi/exchange/upcycle.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/models/step.h"

namespace kintsugi::exchange {
namespace {

using checkpoint::Box;
using checkpoint::Range;
using checkpoint::Slice;
using checkpoint::TensorSource;

class UpcycledSource : public TensorSource {
 public:
  UpcycledSource(std::unique_ptr<TensorSource> dense, const config::Model& model) : dense_(std::move(dense)) {
    config::Settings settings;
    settings.model = model;
    const models::Graphs graphs = models::build_evaluation(settings, 1, 1);
    for (const graph::State& state : *graphs.states)
      if (state.kind == graph::StateKind::weight && state.type.shape.rank() > 0 && state.type.shape[0].name == "expert")
        experts_.emplace(state.name, repeated(state));
  }

  const std::filesystem::path& folder() const override { return dense_->folder(); }

  const tensor::Type& type(std::string_view name) const override {
    const auto found = experts_.find(name);
    return found == experts_.end() ? dense_->type(name) : found->second;
  }

  void read(const Slice& slice, tensor::DType dtype, std::span<std::byte> out) const override {
    const auto found = experts_.find(slice.name);
    if (found == experts_.end()) return dense_->read(slice, dtype, out);
    const Box box = slice.box ? *slice.box : checkpoint::whole_box(found->second.shape);
    const Range flat = slice.flat ? *slice.flat : checkpoint::whole_range(box);
    const Box one = {{box.start.begin() + 1, box.start.end()}, {box.size.begin() + 1, box.size.end()}};
    const int64_t elements = one.elements(), size = tensor::size_of(dtype);
    const std::byte* copied = nullptr;  // a whole expert that was read
    for (int64_t at = flat.begin; at < flat.end;) {
      const int64_t begin = at % elements, end = std::min(elements, begin + flat.end - at);
      const auto bytes = static_cast<size_t>((end - begin) * size);
      std::byte* const to = out.data() + (at - flat.begin) * size;
      if (copied && end - begin == elements)
        std::memcpy(to, copied, bytes);
      else
        dense_->read({.name = slice.name, .box = one, .flat = Range{begin, end}}, dtype, {to, bytes});
      if (end - begin == elements) copied = to;
      at += end - begin;
    }
  }

  void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const override {
    dense_->verify(share, shares, wanted);
  }
  void trust(const std::function<bool(std::string_view)>& wanted) const override { dense_->trust(wanted); }

 private:
  // The dense weight with the experts as its first dim. Throws UserError if one expert has other dims.
  tensor::Type repeated(const graph::State& state) const {
    const tensor::Type& from = dense_->type(state.name);
    const tensor::Shape one(std::vector<tensor::Dim>(state.type.shape.begin() + 1, state.type.shape.end()));
    if (from.shape != one)
      throw base::UserError("train",
                            "\"{}\" holds {} {}, and an expert of this model needs {}: model.ffn must be that of the "
                            "dense model, of which each expert is a copy",
                            dense_->folder().string(), state.name, to_string(from.shape), to_string(one));
    return {state.type.shape, from.dtype};
  }

  std::unique_ptr<TensorSource> dense_;
  std::map<std::string, tensor::Type, std::less<>> experts_;  // by weight
};

}  // namespace

bool is_upcycled(const config::Model& model, const config::Model& dense) {
  return model.experts > 0 && dense.experts == 0;
}

bool is_of_router(std::string_view name) {
  return name.find(".ffn.router.") != name.npos;
}

std::unique_ptr<TensorSource> upcycled(std::unique_ptr<TensorSource> dense, const config::Model& model) {
  return std::make_unique<UpcycledSource>(std::move(dense), model);
}

}  // namespace kintsugi::exchange
