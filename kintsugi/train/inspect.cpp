#include "kintsugi/train/inspect.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/safetensors_header.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/exchange/strides.h"
#include "kintsugi/exchange/weight_map.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/train/layout_run.h"

namespace kintsugi::train {
namespace {

constexpr std::string_view kWhere = "evaluate";

// The numbers of a text, separated by spaces.
template <typename T>
std::vector<T> parse_list(const std::string& place, std::string_view text, std::string_view what) {
  std::vector<T> list;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    if (*at == ' ' || *at == '\t' || *at == '\r') {
      ++at;
      continue;
    }
    T number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || !(number >= -1 || std::is_floating_point_v<T>))
      throw base::UserError(kWhere, "{}: \"{}\" is no {}; a line holds ids separated by spaces", place,
                            base::one_line(text.substr(static_cast<size_t>(at - text.data())), 20), what);
    list.push_back(number);
    at = next;
  }
  return list;
}

template <typename T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

// "labels 4 -1 7" behind the ids of a sample.
void parse_part(const std::string& place, std::string_view part, Samples& samples) {
  part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
  const size_t space = std::min(part.find(' '), part.size());
  const std::string_view name = part.substr(0, space), rest = part.substr(space);
  const auto of_ids = [&](std::vector<int32_t>& list, std::string_view what) {
    const std::vector<int32_t> given = parse_list<int32_t>(place, rest, what);
    if (static_cast<int64_t>(given.size()) != samples.sequence)
      throw base::UserError(kWhere, "{}: {} {} for {} ids", place, given.size(), name, samples.sequence);
    append(list, given);
  };
  if (name == "labels") return of_ids(samples.labels, "label");
  if (name == "types") return of_ids(samples.types, "type");
  if (name == "class") return append(samples.classes, parse_list<int32_t>(place, rest, "class"));
  if (name == "numbers") return append(samples.numbers, parse_list<float>(place, rest, "number"));
  throw base::UserError(kWhere, "{}: \"{}\" is none of labels, types, class, numbers", place, base::one_line(name, 20));
}

void require_fit(const config::Settings& s, const Samples& samples) {
  if (samples.sequence > s.model.context)
    throw base::UserError(kWhere, "samples of {} ids are longer than the model's {} positions", samples.sequence,
                          s.model.context);
  if (samples.count % config::data_ranks(s.parallel) != 0)
    throw base::UserError(kWhere, "{} samples are not divisible among parallel.data = {}", samples.count,
                          s.parallel.data);
  const auto below = [&](const std::vector<int32_t>& list, int64_t size, std::string_view what) {
    if (list.empty()) return;
    const int32_t largest = *std::ranges::max_element(list);
    if (largest >= size)
      throw base::UserError(kWhere, "the {} {} is outside of the model's {} of {}", what, largest,
                            what == "type"    ? "types"
                            : what == "class" ? "classes"
                                              : "vocabulary",
                            size);
  };
  const config::Objective objective = config::objective(s.model);
  below(samples.ids, s.model.vocab, "id");
  below(samples.labels, s.model.vocab, "label");
  below(samples.types, std::max<int64_t>(s.model.token_types, 1), "type");
  below(samples.classes, objective == config::Objective::classes ? s.model.outputs : 2, "class");
  const bool causal = objective == config::Objective::next;
  if (causal && (*std::ranges::min_element(samples.ids) < 0 || !samples.labels.empty()))
    throw base::UserError(kWhere, "a model that predicts the next token needs samples without padding and labels");
  const auto each = [&](bool needed, size_t given, int64_t numbers, std::string_view what) {
    if ((needed || given > 0) && static_cast<int64_t>(given) != samples.count * numbers)
      throw base::UserError(kWhere, "{} {} are given for {} samples, and the model needs {} for each", given, what,
                            samples.count, numbers);
  };
  each(false, samples.labels.size(), samples.sequence, "labels");
  each(false, samples.types.size(), samples.sequence, "types");
  each(objective == config::Objective::classes, samples.classes.size(), 1, "classes");
  const bool numbers = objective == config::Objective::numbers;
  each(numbers, samples.numbers.size(), numbers ? s.model.outputs : 0, "numbers");
}

template <typename T>
void copy(const std::vector<T>& from, std::span<T> to) {
  base::require(from.size() == to.size(), kWhere, "{} values for {}", from.size(), to.size());
  std::ranges::copy(from, to.begin());
}

void fill(const config::Settings& s, const Samples& samples, samples::BatchMemory& batch) {
  const auto sequence = static_cast<size_t>(samples.sequence);
  const config::Objective objective = config::objective(s.model);
  const std::span<int32_t> labels = batch.get<int32_t>("labels"), starts = batch.get<int32_t>("starts"),
                           classes = batch.get<int32_t>("classes");
  copy(samples.ids, batch.get<int32_t>("tokens"));
  if (objective == config::Objective::next) {
    for (size_t i = 0; i < labels.size(); ++i)
      labels[i] = (i + 1) % sequence == 0 ? samples::kIgnored : samples.ids[i + 1];
  } else if (config::of_tokens(objective)) {
    copy(samples.labels.empty() ? samples.ids : samples.labels, labels);
  }
  // Padding is a document of its own.
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool padding = samples.ids[i] < 0, begins = i % sequence == 0 || samples.ids[i - 1] >= 0;
    starts[i] = !padding ? 0 : begins ? static_cast<int32_t>(i % sequence) : starts[i - 1];
  }
  // Models without token types ignore those of the samples.
  const std::span<int32_t> types = batch.get<int32_t>("types");
  if (!samples.types.empty() && !types.empty())
    copy(samples.types, types);
  else
    std::ranges::fill(types, 0);
  if (!samples.classes.empty() && !classes.empty())
    copy(samples.classes, classes);
  else
    std::ranges::fill(classes, samples::kIgnored);
  const auto counted = [](std::span<const int32_t> list) {
    return static_cast<float>(std::ranges::count_if(list, [](int32_t label) { return label >= 0; }));
  };
  const bool two = objective == config::Objective::masked_next;
  std::ranges::fill(batch.get<float>("weights"), two ? counted(labels) / std::max(counted(classes), 1.0f) : 1.0f);
  if (!samples.numbers.empty()) copy(samples.numbers, batch.get<float>("targets"));
}

// All samples in one pass, without dropout; the loss is the objective's, and that of balance if it has a weight.
config::Settings one_pass(config::Settings s, const Samples& samples, double balance_weight) {
  s.model.dropout = 0.0;
  s.train.balance_weight = balance_weight;
  if (balance_weight > 0.0) {
    if (s.model.experts == 0) throw base::UserError(kWhere, "the model has no experts whose load could be balanced");
    s.train.balance = "global";
  }
  s.train.expert_bound = 0.0;
  s.data.reset_at_document = false;
  s.train.sequence = samples.sequence;
  s.train.global_batch = samples.count;
  s.train.micro_batch = samples.count / config::data_ranks(s.parallel);
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
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto next_part = [&] {
      const size_t semicolon = std::min(line.find(';'), line.size());
      const std::string_view part = line.substr(0, semicolon);
      line.remove_prefix(std::min(semicolon + 1, line.size()));
      return part;
    };
    const std::vector<int32_t> ids = parse_list<int32_t>(place, next_part(), "token id");
    if (ids.empty()) continue;
    if (samples.count > 0 && static_cast<int64_t>(ids.size()) != samples.sequence)
      throw base::UserError(kWhere, "{}: {} ids, where the first sample has {}; all must be equally long", place,
                            ids.size(), samples.sequence);
    samples.sequence = static_cast<int64_t>(ids.size());
    ++samples.count;
    append(samples.ids, ids);
    while (!line.empty()) parse_part(place, next_part(), samples);
  }
  if (samples.sequence < 2)
    throw base::UserError(kWhere, "\"{}\" holds no sample of two ids or more, of which each predicts the next",
                          file_name);
  return samples;
}

Inspection inspect(config::Settings settings, const Samples& samples, const std::function<void(run::Executor&)>& load,
                   double balance_weight) {
  require_fit(settings, samples);
  settings = one_pass(std::move(settings), samples, balance_weight);
  LayoutRun run(settings, std::nullopt, {}, comm::thread_worlds, models::Logits::kept);
  for (int rank = 0; rank < run.ranks(); ++rank) load(run.executor(rank));
  // The balance loss uses the load of the step before, here of the same samples.
  for (int step = 0; step < (balance_weight > 0.0 ? 2 : 1); ++step)
    run.step(step, 0.0, [&](int64_t, samples::BatchMemory& batch) { fill(settings, samples, batch); });
  Inspection found;
  found.loss = run.loss();
  if (balance_weight > 0.0)
    found.balance = run.executor(0).number(std::string(models::kFurtherLoss) + "balance") / run.tokens();
  const config::Objective objective = config::objective(settings.model);
  if (config::of_tokens(objective)) found.logits.values = run.state(models::kLogits);
  if (config::of_samples(objective)) found.outputs.values = run.state(models::kSampleOutputs);
  std::map<std::string, std::vector<double>> gradients = run.states(program::StateKind::gradient);
  for (int rank = 0; rank < run.ranks(); ++rank)
    for (const program::StateInfo& s : run.executor(rank).program().states) {
      if (s.name == models::kLogits) found.logits.shape = s.whole.shape;
      if (s.name == models::kSampleOutputs) found.outputs.shape = s.whole.shape;
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
    if (tensor.weights.front().name.ends_with(models::kRouterBias)) continue;  // has no gradient
    std::vector<tensor::Dim> dims;
    for (const int64_t size : tensor.shape) dims.push_back({fmt::format("dim{}", dims.size()), size});
    WholeTensor& whole = all[tensor.name];
    whole = {tensor::Shape(dims), std::vector<double>(static_cast<size_t>(tensor.elements()))};
    for (const exchange::MappedWeight& weight : tensor.weights) {
      const std::vector<double>& values = gradients.at(weight.name).values;
      std::vector<exchange::CopyDim> copy;
      for (size_t d = 0; d < weight.shape.rank(); ++d)
        copy.push_back({weight.shape[d].size, weight.shape.stride(d), weight.stride[d]});
      const int64_t begin = weight.begin > 0 ? weight.begin * weight.whole.stride(0) : 0;
      exchange::copy_strided(exchange::simplified(copy), reinterpret_cast<const std::byte*>(values.data() + begin),
                             reinterpret_cast<std::byte*>(whole.values.data() + weight.first), sizeof(double));
    }
  }
  return all;
}

std::string print(const Inspection& inspection, tensor::DType dtype) {
  std::map<std::string, WholeTensor> all = inspection.gradients;
  if (!inspection.logits.values.empty()) all["logits"] = inspection.logits;
  if (!inspection.outputs.values.empty()) all["outputs"] = inspection.outputs;
  all["loss"] = {{}, {inspection.loss}};
  if (inspection.balance != 0.0) all["balance"] = {{}, {inspection.balance}};
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
