#include "kintsugi/base/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::base {

std::string json_string(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, is_plain)) return fmt::format("\"{}\"", text);
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw UserError("json", "{} is not UTF-8, so it cannot be written as JSON", in_quotes(text));
  }
}

std::string json_number(double value) {
  return nlohmann::json(value).dump();
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  text_ += json_string(name);
  text_ += indent_ < 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::put(std::string_view value) {
  separate();
  text_ += value;
  return *this;
}

void JsonWriter::begin(char bracket) {
  separate();
  text_ += bracket;
  ++depth_;
  first_ = true;
}

JsonWriter& JsonWriter::end(char bracket) {
  --depth_;
  if (!first_) begin_line();
  text_ += bracket;
  first_ = false;
  return *this;
}

void JsonWriter::separate() {
  if (!after_key_ && depth_ > 0) {
    if (!first_) text_ += ',';
    begin_line();
  }
  after_key_ = false;
  first_ = false;
}

void JsonWriter::begin_line() {
  if (indent_ < 0) return;
  text_ += '\n';
  text_.append(static_cast<size_t>(indent_ * depth_), ' ');
}

}  // namespace kintsugi::base
