#include "kintsugi/config/value.h"

#include <fmt/format.h>

#include <type_traits>

namespace kintsugi::config {

std::string to_toml(double number) {
  std::string text = fmt::format("{}", number);
  // A TOML float has a point or an exponent.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string to_toml(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\u{:04x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

namespace {

template <typename T>
std::string list_of(const std::vector<T>& items) {
  std::string list = "[";
  for (size_t i = 0; i < items.size(); ++i) list += (i ? ", " : "") + to_toml(Value(items[i]));
  return list + "]";
}

// A single path of weight 1 is written as that path; no path as an empty text.
std::string list_of_sources(const std::vector<DataSource>& sources) {
  if (sources.empty()) return "\"\"";
  if (sources.size() == 1 && sources[0].weight == 1.0) return to_toml(std::string_view(sources[0].path));
  std::string list = "[";
  for (size_t i = 0; i < sources.size(); ++i)
    list += fmt::format("{}{{path = {}, weight = {}}}", i ? ", " : "", to_toml(std::string_view(sources[i].path)),
                        to_toml(sources[i].weight));
  return list + "]";
}

// A single unnamed file is written as its path; no file as an empty text.
std::string table_of_domains(const std::vector<ValidationFile>& files) {
  if (files.empty()) return "\"\"";
  if (files[0].domain.empty()) return to_toml(std::string_view(files[0].path));
  std::string table = "{";
  for (const ValidationFile& file : files)
    table += fmt::format("{}{} = {}", table.size() > 1 ? ", " : "", file.domain, to_toml(std::string_view(file.path)));
  return table + "}";
}

}  // namespace

std::string to_toml(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return fmt::format("{}", v);
        } else if constexpr (std::is_same_v<T, double>) {
          return to_toml(v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return to_toml(std::string_view(v));
        } else if constexpr (std::is_same_v<T, std::vector<std::string>> || std::is_same_v<T, std::vector<double>>) {
          return list_of(v);
        } else if constexpr (std::is_same_v<T, std::vector<DataSource>>) {
          return list_of_sources(v);
        } else {
          return table_of_domains(v);
        }
      },
      value);
}

}  // namespace kintsugi::config
