// A compiled pattern: by PCRE2 for the common subset, which is fast, or by Oniguruma.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace kintsugi::text {

// Finds the matches in one text. Not thread-safe.
class PatternFinder {
 public:
  struct Match {
    size_t begin = 0, end = 0;
  };
  virtual ~PatternFinder() = default;
  // The leftmost match beginning at or after `from`; returns false if there is none. Throws UserError if the engine
  // gives up.
  virtual bool find(size_t from, Match& match) = 0;
};

// Const use is thread-safe.
class PatternEngine {
 public:
  virtual ~PatternEngine() = default;
  // `text` is valid UTF-8 and must outlive the finder, as must the engine.
  virtual std::unique_ptr<PatternFinder> finder(std::string_view text) const = 0;
};

// Null if the pattern is outside the subset common to both libraries (common_pattern.h).
std::unique_ptr<PatternEngine> compile_common(std::string_view pattern, std::string_view where);
// Matches the text literally.
std::unique_ptr<PatternEngine> compile_literal(std::string_view text, std::string_view where);
// Throws UserError, with `where`, describing the problem of an invalid pattern.
std::unique_ptr<PatternEngine> compile_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace kintsugi::text
