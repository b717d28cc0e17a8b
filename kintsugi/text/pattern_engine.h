// A compiled pattern: PCRE2's for the common subset, which is fast, or Oniguruma's.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace kintsugi::text {

// Finds the matches in one text, for one thread.
class PatternFinder {
 public:
  struct Match {
    size_t begin = 0, end = 0;
  };
  virtual ~PatternFinder() = default;
  // The leftmost match that begins at `from` or later; false if there is none. UserError where the engine gives up.
  virtual bool find(size_t from, Match& match) = 0;
};

// Const use is safe from several threads at once.
class PatternEngine {
 public:
  virtual ~PatternEngine() = default;
  // `text` is valid UTF-8 and outlives the finder, and so does the engine.
  virtual std::unique_ptr<PatternFinder> finder(std::string_view text) const = 0;
};

// Null where the pattern is outside the subset that both libraries read alike (common_pattern.h).
std::unique_ptr<PatternEngine> compile_common(std::string_view pattern, std::string_view where);
// The text itself.
std::unique_ptr<PatternEngine> compile_literal(std::string_view text, std::string_view where);
// UserError, with `where`, says what is wrong with the pattern.
std::unique_ptr<PatternEngine> compile_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace kintsugi::text
