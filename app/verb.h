// A verb of the command line: its options, its help page, and what it does. Options are checked as strictly as the keys
// of run.toml; an error is a UserError: "[generate] --length 1e3 is not an integer from 0 to 1,000". The library that
// parses is known to verb.cpp and command.cpp alone.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kintsugi/config/allowed.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kintsugi::app {

// An option of a verb, or one of its arguments. What is said of it is for the page, but for required(), excludes() and
// needs().
class Option {
 public:
  Option(CLI::Option* option, std::string value) : option_(option), default_(std::move(value)) {}

  const Option& required() const;
  const Option& excludes(const Option& other) const;
  const Option& needs(const Option& other) const;
  const Option& type_name(const char* name) const;  // of its value
  const Option& show_default() const;

 private:
  friend class Verb;

  CLI::Option* option_;
  std::string default_;
};

// `names`: "--length", "-o,--output", or "model" for an argument. What is read goes into a variable, which must live
// until then, or is given to a function.
class Verb {
 public:
  explicit Verb(CLI::App& verb) : verb_(&verb) {}

  // Not empty.
  Option text(const char* names, std::string& to, const std::string& what) const;
  Option text(const char* names, std::filesystem::path& to, const std::string& what) const;
  Option text(const char* names, std::function<void(const std::string&)> take, const std::string& what) const;
  Option texts(const char* names, std::vector<std::string>& to, const std::string& what) const;

  // One of the words.
  Option word(const char* names, std::string& to, config::OneOf words, const std::string& what) const;

  // Maybe empty.
  Option any_text(const char* names, std::string& to, const std::string& what) const;
  Option any_texts(const char* names, std::vector<std::string>& to, const std::string& what) const;
  // The same, but one for each time that the option is given.
  Option any_text_each(const char* names, std::vector<std::string>& to, const std::string& what) const;

  // In decimal digits, and in the range. T: of integers, or optional.
  template <typename T>
  Option integer(const char* names, T& to, config::Integer range, const std::string& what) const {
    return add_integer(
        names, [&to](int64_t value) { to = static_cast<T>(value); }, shown(to), range, what);
  }
  Option integer(const char* names, std::function<void(int64_t)> take, config::Integer range,
                 const std::string& what) const {
    return add_integer(names, std::move(take), "", range, what);
  }

  // In decimal digits, whole or with a fraction and an exponent, and in the range. T: double, or optional.
  template <typename T>
  Option number(const char* names, T& to, config::Number range, const std::string& what) const {
    return add_number(
        names, [&to](double value) { to = value; }, shown(to), range, what);
  }

  Option flag(const char* names, bool& to, const std::string& what) const;

  // An option with or without a text, which is "" then. `value`: how the page calls it, "[auto]".
  void flag_or_text(const char* names, std::function<void(const std::string&)> take, const char* value,
                    const std::string& what) const;

  // An option, with or without a value, that prints text(value), or text(""), and ends.
  void page(const char* names, std::function<std::string(const std::string&)> text, const std::string& what) const;

  // The end of the page.
  void footer(std::string text) const;

  // Called when the whole command line has been read; then run's function does the work of the verb.
  void when_read(std::function<void()> f) const;
  void run(std::function<void()> f) const;

  // Ends the reading: an argument is missing.
  [[noreturn]] void require(const char* name) const;

 private:
  template <typename T>
  static std::string shown(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return fmt::format("{}", value);
    } else {
      return "";
    }
  }
  Option add_integer(const char* names, std::function<void(int64_t)> take, std::string value, config::Integer range,
                     const std::string& what) const;
  Option add_number(const char* names, std::function<void(double)> take, std::string value, config::Number range,
                    const std::string& what) const;

  CLI::App* verb_;
};

// The range of a key of run.toml: range_of("train.steps"); and its words: words_of("train.dtype").
config::Integer range_of(std::string_view key);
config::OneOf words_of(std::string_view key);

// 0 to the largest seed.
inline constexpr config::Integer kSeeds = {0, std::numeric_limits<int64_t>::max()};

}  // namespace kintsugi::app
