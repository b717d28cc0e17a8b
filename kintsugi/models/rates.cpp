#include "kintsugi/models/rates.h"

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/models/freeze.h"

namespace kintsugi::models {

using graph::StateId;
using graph::StateKind;

namespace {

struct Rate {
  std::string_view pattern;
  double factor = 1.0;
  bool matched = false;
};

Rate parse_rate(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  const size_t first = text.find_first_not_of(kSpaces), last = text.find_last_not_of(kSpaces);
  const std::string_view entry = first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
  const size_t gap = entry.find_last_of(kSpaces);
  Rate rate;
  if (gap != entry.npos) {
    const std::string_view number = entry.substr(gap + 1);
    rate.pattern = entry.substr(0, entry.find_last_not_of(kSpaces, gap) + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rate.factor);
    const bool whole = error == std::errc() && end == number.data() + number.size();
    const bool one_word = rate.pattern.find_first_of(kSpaces) == rate.pattern.npos;
    if (whole && one_word && std::isfinite(rate.factor) && rate.factor >= 0) return rate;
  }
  throw base::UserError("model",
                        "train.rates: \"{}\" is not a pattern and a factor of at least 0, as in \"embedding 0.1\"",
                        base::one_line(text, 60));
}

}  // namespace

void set_rates(graph::StateTable& states, const config::Train& train) {
  if (train.rates.empty()) return;
  std::vector<Rate> rates;
  for (const std::string& text : train.rates) rates.push_back(parse_rate(text));
  std::vector<std::string> names;
  for (size_t i = 0; i < states.size(); ++i) {
    const auto id = static_cast<StateId>(i);
    if (states[id].kind != StateKind::weight) continue;
    names.push_back(states[id].name);
    bool set = false;
    for (Rate& rate : rates) {
      if (!matches_beginning(rate.pattern, states[id].name)) continue;
      rate.matched = true;
      if (!set) states.set_rate(id, rate.factor);
      set = true;
    }
  }
  for (const Rate& rate : rates)
    if (!rate.matched)
      throw base::UserError("model", "train.rates: no weight matches \"{}\"{}", base::one_line(rate.pattern, 60),
                            nearest_names(rate.pattern, names));
}

}  // namespace kintsugi::models
