#include "kintsugi/train/inspect.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/safetensors_header.h"
#include "kintsugi/data/batch.h"
#include "kintsugi/exchange/strides.h"
#include "kintsugi/exchange/weight_map.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/layout_run.h"

namespace kintsugi::train {
namespace {

constexpr std::string_view kWhere = "evaluate";

std::vector<int32_t> parse_line(const std::string& place, std::string_view line) {
  std::vector<int32_t> ids;
  const char* at = line.data();
  const char* const end = line.data() + line.size();
  while (at != end) {
    if (*at == ' ' || *at == '\t' || *at == '\r') {
      ++at;
      continue;
    }
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0)
      throw base::UserError(kWhere, "{}: \"{}\" is no token id; a line holds ids separated by spaces", place,
                            base::one_line(line.substr(static_cast<size_t>(at - line.data())), 20));
    ids.push_back(id);
    at = next;
  }
  return ids;
}

void require_fit(const config::Settings& s, const Samples& samples) {
  if (samples.sequence > s.model.context)
    throw base::UserError(kWhere, "samples of {} ids are longer than the model's {} positions", samples.sequence,
                          s.model.context);
  if (samples.count % s.parallel.data != 0)
    throw base::UserError(kWhere, "{} samples are not divisible among parallel.data = {}", samples.count,
                          s.parallel.data);
  const int32_t largest = *std::ranges::max_element(samples.ids);
  if (largest >= s.model.vocab)
    throw base::UserError(kWhere, "the id {} is outside of the model's vocabulary of {}", largest, s.model.vocab);
}

// All samples in one pass, without dropout.
config::Settings one_pass(config::Settings s, const Samples& samples) {
  s.model.dropout = 0.0;
  s.data.reset_at_document = false;
  s.train.sequence = samples.sequence;
  s.train.global_batch = samples.count;
  s.train.micro_batch = samples.count / s.parallel.data;
  s.train.reproducible = 0;
  return s;
}

}  // namespace

Samples parse_samples(std::string_view file_name, std::string_view text) {
  Samples samples;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string place = fmt::format("\"{}\":{}", file_name, ++number);
    const std::vector<int32_t> ids = parse_line(place, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (ids.empty()) continue;
    if (samples.count > 0 && static_cast<int64_t>(ids.size()) != samples.sequence)
      throw base::UserError(kWhere, "{}: {} ids, where the first sample has {}; all must be equally long", place,
                            ids.size(), samples.sequence);
    samples.sequence = static_cast<int64_t>(ids.size());
    ++samples.count;
    samples.ids.insert(samples.ids.end(), ids.begin(), ids.end());
  }
  if (samples.sequence < 2)
    throw base::UserError(kWhere, "\"{}\" holds no sample of two ids or more, of which each predicts the next",
                          file_name);
  return samples;
}

Inspection inspect(config::Settings settings, const Samples& samples, const std::function<void(run::Executor&)>& load) {
  require_fit(settings, samples);
  LayoutRun run(one_pass(std::move(settings), samples), std::nullopt, {}, comm::thread_worlds, models::Logits::kept);
  for (int rank = 0; rank < run.ranks(); ++rank) load(run.executor(rank));
  run.step(0, 0.0, [&](int64_t, WholeBatch& batch) {
    batch.tokens = samples.ids;
    batch.labels.assign(samples.ids.begin() + 1, samples.ids.end());
    batch.labels.push_back(data::kIgnored);
    for (size_t i = static_cast<size_t>(samples.sequence) - 1; i < batch.labels.size();
         i += static_cast<size_t>(samples.sequence))
      batch.labels[i] = data::kIgnored;
    batch.starts.assign(samples.ids.size(), 0);
  });
  Inspection found;
  found.loss = run.loss();
  found.logits.values = run.state(models::kLogits);
  std::map<std::string, std::vector<double>> gradients = run.states(program::StateKind::gradient);
  for (int rank = 0; rank < run.ranks(); ++rank)
    for (const program::StateInfo& s : run.executor(rank).program().states) {
      if (s.name == models::kLogits) found.logits.shape = s.whole.shape;
      if (s.kind != program::StateKind::gradient || !gradients.contains(s.name)) continue;
      std::vector<double> values = std::move(gradients.extract(s.name).mapped());
      for (double& value : values) value /= run.tokens();
      found.gradients[s.weight] = {s.whole.shape, std::move(values)};
    }
  return found;
}

std::map<std::string, WholeTensor> as_in_folder(const std::map<std::string, WholeTensor>& gradients,
                                                const config::Model& model) {
  std::map<std::string, WholeTensor> all;
  for (const exchange::MappedTensor& tensor : exchange::weight_map(models::family(model.family), model)) {
    std::vector<tensor::Dim> dims;
    for (const int64_t size : tensor.shape) dims.push_back({fmt::format("dim{}", dims.size()), size});
    WholeTensor& whole = all[tensor.name];
    whole = {tensor::Shape(dims), std::vector<double>(static_cast<size_t>(tensor.elements()))};
    for (const exchange::MappedWeight& weight : tensor.weights) {
      const std::vector<double>& values = gradients.at(weight.name).values;
      std::vector<exchange::CopyDim> copy;
      for (size_t d = 0; d < weight.shape.rank(); ++d)
        copy.push_back({weight.shape[d].size, weight.shape.stride(d), weight.stride[d]});
      exchange::copy_strided(exchange::simplified(copy), reinterpret_cast<const std::byte*>(values.data()),
                             reinterpret_cast<std::byte*>(whole.values.data() + weight.first), sizeof(double));
    }
  }
  return all;
}

std::string print(const Inspection& inspection, tensor::DType dtype) {
  std::map<std::string, WholeTensor> all = inspection.gradients;
  all["logits"] = inspection.logits;
  all["loss"] = {{}, {inspection.loss}};
  std::vector<checkpoint::SafetensorsTensor> tensors;
  std::string data;
  for (const auto& [name, tensor] : all) {
    std::vector<int64_t> shape;
    for (const tensor::Dim& dim : tensor.shape) shape.push_back(dim.size);
    tensors.push_back({name, dtype, shape});
    tensor::dispatch(dtype, [&]<typename T>(T) {
      for (const double value : tensor.values) {
        const auto stored = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(value));
        data.append(reinterpret_cast<const char*>(&stored), sizeof stored);
      }
    });
  }
  return checkpoint::print_safetensors_header(tensors, {}) + data;
}

}  // namespace kintsugi::train
