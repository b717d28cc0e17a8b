#include "app/option_checks.h"

#include <charconv>
#include <functional>
#include <string>
#include <variant>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::app {
namespace {

template <typename T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// No 010, which might be read as 8.
bool begins_with_zeros(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

CLI::Option* require(const CLI::App& verb, CLI::Option* option, const config::Allowed& allowed,
                     std::function<bool(const std::string&)> fits) {
  return option->each([&verb, option, allowed, fits = std::move(fits)](const std::string& text) {
    if (fits(text) && !begins_with_zeros(text)) return;
    throw base::UserError(verb.get_name(), "{} {} is not {}", option->get_name(),
                          text.empty() ? "\"\"" : base::one_line(text, 60), config::describe(allowed));
  });
}

}  // namespace

CLI::Option* require(const CLI::App& verb, CLI::Option* option, config::Integer range) {
  return require(verb, option, config::Allowed(range), [range](const std::string& text) {
    int64_t value = 0;
    return read(text, value) && value >= range.min && value <= range.max;
  });
}

CLI::Option* require(const CLI::App& verb, CLI::Option* option, config::Number range) {
  return require(verb, option, config::Allowed(range), [range](const std::string& text) {
    double value = 0;
    return read(text, value) && range.contains(value);
  });
}

CLI::Option* require_text(const CLI::App& verb, CLI::Option* option) {
  return option->each([&verb, option](const std::string& text) {
    if (text.empty())
      throw base::UserError(verb.get_name(), "{} is empty; give it a value{}", option->get_name(),
                            option->get_required() ? "" : ", or leave it out");
  });
}

config::Integer range_of(std::string_view key) {
  return std::get<config::Integer>(config::keys()[static_cast<size_t>(config::key_index(key))].allowed);
}

}  // namespace kintsugi::app
