// A verb of the command line: its options, help page and action. Options are validated as strictly as the keys of
// run.toml; an error is a UserError: "[generate] --length 1e3 is not an integer from 0 to 1,000". Only verb.cpp and
// command.cpp use the parsing library.
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

// An option of a verb, or an argument. Its properties are for the page, except required(), excludes() and needs().
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

// `names`: "--length", "-o,--output", or "model" for an argument. Values are stored in a variable, which must live
// until then, or passed to a function.
class Verb {
 public:
  explicit Verb(CLI::App& verb) : verb_(&verb) {}

  // Not empty.
  Option text(const char* names, std::string& to, const std::string& what) const;
  Option text(const char* names, std::filesystem::path& to, const std::string& what) const;
  Option text(const char* names, std::function<void(const std::string&)> take, const std::string& what) const;
  Option texts(const char* names, std::vector<std::string>& to, const std::string& what) const;

  // One of these words.
  Option word(const char* names, std::string& to, config::OneOf words, const std::string& what) const;

  // May be empty.
  Option any_text(const char* names, std::string& to, const std::string& what) const;
  Option any_texts(const char* names, std::vector<std::string>& to, const std::string& what) const;
  // The same, repeatable.
  Option any_text_each(const char* names, std::vector<std::string>& to, const std::string& what) const;

  // In decimal digits, and in the range. T: an integer, or optional.
  template <typename T>
  Option integer(const char* names, T& to, config::Integer range, const std::string& what) const {
    return add_integer(
        names, [&to](int64_t value) { to = static_cast<T>(value); }, shown(to), range, what);
  }
  Option integer(const char* names, std::function<void(int64_t)> take, config::Integer range,
                 const std::string& what) const {
    return add_integer(names, std::move(take), "", range, what);
  }

  // In decimal digits, with an optional fraction and exponent, and in the range. T: double, or optional.
  template <typename T>
  Option number(const char* names, T& to, config::Number range, const std::string& what) const {
    return add_number(
        names, [&to](double value) { to = value; }, shown(to), range, what);
  }

  Option flag(const char* names, bool& to, const std::string& what) const;

  // An option with or without a text, which is then "". `value`: its name on the page, "[auto]".
  void flag_or_text(const char* names, std::function<void(const std::string&)> take, const char* value,
                    const std::string& what) const;

  // An option, with or without a value, that prints text(value), or text(""), and exits.
  void page(const char* names, std::function<std::string(const std::string&)> text, const std::string& what) const;

  // The end of the page.
  void footer(std::string text) const;

  // Called when the whole command line has been parsed; then run's function does the verb's work.
  void when_read(std::function<void()> f) const;
  void run(std::function<void()> f) const;

  // Ends parsing: an argument is missing.
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
