// The two kinds of error. Every message reads "[where] what, and what would be right".
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace kintsugi::base {

// What an error says: in one line, control characters and bytes that are not UTF-8 as escapes, since it may hold names
// from files; of more than 400 bytes, the beginning and the end.
std::string message_of(std::string_view where, std::string_view what);

// An error of the user's input: a key, a size, a file, a machine that is too small. One line.
class UserError : public std::runtime_error {
 public:
  template <typename... Args>
  UserError(std::string_view where, fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(message_of(where, fmt::format(format, std::forward<Args>(args)...))) {}
};

// A bug of ours: a state that no input may cause.
class InternalError : public std::logic_error {
 public:
  template <typename... Args>
  InternalError(std::string_view where, fmt::format_string<Args...> format, Args&&... args)
      : std::logic_error(
            fmt::format("[{}] internal error: {}", where, fmt::format(format, std::forward<Args>(args)...))) {}
};

// Throws InternalError if `holds` is false. The arguments are evaluated even if it holds: where one is a text that must
// be made first, `if (!holds) throw` is cheaper.
template <typename... Args>
void require(bool holds, std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) throw InternalError(where, format, std::forward<Args>(args)...);
}

// The candidate that differs from `word` by the fewest single-character edits (Levenshtein 1966), or "" if there are
// none. For messages: "unknown key, did you mean ...".
template <typename Candidates>
std::string nearest(std::string_view word, const Candidates& candidates);

// Edits (insert, delete, replace, swap of neighbours) from a to b.
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
