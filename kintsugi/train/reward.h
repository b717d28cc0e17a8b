// Verifiable rewards of answers: by comparison with the right answer, by a regular expression, or by a program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/config/settings.h"
#include "kintsugi/train/reward_program.h"

namespace kintsugi::train {

class Reward {
 public:
  // Of [grpo] reward. Throws UserError for an invalid pattern, and for a program that cannot be started.
  explicit Reward(const config::Grpo& grpo);

  // exact: 1 if the answer is the right one, but for white space at either end, else 0. number: 1 if the last number in
  // each is the same. pattern: 1 if grpo.pattern is found in the answer, with {answer} replaced by the right one.
  // program: the number that it prints for {"prompt": ..., "answer": ..., "completion": ...}. Throws UserError if the
  // program fails.
  double of(std::string_view prompt, std::string_view right, std::string_view answer);

 private:
  const config::Grpo& grpo_;
  std::optional<RewardProgram> program_;
};

// The last number in a text: digits with an optional sign, thousands separated by commas, and an optional fraction.
std::optional<double> last_number(std::string_view text);

}  // namespace kintsugi::train
