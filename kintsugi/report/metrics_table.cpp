#include "kintsugi/report/metrics_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"

namespace kintsugi::report {
namespace {

constexpr double kNotFinite = std::numeric_limits<double>::quiet_NaN();

using Values = std::vector<std::pair<std::string_view, double>>;  // by key; NaN: null

// Parses a line of numbers and nulls as written by a run, {"step":1,"loss":2.5}. Returns false for any other, which may
// still be JSON: a fast path, since the general parser takes a second per 100,000 lines.
bool read_numbers(std::string_view line, Values& values) {
  values.clear();
  const char *at = line.data(), *const end = at + line.size();
  const auto take = [&](char c) { return at != end && *at == c && (++at, true); };
  if (!take('{')) return false;
  do {
    if (!take('"')) return false;
    const char* const key = at;
    while (at != end && *at != '"' && *at != '\\' && *at >= 0x20 && *at < 0x7f) ++at;
    const std::string_view name(key, static_cast<size_t>(at - key));
    if (!take('"') || !take(':') || at == end) return false;
    double value = kNotFinite;
    if (std::string_view(at, static_cast<size_t>(end - at)).starts_with("null")) {
      at += 4;
    } else {
      const char* const digits = *at == '-' ? at + 1 : at;
      const auto is_digit = [&](const char* c) { return c < end && *c >= '0' && *c <= '9'; };
      if (!is_digit(digits) || (*digits == '0' && is_digit(digits + 1))) return false;
      const auto [after, error] = std::from_chars(at, end, value);
      if (error != std::errc() || after[-1] == '.') return false;
      at = after;
    }
    values.emplace_back(name, value);
  } while (take(','));
  return take('}') && at == end;
}

constexpr std::string_view kTexts = "samples", kExpertTokens = "expert_tokens";

// The lists of a line.
struct Lists {
  std::vector<WrittenText> texts;
  std::vector<double> expert_tokens;
};

void add_expert_load(const std::vector<double>& tokens, Values& values) {
  double sum = 0;
  for (const double t : tokens) sum += t;
  if (!(sum > 0.0)) return;
  const double mean = sum / static_cast<double>(tokens.size());
  const auto [least, most] = std::ranges::minmax(tokens);
  values.emplace_back(kMostLoaded, most / mean);
  values.emplace_back(kLeastLoaded, least / mean);
}

// Parses any object; ignores values other than numbers and the known lists. Returns false if the line is not an object.
bool read_any(std::string_view line, Values& values, Lists& lists, std::optional<base::Json>& keeps_keys) {
  values.clear();
  try {
    keeps_keys = base::Json::parse("report", "metrics.jsonl", line);
    for (const base::Json& member : keeps_keys->members()) {
      if (member.is_number() || member.is_null())
        values.emplace_back(member.key(), member.is_null() ? kNotFinite : member.number());
      if (member.key() == kExpertTokens && member.is_list()) {
        for (const base::Json& tokens : member.list()) lists.expert_tokens.push_back(tokens.number());
        add_expert_load(lists.expert_tokens, values);
      }
      if (member.key() != kTexts || !member.is_list()) continue;
      for (const base::Json& text : member.list())
        lists.texts.push_back(
            {.prompt = std::string(text.at("prompt").text()), .text = std::string(text.at("text").text())});
    }
  } catch (const base::UserError&) {
    return false;
  }
  return true;
}

std::optional<double> step_of(const Values& values) {
  constexpr double kMost = 9e15;  // exact as a double
  for (const auto& [key, value] : values)
    if (key == "step" && value >= 0 && value <= kMost && value == std::floor(value)) return value;
  return std::nullopt;
}

// Lines skipped for one reason.
struct LeftOut {
  int64_t lines = 0, first = 0;

  void add(int64_t line) {
    if (lines++ == 0) first = line;
  }
  void tell(std::string_view what_is_one, std::string_view what_are_several, std::vector<std::string>& to) const {
    if (lines == 1) to.push_back(fmt::format("line {} {}", base::group_digits(first), what_is_one));
    if (lines > 1)
      to.push_back(fmt::format("{} lines {}, the first is line {}", base::group_digits(lines), what_are_several,
                               base::group_digits(first)));
  }
};

}  // namespace

class MetricsReader::Lines {
 public:
  void add(std::string_view line) {
    ++line_;
    if (line.empty()) return;
    listed_.texts.clear();
    listed_.expert_tokens.clear();
    if (!read_numbers(line, values_) && !read_any(line, values_, listed_, json_)) return not_whole_.add(line_);
    const std::optional<double> step = step_of(values_);
    if (!step) return not_whole_.add(line_);
    if (table_.num_steps > 0 && *step <= static_cast<double>(table_.last_step)) return not_after_.add(line_);
    table_.last_step = static_cast<int64_t>(*step);
    if (table_.num_steps++ == 0) table_.first_step = table_.last_step;
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto& [key, value] = values_[i];
      if (key == "step") continue;
      Measure& measure = measure_at(i, key);
      if (!measure.steps.empty() && measure.steps.back() == *step) continue;  // duplicate key within a line
      measure.steps.push_back(*step);
      measure.values.push_back(value);
    }
    if (!listed_.expert_tokens.empty()) table_.expert_tokens = listed_.expert_tokens;
    for (WrittenText& text : listed_.texts) {
      text.step = *step;
      table_.texts.push_back(std::move(text));
    }
  }

  void finish() {
    not_whole_.tell("is incomplete: not an object with a step", "are incomplete: not objects with a step",
                    table_.left_out);
    not_after_.tell("has a step that does not follow the one before it",
                    "have a step that does not follow the one before it", table_.left_out);
  }

  const MetricsTable& table() const { return table_; }
  bool went_back() const { return not_after_.lines > 0; }

 private:
  // Lines mostly have the same keys in the same order as the previous line.
  Measure& measure_at(size_t i, std::string_view key) {
    if (i >= known_.size()) known_.resize(i + 1);
    auto& [known, measure] = known_[i];
    if (!measure || known != key) {
      known = key;
      auto found = table_.measures.find(key);
      if (found == table_.measures.end()) found = table_.measures.emplace(std::string(key), Measure{}).first;
      measure = &found->second;
    }
    return *measure;
  }

  MetricsTable table_;
  LeftOut not_whole_, not_after_;
  int64_t line_ = 0;
  Values values_;
  Lists listed_;  // of a line
  std::optional<base::Json> json_;
  std::vector<std::pair<std::string, Measure*>> known_;
};

MetricsReader::MetricsReader() : lines_(std::make_unique<Lines>()) {}

MetricsReader::~MetricsReader() = default;

void MetricsReader::add(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == text.npos) {
      begun_ += text.substr(begin);
      return;
    }
    const std::string_view line = text.substr(begin, end - begin);
    if (begun_.empty()) {
      lines_->add(line);
    } else {
      lines_->add(begun_ += line);
      begun_.clear();
    }
    begin = end + 1;
  }
}

void MetricsReader::finish() {
  if (!begun_.empty()) lines_->add(begun_);
  begun_.clear();
  lines_->finish();
}

const MetricsTable& MetricsReader::table() const {
  return lines_->table();
}

bool MetricsReader::went_back() const {
  return lines_->went_back();
}

int64_t Measure::num_not_finite() const {
  return std::ranges::count_if(values, [](double value) { return !std::isfinite(value); });
}

const Measure& MetricsTable::measure(std::string_view key) const {
  static const Measure kNone;
  const auto found = measures.find(key);
  return found == measures.end() ? kNone : found->second;
}

MetricsTable parse_metrics(std::string_view text) {
  MetricsReader reader;
  reader.add(text);
  reader.finish();
  return reader.table();
}

MetricsTable read_metrics(const std::filesystem::path& path) {
  base::require_run_file("metrics", path);
  return parse_metrics(base::read_file(path));
}

}  // namespace kintsugi::report
