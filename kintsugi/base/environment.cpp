#include "kintsugi/base/environment.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::base {

std::string_view environment_word(std::string_view where, const char* name,
                                  std::initializer_list<std::string_view> words) {
  const char* const text = std::getenv(name);
  const std::string_view word = text == nullptr ? "" : text;
  if (word.empty() || std::find(words.begin(), words.end(), word) != words.end()) return word;
  throw UserError(std::string(where), "{} is \"{}\"; there {} {}", name, one_line(word, 60),
                  words.size() == 1 ? "is" : "are", fmt::join(words, ", "));
}

}  // namespace kintsugi::base
