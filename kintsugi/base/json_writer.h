// JSON writer; output follows the order of calls:
//   JsonWriter out;
//   out.object([&] { out.key("step").value(3).key("sizes").list([&] { out.value(1).value(2); }); });
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace kintsugi::base {

// A JSON string literal. Throws UserError if the text is not UTF-8.
std::string json_string(std::string_view text);
std::string json_number(double value);  // round-trips exactly; "null" if not finite

class JsonWriter {
 public:
  // One line without spaces; with `indent` >= 0, one value per line, indented by that many spaces per level.
  explicit JsonWriter(int indent = -1) : indent_(indent) {}

  // `f` writes the members or values.
  template <typename F>
  JsonWriter& object(F&& f) {
    begin('{');
    f();
    return end('}');
  }
  template <typename F>
  JsonWriter& list(F&& f) {
    begin('[');
    f();
    return end(']');
  }
  JsonWriter& key(std::string_view name);  // of the following value

  JsonWriter& value(std::string_view text) { return put(json_string(text)); }
  JsonWriter& value(const char* text) { return put(json_string(text)); }
  JsonWriter& value(double number) { return put(json_number(number)); }
  JsonWriter& value(std::integral auto number) { return put(std::to_string(number)); }
  JsonWriter& value(bool flag) { return put(flag ? "true" : "false"); }
  JsonWriter& null() { return put("null"); }

  const std::string& text() const { return text_; }

 private:
  JsonWriter& put(std::string_view value);
  void begin(char bracket);
  JsonWriter& end(char bracket);
  void separate();  // from the previous value
  void begin_line();

  int indent_;
  int depth_ = 0;
  bool first_ = true;  // no value yet in this object or list
  bool after_key_ = false;
  std::string text_;
};

}  // namespace kintsugi::base
