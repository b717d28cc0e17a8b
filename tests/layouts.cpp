#include "tests/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <tuple>

#include "kintsugi/kernels/random.h"
#include "kintsugi/train/batches.h"

namespace kintsugi::tests {

namespace {

std::string replaced_once(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace

void set_layout(config::Settings& s, const std::string& text) {
  config::Parallel& p = s.parallel;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t eq = word.find('=');
    const std::string key = word.substr(0, eq), value = eq == std::string::npos ? "" : word.substr(eq + 1);
    const int64_t n = value.empty() || !std::isdigit(static_cast<unsigned char>(value[0])) ? 1 : std::stoll(value);
    if (key == "data") p.data = n;
    if (key == "tensor") p.tensor = n;
    if (key == "context") p.context = n;
    if (key == "zero") p.zero = n;
    if (key == "shard_group") p.shard_group = n;
    if (key == "shard_context") p.shard_context = true;
    if (key == "sequence_parallel") p.sequence_parallel = true;
    if (key == "keep_gathered") p.keep_gathered = true;
    if (key == "keep_logits") p.keep_logits = value == "true";
    if (key == "method") p.context_method = value;
    if (key == "balance") p.context_balance = value;
    if (key == "wire") p.wire = value;
    if (key == "device") p.device = value;
    if (key == "offload") p.offload = value;
    if (key == "tf32") p.tf32 = true;
    if (key == "pipe") p.pipe = n;
    if (key == "space") p.space = n;
    if (key == "expert") p.expert = n;
    if (key == "space") p.space = n;
    if (key == "space_dims") p.space_dims = value;  // "width,height"
    if (key == "rule") {                            // "expert:data+tensor"
      p.rules.push_back(replaced_once(value, ":", " -> "));
      std::replace(p.rules.back().begin(), p.rules.back().end(), '+', ' ');
    }
    if (key == "allow_repeat") p.allow_repeat = true;
    if (key == "tiles") p.rules = {"height -> space.0, padded", "width -> space.1, padded"};
    if (key == "schedule") p.schedule = value;
    if (key == "chunks") p.chunks = n;
    if (key == "stages") p.stages = value;  // "1,3"
    if (key == "recompute") p.recompute = value;
    if (key == "every") p.recompute_every = n;
    if (key == "sequence") s.model.context = s.train.sequence = n;
    if (key == "gradient_dtype") s.train.gradient_dtype = value;
    if (key == "replica") s.model.batch_norm = "replica";
    if (key == "reproducible") s.train.reproducible = n;
  }
  std::replace(p.stages.begin(), p.stages.end(), ',', ' ');
  std::replace(p.space_dims.begin(), p.space_dims.end(), ',', ' ');
  p.ranks = config::ranks_of(p);
  if (p.context_balance.empty()) p.context_balance = p.context_method == "ulysses" ? "contiguous" : "zigzag";
}

void draw_batch(const config::Settings& s, int64_t step, int64_t m, samples::BatchMemory& batch) {
  const int64_t rows = s.train.micro_batch * config::data_ranks(s.parallel), seq = s.train.sequence;
  if (batch.rows() != rows) batch.resize(rows, train::parts_of(s));
  const auto key = kernels::random_key(7, "tokens");
  const auto word = [&](size_t i) {
    return kernels::random_word(key, static_cast<uint64_t>(step), static_cast<uint64_t>(m * rows * seq) + i);
  };
  const auto token = [&](uint32_t number) {
    return static_cast<int32_t>(number % static_cast<uint32_t>(s.model.vocab));
  };
  const auto fill = [&]<typename T>(std::string_view name, T, const auto& value) {
    const std::span<T> part = batch.get<T>(name);
    for (size_t i = 0; i < part.size(); ++i) part[i] = static_cast<T>(value(i, part.size()));
  };
  const auto late = [&](size_t i) { return static_cast<int64_t>(i) % seq >= seq / 2; };
  fill("tokens", int32_t{}, [&](size_t i, size_t) { return token(word(i)); });
  fill("labels", int32_t{}, [&](size_t i, size_t) { return word(i) % 11 == 0 ? -1 : token(word(i) / 7); });
  fill("starts", int32_t{}, [&](size_t i, size_t) { return late(i) ? seq / 2 : 0; });
  fill("types", int32_t{}, [&](size_t i, size_t) { return late(i) ? 1 : 0; });
  fill("classes", int32_t{}, [&](size_t i, size_t) { return static_cast<int32_t>(word(i) % 3) - 1; });
  fill("mixed_classes", int32_t{}, [&](size_t i, size_t) { return static_cast<int32_t>(word(i) / 3 % 2); });
  fill("mixed_weights", float{}, [&](size_t i, size_t) { return 0.5 + i % 2; });
  fill("weights", float{}, [&](size_t i, size_t) { return 1 + i % 3; });
  fill("pixel_classes", int32_t{}, [&](size_t i, size_t) { return static_cast<int32_t>(word(i) % 4) - 1; });
  if (s.model.image_dtype == "fp32") {
    fill("images", float{}, [&](size_t i, size_t) { return static_cast<float>(word(i) % 1000) / 500 - 1; });
  } else {
    fill("images", uint8_t{}, [&](size_t i, size_t) { return word(i) % 256; });
  }
  fill("reference", double{}, [&](size_t i, size_t) { return static_cast<double>(word(i) % 1000) / 500 - 1; });
  fill("sampled", float{}, [&](size_t i, size_t) { return -static_cast<float>(word(i) % 1000) / 100; });
  for (const std::string_view name : {"token_weights", "features", "targets"})
    fill(name, float{}, [&](size_t i, size_t size) { return static_cast<float>(word(i + size) % 1000) / 500 - 1; });
}

Record record(train::LayoutRun& run, const config::Settings& s, int64_t steps, double learning_rate) {
  Record r;
  for (int64_t i = 0; i < steps; ++i) {
    run.step(i, learning_rate, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, i, m, batch); });
    r.losses.push_back(run.loss());
    r.gradients.push_back(run.states(program::StateKind::gradient));
  }
  r.weights = run.states(program::StateKind::weight);
  return r;
}

double norm(const Numbers& all) {
  double sum = 0;
  for (const auto& [name, x] : all)
    for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

std::string difference(const Record& got, const Record& want, double tolerance) {
  for (size_t i = 0; i < want.losses.size(); ++i) {
    if (!(std::abs(got.losses[i] - want.losses[i]) <= tolerance * std::abs(want.losses[i])))
      return fmt::format("step {}: loss {} instead of {}", i, got.losses[i], want.losses[i]);
    const double scale = norm(want.gradients[i]);
    if (got.gradients[i].size() != want.gradients[i].size()) return "other gradients";
    for (const auto& [name, x] : want.gradients[i]) {
      const std::vector<double>& y = got.gradients[i].at(name);
      for (size_t j = 0; j < x.size(); ++j)
        if (!(std::abs(y[j] - x[j]) <= tolerance * scale))
          return fmt::format("step {}: element {} of {} is {} instead of {} (norm {})", i, j, name, y[j], x[j], scale);
    }
  }
  return "";
}

void PrintTo(const ModelLayout& l, std::ostream* out) {
  *out << l.model << ": " << l.parallel;
}

std::string test_name(const ModelLayout& l) {
  std::string name = l.model + ": " + l.parallel;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

Record run_layout(ModelOf model_of, const ModelLayout& l, const std::string& dtype, int64_t steps) {
  config::Settings s = model_of(l.model, dtype);
  set_layout(s, l.parallel);
  s.train.micro_batch /= config::data_ranks(s.parallel);
  train::LayoutRun run(s);
  return record(run, s, steps);
}

const Record& twin(ModelOf model_of, const std::string& model, const std::string& dtype, int64_t steps) {
  static std::map<std::tuple<ModelOf, std::string, std::string, int64_t>, Record> known;
  Record& r = known[{model_of, model, dtype, steps}];
  if (r.losses.empty()) {
    const config::Settings s = model_of(model, dtype);
    train::LayoutRun run(s);
    r = record(run, s, steps);
  }
  return r;
}

}  // namespace kintsugi::tests
