#include "kintsugi/train/reward.h"

#include <charconv>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/text/split_pattern.h"
#include "kintsugi/train/sample_texts.h"

namespace kintsugi::train {
namespace {

std::string_view without_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A regular expression in which {answer} is the text of `right`.
std::string with_answer(std::string_view pattern, std::string_view right) {
  constexpr std::string_view kAnswer = "{answer}";
  std::string escaped;
  for (const char c : right) {
    if (std::string_view("\\^$.|?*+()[]{}#-/").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  std::string all;
  for (size_t at; (at = pattern.find(kAnswer)) != pattern.npos; pattern.remove_prefix(at + kAnswer.size()))
    all += std::string(pattern.substr(0, at)) + escaped;
  return all + std::string(pattern);
}

bool found(std::string_view pattern, std::string_view right, const std::string& answer) {
  bool any = false;
  const text::SplitPattern expression(with_answer(pattern, right), false, "grpo.pattern");
  expression.match(answer, [&](std::string_view, bool is_match) { any |= is_match; });
  return any;
}

}  // namespace

std::optional<double> last_number(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) --end;
  if (end == 0) return std::nullopt;
  const auto inside = [&](size_t i) {  // part of a number: a digit, or a point or comma between digits
    return is_digit(text[i]) || ((text[i] == '.' || text[i] == ',') && i > 0 && is_digit(text[i - 1]));
  };
  size_t begin = end - 1;
  while (begin > 0 && inside(begin - 1)) --begin;
  if (begin > 0 && text[begin - 1] == '-') --begin;
  std::string plain;
  for (const char c : text.substr(begin, end - begin))
    if (c != ',') plain += c;
  double number = 0;
  const auto [stopped, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

Reward::Reward(const config::Grpo& grpo) : grpo_(grpo) {
  switch (config::reward(grpo_)) {
    case config::Reward::exact:
    case config::Reward::number:
      break;
    case config::Reward::pattern:
      found(grpo_.pattern, "", "");
      break;
    case config::Reward::program:
      program_.emplace(grpo_.program, grpo_.timeout_seconds);
      break;
  }
}

double Reward::of(std::string_view prompt, std::string_view right, std::string_view answer) {
  switch (config::reward(grpo_)) {
    case config::Reward::exact:
      return without_space(right) == without_space(answer) ? 1 : 0;
    case config::Reward::number: {
      const auto want = last_number(right), got = last_number(answer);
      return want && got && *want == *got ? 1 : 0;
    }
    case config::Reward::pattern:
      return found(grpo_.pattern, right, as_utf8(answer)) ? 1 : 0;
    case config::Reward::program: {
      base::JsonWriter line;
      line.object([&] {
        line.key("prompt").value(as_utf8(prompt)).key("answer").value(as_utf8(right));
        line.key("completion").value(as_utf8(answer));
      });
      return program_->ask(line.text());
    }
  }
  throw base::InternalError("train", "an unknown reward");
}

}  // namespace kintsugi::train
