#include "app/verb.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::app {
namespace {

void refuse_empty(const CLI::App& verb, const CLI::Option& option, const std::string& value) {
  if (!value.empty()) return;
  throw base::UserError(verb.get_name(), "{} is empty; give it a value{}", option.get_name(),
                        option.get_required() ? "" : ", or leave it out");
}

// Rejects 010, which might be read as 8.
bool begins_with_zeros(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

template <typename T>
T read(const CLI::App& verb, const CLI::Option& option, const std::string& text, const config::Allowed& range,
       const std::function<bool(T)>& in_range) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && !begins_with_zeros(text) && in_range(value))
    return value;
  throw base::UserError(verb.get_name(), "{} {} is not {}", option.get_name(),
                        text.empty() ? "\"\"" : base::one_line(text, 60), config::describe(range));
}

std::string hint_for(const std::string& value, const config::OneOf& words) {
  const std::string meant = config::meant_word(value, words.words);
  return meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant);
}

// `take` also receives the option, for its name.
CLI::Option* add(CLI::App& verb, const char* names, const std::string& what,
                 const std::function<void(const CLI::Option&, const std::string&)>& take) {
  const auto option = std::make_shared<const CLI::Option*>();
  CLI::Option* added = verb.add_option_function<std::string>(
      names, [option, take](const std::string& value) { take(**option, value); }, what);
  *option = added;
  return added;
}

}  // namespace

const Option& Option::required() const {
  option_->required();
  return *this;
}

const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

const Option& Option::needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}

const Option& Option::type_name(const char* name) const {
  option_->type_name(name);
  return *this;
}

const Option& Option::show_default() const {
  option_->default_str(default_);
  return *this;
}

Option Verb::text(const char* names, std::string& to, const std::string& what) const {
  return {text(
              names, [&to](const std::string& value) { to = value; }, what)
              .option_,
          to};
}

Option Verb::text(const char* names, std::filesystem::path& to, const std::string& what) const {
  return text(
      names, [&to](const std::string& value) { to = value; }, what);
}

Option Verb::text(const char* names, std::function<void(const std::string&)> take, const std::string& what) const {
  const auto checked = [verb = verb_, take = std::move(take)](const CLI::Option& option, const std::string& value) {
    refuse_empty(*verb, option, value);
    take(value);
  };
  return {add(*verb_, names, what, checked), ""};
}

Option Verb::texts(const char* names, std::vector<std::string>& to, const std::string& what) const {
  CLI::Option* option = verb_->add_option(names, to, what);
  option->each([verb = verb_, option](const std::string& value) { refuse_empty(*verb, *option, value); });
  return {option, ""};
}

Option Verb::word(const char* names, std::string& to, config::OneOf words, const std::string& what) const {
  const auto checked = [verb = verb_, &to, words = std::move(words)](const CLI::Option& option,
                                                                     const std::string& value) {
    refuse_empty(*verb, option, value);
    if (!std::ranges::count(words.words, value))
      throw base::UserError(verb->get_name(), "{} {} is not {}{}", option.get_name(), base::one_line(value, 60),
                            config::describe(words), hint_for(value, words));
    to = value;
  };
  return {add(*verb_, names, what, checked), to};
}

Option Verb::any_text(const char* names, std::string& to, const std::string& what) const {
  return {verb_->add_option(names, to, what), ""};
}

Option Verb::any_texts(const char* names, std::vector<std::string>& to, const std::string& what) const {
  return {verb_->add_option(names, to, what), ""};
}

Option Verb::any_text_each(const char* names, std::vector<std::string>& to, const std::string& what) const {
  CLI::Option* option = verb_->add_option_function<std::vector<std::string>>(
      names, [&to](const std::vector<std::string>& values) { to = values; }, what);
  option->allow_extra_args(false)->type_name("TEXT");
  return {option, ""};
}

Option Verb::add_integer(const char* names, std::function<void(int64_t)> take, std::string value, config::Integer range,
                         const std::string& what) const {
  const auto checked = [verb = verb_, take = std::move(take), range](const CLI::Option& option,
                                                                     const std::string& text) {
    take(read<int64_t>(*verb, option, text, range, [range](int64_t n) { return n >= range.min && n <= range.max; }));
  };
  return {add(*verb_, names, what, checked)->type_name("INT"), std::move(value)};
}

Option Verb::add_number(const char* names, std::function<void(double)> take, std::string value, config::Number range,
                        const std::string& what) const {
  const auto checked = [verb = verb_, take = std::move(take), range](const CLI::Option& option,
                                                                     const std::string& text) {
    take(read<double>(*verb, option, text, range, [range](double x) { return range.contains(x); }));
  };
  return {add(*verb_, names, what, checked)->type_name("FLOAT"), std::move(value)};
}

Option Verb::flag(const char* names, bool& to, const std::string& what) const {
  return {verb_->add_flag(names, to, what), ""};
}

void Verb::page(const char* names, std::function<std::string(const std::string&)> text, const std::string& what) const {
  verb_
      ->add_option_function<std::string>(
          names, [text](const std::string& value) { throw CLI::CallForVersion(text(value), 0); }, what)
      ->expected(0, 1)
      ->trigger_on_parse()
      ->type_name("[NAME]");
}

void Verb::flag_or_text(const char* names, std::function<void(const std::string&)> take, const char* value,
                        const std::string& what) const {
  verb_->add_option_function<std::string>(names, std::move(take), what)->expected(0, 1)->type_name(value);
}

void Verb::footer(std::string text) const {
  verb_->footer(std::move(text));
}

void Verb::when_read(std::function<void()> f) const {
  verb_->parse_complete_callback(std::move(f));
}

void Verb::run(std::function<void()> f) const {
  verb_->callback(std::move(f));
}

void Verb::require(const char* name) const {
  throw CLI::RequiredError(name);
}

namespace {

const config::Allowed& allowed_of(std::string_view key) {
  return config::keys()[static_cast<size_t>(config::key_index(key))].allowed;
}

}  // namespace

config::Integer range_of(std::string_view key) {
  return std::get<config::Integer>(allowed_of(key));
}

config::OneOf words_of(std::string_view key) {
  return std::get<config::OneOf>(allowed_of(key));
}

}  // namespace kintsugi::app
