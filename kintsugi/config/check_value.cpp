#include "kintsugi/config/check_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::config {
namespace {

using Type = Raw::Type;

struct Check {
  const Key& key;
  const Raw& raw;
  std::string_view place;

  [[noreturn]] void fail(std::string_view what) const {
    throw base::UserError("config", "{}: {}{}", place, key.full_name(), what);
  }
  // `extra` follows the allowed values: "; write 100".
  [[noreturn]] void wrong_type(std::string_view extra = "") const {
    const std::string shown = raw.shown();
    fail(fmt::format("{}{} is {}; it must be {}{}", shown.empty() ? "" : " = ", shown, raw.type_name(),
                     describe(key.allowed), extra));
  }
  [[noreturn]] void out_of_range() const {
    fail(fmt::format(" = {} is out of range; it must be {}", raw.shown(), describe(key.allowed)));
  }

  Value operator()(const Boolean&) const {
    if (raw.type == Type::text && (raw.text == "true" || raw.text == "false")) wrong_type(", without quotes");
    if (raw.type != Type::boolean) wrong_type();
    return raw.boolean;
  }

  Value operator()(const Integer& range) const {
    if (raw.type == Type::number) {
      const bool whole =
          std::isfinite(raw.number) && raw.number == std::floor(raw.number) && std::fabs(raw.number) < 1e15;
      if (!whole) wrong_type();
      fail(fmt::format(" = {} is a number with a point or exponent; it must be {}; write {}", to_toml(raw.number),
                       describe(key.allowed), static_cast<int64_t>(raw.number)));
    }
    if (raw.type == Type::too_large) out_of_range();
    if (raw.type != Type::integer) wrong_type();
    if (raw.integer < range.min || raw.integer > range.max) out_of_range();
    return raw.integer;
  }

  Value operator()(const Number& range) const {
    if (raw.type != Type::integer && raw.type != Type::number) wrong_type();
    const double number = raw.type == Type::integer ? static_cast<double>(raw.integer) : raw.number;
    if (!range.contains(number)) out_of_range();
    return number;
  }

  Value operator()(const Text&) const {
    if (raw.type != Type::text) wrong_type(raw.shown().empty() ? "" : ", in quotes");
    require_path(raw.text);
    if (raw.text.empty() && Value(raw.text) != key.get(Settings{}))
      fail(fmt::format(" is empty; it must be {}, or be left out", describe(key.allowed)));
    return raw.text;
  }

  // A single text is a list of one.
  Value operator()(const Texts&) const {
    if (raw.type == Type::text) return std::vector<std::string>{raw.text};
    if (raw.type != Type::list) wrong_type();
    std::vector<std::string> texts;
    for (const Raw& item : raw.items) {
      if (item.type != Type::text)
        fail(fmt::format("[{}]{}{} is {}; it must be a text", texts.size(), item.shown().empty() ? "" : " = ",
                         item.shown(), item.type_name()));
      texts.push_back(item.text);
    }
    return texts;
  }

  Value operator()(const OneOf& choice) const {
    if (raw.type != Type::text) wrong_type(raw.shown().empty() ? "" : ", in quotes");
    if (std::ranges::count(choice.words, raw.text) || Value(raw.text) == key.get(Settings{})) return raw.text;
    const std::string meant = meant_word(raw.text, choice.words);
    fail(fmt::format(" = {} is not {}{}", raw.shown(), describe(key.allowed),
                     meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant)));
  }

  // The catalog is consulted once everything has been read.
  Value operator()(const Name&) const {
    if (raw.type != Type::text) wrong_type(raw.shown().empty() ? "" : ", in quotes");
    return raw.text;
  }

  // Of a list of any length, a single number is a list of one.
  Value operator()(const Numbers& list) const {
    if (list.count == 0 && (raw.type == Type::integer || raw.type == Type::number))
      return std::vector<double>{std::get<double>((*this)(list.each))};
    if (raw.type != Type::list) wrong_type();
    if (list.count != 0 && raw.items.size() != list.count)
      fail(fmt::format(" has {} item{}; it must be {}", raw.items.size(), raw.items.size() == 1 ? "" : "s",
                       describe(key.allowed)));
    std::vector<double> numbers;
    for (size_t i = 0; i < raw.items.size(); ++i) {
      const Raw& item = raw.items[i];
      const bool is_number = item.type == Type::integer || item.type == Type::number;
      const double number = item.type == Type::integer ? static_cast<double>(item.integer) : item.number;
      if (!is_number || !list.each.contains(number))
        fail(fmt::format("[{}]{}{} is {}; it must be {}", i, item.shown().empty() ? "" : " = ", item.shown(),
                         is_number ? "out of range" : item.type_name(), describe(list.each)));
      numbers.push_back(number);
    }
    return numbers;
  }

  Value operator()(const Sources&) const {
    std::vector<DataSource> sources;
    if (raw.type == Type::text) {
      if (!raw.text.empty()) add(sources, raw.text, 1.0);
    } else if (raw.type == Type::table) {
      add_table(sources, raw);
    } else if (raw.type == Type::list) {
      for (const Raw& item : raw.items) {
        if (item.type == Type::text) {
          add(sources, item.text, 1.0);
        } else if (item.type == Type::table) {
          add_table(sources, item);
        } else {
          fail(fmt::format(" holds {}; its items must be paths, or tables with path and weight",
                           item.shown().empty() ? std::string(item.type_name()) : item.shown()));
        }
      }
    } else {
      wrong_type();
    }
    return sources;
  }

  Value operator()(const Domains&) const {
    std::vector<ValidationFile> files;
    if (raw.type == Type::text) {
      require_path(raw.text);
      if (!raw.text.empty()) files.push_back({"", raw.text});
      return files;
    }
    if (raw.type != Type::table) wrong_type(raw.shown().empty() ? "" : ", in quotes");
    for (size_t i = 0; i < raw.names.size(); ++i) files.push_back(domain(raw.names[i], raw.items[i]));
    return files;
  }

  // The name becomes part of metric names.
  ValidationFile domain(const std::string& name, const Raw& item) const {
    constexpr size_t kLongest = 40;
    const bool fits = !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    const std::string shown = base::one_line(name, 60);
    if (!fits)
      fail(fmt::format(": the name of the domain \"{}\" must be 1 to {} letters, digits, _ and -", shown, kLongest));
    if (item.type != Type::text)
      fail(fmt::format(": the domain \"{}\" is {}; it must be the path of a token file, in quotes", shown,
                       item.shown().empty() ? std::string(item.type_name()) : item.shown()));
    if (item.text.empty()) fail(fmt::format(": the domain \"{}\" has an empty path", shown));
    require_path(item.text);
    return {name, item.text};
  }

  void require_path(const std::string& text) const {
    if (text.find('\0') != std::string::npos) fail(" has a zero byte, which no path may have");
  }

  // {path = "a", weight = 0.5}, or {"a" = 0.5, "b" = 0.5}.
  void add_table(std::vector<DataSource>& sources, const Raw& table) const {
    const auto path = std::ranges::find(table.names, "path");
    const bool named = path != table.names.end() && table.items[path - table.names.begin()].type == Type::text;
    if (!named) {
      for (size_t i = 0; i < table.names.size(); ++i)
        add(sources, table.names[i], weight(table.names[i], table.items[i]));
      return;
    }
    double share = 1.0;
    for (size_t i = 0; i < table.names.size(); ++i) {
      if (table.names[i] == "weight") {
        share = weight(table.items[path - table.names.begin()].text, table.items[i]);
      } else if (table.names[i] != "path") {
        fail(fmt::format(": unknown key \"{}\" of a data source; there are path and weight",
                         base::one_line(table.names[i], 60)));
      }
    }
    add(sources, table.items[path - table.names.begin()].text, share);
  }

  double weight(std::string_view path, const Raw& item) const {
    const std::string name = base::one_line(path, 60);
    const bool is_number = item.type == Type::integer || item.type == Type::number;
    if (!is_number)
      fail(fmt::format(": the weight of \"{}\" is {}; it must be a number above 0{}", name,
                       item.shown().empty() ? std::string(item.type_name()) : item.shown(),
                       item.type == Type::table ? " (a path with a point needs quotes)" : ""));
    const double number = item.type == Type::integer ? static_cast<double>(item.integer) : item.number;
    if (!(std::isfinite(number) && number > 0))
      fail(fmt::format(": the weight of \"{}\" is {}; it must be a number above 0", name, item.shown()));
    return number;
  }

  void add(std::vector<DataSource>& sources, const std::string& path, double weight) const {
    if (path.empty()) fail(" holds an empty path");
    require_path(path);
    for (const DataSource& other : sources)
      if (other.path == path)
        fail(fmt::format(" holds \"{}\" twice; give it once, with its whole weight", base::one_line(path, 60)));
    sources.push_back({path, weight});
  }
};

}  // namespace

Value check_value(const Key& key, const Raw& raw, std::string_view place) {
  return std::visit(Check{key, raw, place}, key.allowed);
}

}  // namespace kintsugi::config
