#include "kintsugi/evaluate/embed_texts.h"

#include <algorithm>
#include <numeric>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/evaluate/not_finite.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/evaluate/score_texts.h"
#include "kintsugi/models/embedding.h"

namespace kintsugi::evaluate {
namespace {

constexpr program::Step kList = program::Step::evaluate;

// The program of one length.
class Embedder {
 public:
  Embedder(run::Executor& executor, comm::Communicator& all, int64_t batch, int64_t length)
      : executor_(executor), all_(all), batch_(static_cast<size_t>(batch)), length_(static_cast<size_t>(length)) {
    const int32_t mine = executor.has_output(kList, models::kHidden) ? 1 : 0;
    std::vector<int32_t> every(static_cast<size_t>(all.size()));
    all.wait(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
    const auto found = std::ranges::find(every, 1);
    base::require(found != every.end(), "embed", "no rank has the hidden states");
    from_ = static_cast<int>(found - every.begin());
  }

  // Returns a vector of `width` per text, on every rank.
  std::vector<float> embed(std::span<const std::vector<int32_t>* const> texts, Pooling pooling, size_t width) {
    std::vector<int32_t> tokens(batch_ * length_, -1), starts(batch_ * length_, 0);
    const std::vector<int32_t> types(batch_ * length_, 0);
    for (size_t t = 0; t < batch_; ++t) {
      const size_t count = t < texts.size() ? texts[t]->size() : 0;
      if (count > 0) std::ranges::copy(*texts[t], tokens.begin() + static_cast<std::ptrdiff_t>(t * length_));
      for (size_t i = count; i < length_; ++i) starts[t * length_ + i] = static_cast<int32_t>(count);
    }
    const auto columns = static_cast<int64_t>(length_);
    kernels::Numbers numbers;
    executor_.run(kList, numbers, [&](const run::Executor::Inputs& inputs) {
      if (inputs.has("tokens")) inputs.set("tokens", {tokens, 0, columns}, -1);
      if (inputs.has("starts")) inputs.set("starts", {starts, 0, columns}, 0);
      if (inputs.has("types")) inputs.set("types", {types, 0, columns}, 0);
    });
    std::vector<float> pooled(texts.size() * width);
    if (all_.rank() == from_) pool(texts, pooling, width, pooled);
    all_.wait(all_.broadcast(std::as_writable_bytes(std::span(pooled)), from_));
    require_finite<float>("embed", "hidden states", pooled, executor_, &all_);
    return pooled;
  }

 private:
  void pool(std::span<const std::vector<int32_t>* const> texts, Pooling pooling, size_t width,
            std::vector<float>& pooled) const {
    const tensor::View out = executor_.output(kList, models::kHidden);  // [batch seq embed]
    base::require(out.elements() == static_cast<int64_t>(batch_ * length_ * width), "embed", "hidden states {}",
                  to_string(out.shape()));
    tensor::dispatch(out.dtype(), [&]<typename T>(T) {
      const std::span<const T> hidden = out.as<T>();
      for (size_t t = 0; t < texts.size(); ++t) {
        const size_t count = texts[t]->size(), first = pooling == Pooling::last ? count - 1 : 0,
                     end = pooling == Pooling::first ? 1 : count;
        for (size_t e = 0; e < width; ++e) {
          double sum = 0;
          for (size_t i = first; i < end; ++i)
            sum += static_cast<double>(static_cast<tensor::arithmetic_t<T>>(hidden[(t * length_ + i) * width + e]));
          pooled[t * width + e] = static_cast<float>(sum / static_cast<double>(end - first));
        }
      }
    });
  }

  run::Executor& executor_;
  comm::Communicator& all_;
  size_t batch_, length_;
  int from_ = 0;  // the first rank with the hidden states
};

}  // namespace

std::vector<float> embed_texts(CheckpointModel& model, std::span<const std::vector<int32_t>> texts,
                               const EmbeddingOptions& options) {
  constexpr int64_t kUnit = 16;
  const config::Settings& s = model.settings();
  const auto width = static_cast<size_t>(s.model.embed);
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& text : texts) {
    base::require(!text.empty() && std::ssize(text) <= s.model.context, "embed", "a text of {} ids", text.size());
    lengths.push_back(std::ssize(text));
  }
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return lengths[i]; });

  std::vector<float> vectors(texts.size() * width);
  size_t done = 0;
  for (const int64_t length : choose_lengths(lengths, kUnit * s.parallel.context, s.model.context)) {
    size_t end = done;
    while (end < order.size() && lengths[order[end]] <= length) ++end;
    const int64_t batch = even_batch(options.batch, static_cast<int64_t>(end - done), config::data_ranks(s.parallel));
    models::Graphs graphs;
    comm::together(model.all(), [&] { graphs = models::build_embedding(s, batch, length, options.blocks); });
    const auto executor = model.load(graphs);
    Embedder embedder(*executor, model.all(), batch, length);
    while (done < end) {
      options.progress(static_cast<int64_t>(done));
      std::vector<const std::vector<int32_t>*> some;
      const size_t count = std::min(static_cast<size_t>(batch), end - done);
      for (size_t i = 0; i < count; ++i) some.push_back(&texts[order[done + i]]);
      const std::vector<float> found = embedder.embed(some, options.pooling, width);
      for (size_t i = 0; i < count; ++i)
        std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                    vectors.begin() + static_cast<std::ptrdiff_t>(order[done + i] * width));
      done += count;
    }
  }
  return vectors;
}

}  // namespace kintsugi::evaluate
