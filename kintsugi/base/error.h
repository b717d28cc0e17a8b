// The two kinds of error. Every message reads "[where] what, and what would be right".
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace kintsugi::base {

// Formats the message of an error as one line: escapes control characters and invalid UTF-8, since it may contain names
// from files, and shortens a message of more than 400 bytes to its beginning and end.
std::string message_of(std::string_view where, std::string_view what);

// An error in the user's input: a key, a size, a file, a machine that is too small. One line.
class UserError : public std::runtime_error {
 public:
  template <typename... Args>
  UserError(std::string_view where, fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(message_of(where, fmt::format(format, std::forward<Args>(args)...))) {}
};

// A bug in this program: a state that no input may cause.
class InternalError : public std::logic_error {
 public:
  template <typename... Args>
  InternalError(std::string_view where, fmt::format_string<Args...> format, Args&&... args)
      : std::logic_error(
            fmt::format("[{}] internal error: {}", where, fmt::format(format, std::forward<Args>(args)...))) {}
};

// Throws InternalError unless `holds`. The arguments are evaluated in any case; if one is expensive to format, `if
// (!holds) throw` is cheaper.
template <typename... Args>
void require(bool holds, std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) throw InternalError(where, format, std::forward<Args>(args)...);
}

// The candidate with the fewest single-character edits from `word` (Levenshtein 1966), or "" if there are none. For
// messages: "unknown key, did you mean ...".
template <typename Candidates>
std::string nearest(std::string_view word, const Candidates& candidates);

// Number of edits (insert, delete, replace, swap of adjacent characters) from a to b.
int edit_distance(std::string_view a, std::string_view b);

template <typename Candidates>
std::string nearest(std::string_view word, const Candidates& candidates) {
  std::string best;
  int least = 1 << 30;
  for (const auto& candidate : candidates) {
    const int distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = std::string(candidate);
    }
  }
  return best;
}

}  // namespace kintsugi::base
