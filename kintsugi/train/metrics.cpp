#include "kintsugi/train/metrics.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::train {

std::string to_json(const Metrics& m) {
  base::JsonWriter line;
  line.object([&] {
    line.key("step").value(m.step).key("loss").value(m.loss);
    for (const NamedLoss& further : m.further) line.key("loss." + further.name).value(further.loss);
    if (m.experts) {
      line.key("busiest_expert").value(m.experts->busiest).key("expert_tokens").list([&] {
        for (const double tokens : m.experts->tokens) line.value(std::llround(tokens));
      });
      if (m.experts->dropped) line.key("dropped_tokens").value(*m.experts->dropped);
    }
    if (m.preferences)
      line.key("reward_margin").value(m.preferences->reward_margin).key("accuracy").value(m.preferences->accuracy);
    if (m.rollouts) {
      line.key("reward").value(m.rollouts->reward).key("reward_spread").value(m.rollouts->spread);
      line.key("answer_tokens").value(m.rollouts->length).key("rollout_gap").value(m.rollouts->gap);
      line.key("rollout_seconds").value(m.rollouts->seconds);
    }
    if (m.validation_reward) line.key("validation_reward").value(*m.validation_reward);
    if (m.validation_preferences) {
      line.key("validation_reward_margin").value(m.validation_preferences->reward_margin);
      line.key("validation_accuracy").value(m.validation_preferences->accuracy);
    }
    if (m.validation_loss) line.key("validation_loss").value(*m.validation_loss);
    for (const DomainLoss& d : m.domains) line.key("validation_loss." + d.domain).value(d.loss);
    if (m.top1) line.key("top1").value(*m.top1);
    if (m.top5) line.key("top5").value(*m.top5);
    if (m.rmse)
      line.key("rmse").value(*m.rmse).key("rmse_channels").list([&] {
        for (const double channel : m.rmse_channels) line.value(channel);
      });
    if (m.bits_per_byte) line.key("bits_per_byte").value(*m.bits_per_byte);
    if (m.validation_bits_per_byte) line.key("validation_bits_per_byte").value(*m.validation_bits_per_byte);
    for (const TaskScore& t : m.tasks) {
      line.key(fmt::format("task.{}.{}", t.task, t.metric)).value(t.value);
      if (t.standard_error) line.key(fmt::format("task.{}.{}_error", t.task, t.metric)).value(*t.standard_error);
    }
    line.key("learning_rate").value(m.learning_rate).key("gradient_norm").value(m.gradient_norm);
    line.key("tokens").value(m.tokens).key("tokens_per_second").value(m.tokens_per_second);
    line.key("flops_per_second").value(m.flops_per_second).key("peak_share").value(m.peak_share);
    line.key("memory_bytes").value(m.memory_bytes).key("seconds").value(m.seconds);
    if (m.stage_seconds) line.key("stage_seconds").value(*m.stage_seconds);
    if (m.drain_seconds) line.key("drain_seconds").value(*m.drain_seconds);
    if (m.planned_seconds) line.key("planned_seconds").value(*m.planned_seconds);
    if (m.scaling) line.key("loss_scale").value(m.scaling->scale).key("skipped_steps").value(m.scaling->skipped);
    if (m.samples.empty()) return;
    line.key("samples").list([&] {
      for (const SampledText& sample : m.samples)
        line.object([&] { line.key("prompt").value(sample.prompt).key("text").value(sample.text); });
    });
  });
  return line.text();
}

std::vector<report::Scalar> to_scalars(const Metrics& m) {
  std::vector<report::Scalar> scalars = {{"loss/train", m.loss},
                                         {"train/learning_rate", m.learning_rate},
                                         {"train/gradient_norm", m.gradient_norm},
                                         {"train/tokens", static_cast<double>(m.tokens)},
                                         {"speed/tokens_per_second", m.tokens_per_second},
                                         {"speed/flops_per_second", m.flops_per_second},
                                         {"speed/peak_share", m.peak_share},
                                         {"speed/seconds", m.seconds},
                                         {"memory/bytes", static_cast<double>(m.memory_bytes)}};
  for (const NamedLoss& further : m.further) scalars.push_back({"loss/" + further.name, further.loss});
  if (m.experts) {
    scalars.push_back({"experts/busiest", m.experts->busiest});
    if (m.experts->dropped) scalars.push_back({"experts/dropped_tokens", static_cast<double>(*m.experts->dropped)});
    for (size_t e = 0; e < m.experts->tokens.size(); ++e)
      scalars.push_back({fmt::format("experts/tokens_{}", e), m.experts->tokens[e]});
  }
  if (m.planned_seconds) scalars.push_back({"speed/planned_seconds", *m.planned_seconds});
  if (m.stage_seconds) scalars.push_back({"checkpoint/stage_seconds", *m.stage_seconds});
  if (m.drain_seconds) scalars.push_back({"checkpoint/drain_seconds", *m.drain_seconds});
  if (m.scaling) {
    scalars.push_back({"train/loss_scale", m.scaling->scale});
    scalars.push_back({"train/skipped_steps", static_cast<double>(m.scaling->skipped)});
  }
  if (m.validation_loss) scalars.push_back({"loss/validation", *m.validation_loss});
  if (m.bits_per_byte) scalars.push_back({"loss/bits_per_byte", *m.bits_per_byte});
  if (m.validation_bits_per_byte) scalars.push_back({"loss/validation_bits_per_byte", *m.validation_bits_per_byte});
  for (const DomainLoss& d : m.domains) scalars.push_back({"loss/validation_" + d.domain, d.loss});
  for (const TaskScore& t : m.tasks) scalars.push_back({fmt::format("tasks/{}_{}", t.task, t.metric), t.value});
  if (m.top1) scalars.push_back({"accuracy/top1", *m.top1});
  if (m.top5) scalars.push_back({"accuracy/top5", *m.top5});
  if (m.rmse) scalars.push_back({"error/rmse", *m.rmse});
  for (size_t c = 0; c < m.rmse_channels.size(); ++c)
    scalars.push_back({fmt::format("error/rmse_{}", c), m.rmse_channels[c]});
  if (m.preferences) {
    scalars.push_back({"preferences/reward_margin", m.preferences->reward_margin});
    scalars.push_back({"preferences/accuracy", m.preferences->accuracy});
  }
  if (m.rollouts) {
    scalars.push_back({"rewards/reward", m.rollouts->reward});
    scalars.push_back({"rewards/spread", m.rollouts->spread});
    scalars.push_back({"rewards/answer_tokens", m.rollouts->length});
    scalars.push_back({"rewards/rollout_gap", m.rollouts->gap});
    scalars.push_back({"speed/rollout_seconds", m.rollouts->seconds});
  }
  if (m.validation_reward) scalars.push_back({"rewards/validation", *m.validation_reward});
  if (m.validation_preferences) {
    scalars.push_back({"preferences/validation_reward_margin", m.validation_preferences->reward_margin});
    scalars.push_back({"preferences/validation_accuracy", m.validation_preferences->accuracy});
  }
  return scalars;
}

std::vector<report::EventText> to_event_texts(const Metrics& m) {
  std::vector<report::EventText> texts;
  for (size_t i = 0; i < m.samples.size(); ++i)
    texts.push_back({fmt::format("samples/{}", i + 1), m.samples[i].prompt + m.samples[i].text});
  return texts;
}

namespace {

// The step of a line; nothing if the line is incomplete.
std::optional<int64_t> step_of(std::string_view line) {
  try {
    return base::Json::parse("metrics", "metrics.jsonl", line).at("step").whole();
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// Nothing if a number is missing.
std::optional<Metrics> metrics_of(std::string_view line) {
  try {
    const auto json = base::Json::parse("metrics", "metrics.jsonl", line);
    const auto number = [&](const char* key) { return json.at(key).number(); };
    Metrics m;
    m.step = json.at("step").whole();
    m.loss = number("loss");
    if (const auto loss = json.find("validation_loss")) m.validation_loss = loss->number();
    if (const auto top1 = json.find("top1")) m.top1 = top1->number();
    if (const auto top5 = json.find("top5")) m.top5 = top5->number();
    if (const auto rmse = json.find("rmse")) m.rmse = rmse->number();
    if (const auto channels = json.find("rmse_channels"))
      for (const base::Json& channel : channels->list()) m.rmse_channels.push_back(channel.number());
    const auto preferences = [&](const std::string& before) -> std::optional<PreferenceUse> {
      if (!json.has(before + "reward_margin")) return std::nullopt;
      return PreferenceUse{.reward_margin = json.at(before + "reward_margin").number(),
                           .accuracy = json.at(before + "accuracy").number()};
    };
    if (const auto bits = json.find("bits_per_byte")) m.bits_per_byte = bits->number();
    if (const auto bits = json.find("validation_bits_per_byte")) m.validation_bits_per_byte = bits->number();
    if (json.has("reward"))
      m.rollouts = {.reward = number("reward"),
                    .spread = number("reward_spread"),
                    .length = number("answer_tokens"),
                    .gap = number("rollout_gap"),
                    .seconds = number("rollout_seconds")};
    if (const auto reward = json.find("validation_reward")) m.validation_reward = reward->number();
    m.preferences = preferences("");
    m.validation_preferences = preferences("validation_");
    m.learning_rate = number("learning_rate");
    m.gradient_norm = number("gradient_norm");
    m.tokens = json.at("tokens").whole();
    m.tokens_per_second = number("tokens_per_second");
    m.flops_per_second = number("flops_per_second");
    m.peak_share = number("peak_share");
    m.memory_bytes = json.at("memory_bytes").whole();
    m.seconds = number("seconds");
    if (const auto planned = json.find("planned_seconds")) m.planned_seconds = planned->number();
    if (const auto samples = json.find("samples"))
      for (const base::Json& sample : samples->list())
        m.samples.push_back({std::string(sample.at("prompt").text()), std::string(sample.at("text").text())});
    return m;
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<Metrics> read_step(const std::filesystem::path& path, int64_t step) {
  base::require_run_file("metrics", path);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string all = base::read_file(path);
  for (size_t begin = 0, end; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(all).substr(begin, end - begin);
    if (step_of(line) == step) return metrics_of(line);
  }
  return std::nullopt;
}

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t last_step) : path_(path) {
  base::require_run_file("metrics", path);
  std::string kept;
  if (std::filesystem::exists(path)) {
    const std::string old = base::read_file(path);
    int64_t line = 0, bad = 0, first_bad = 0, bad_before = 0;  // the last: before the end of `kept`
    size_t kept_end = 0;
    for (size_t begin = 0, end; (end = old.find('\n', begin)) != std::string::npos; begin = end + 1) {
      ++line;
      const auto step = step_of(std::string_view(old).substr(begin, end - begin));
      if (step && *step > last_step) break;
      if (!step && ++bad == 1) first_bad = line;
      if (!step) continue;
      kept_end = end + 1;
      bad_before = bad;
    }
    kept = old.substr(0, kept_end);  // with damaged lines between others: readers pass over them
    if (bad_before > 0)
      spdlog::warn("\"{}\": {} not an object with a step, the first in line {}; left as written", path.string(),
                   bad_before == 1 ? "1 line is" : base::group_digits(bad_before) + " lines are", first_bad);
    if (kept != old) base::write_file_atomically(path, kept);
  }
  file_ = std::fopen(path.c_str(), "a");
  if (!file_) throw base::UserError("metrics", "cannot write \"{}\": {}", path.string(), std::strerror(errno));
}

MetricsFile::~MetricsFile() {
  if (file_) std::fclose(file_);
}

void MetricsFile::write(const Metrics& metrics) {
  const std::string line = to_json(metrics) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw base::UserError("metrics", "cannot write \"{}\": {}", path_.string(), std::strerror(errno));
}

void MetricsFile::require_there() const {
  if (base::is_at(::fileno(file_), path_)) return;
  throw base::UserError("metrics",
                        "\"{}\" was removed or replaced while the run wrote to it: lines of its steps are lost, the "
                        "checkpoints are whole; leave a run's files in place until the run has ended",
                        path_.string());
}

}  // namespace kintsugi::train
