// JSON that is written, in the order of the calls:
//   JsonWriter out;
//   out.object([&] { out.key("step").value(3).key("sizes").list([&] { out.value(1).value(2); }); });
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace kintsugi::base {

// A JSON string literal. UserError where the text is not UTF-8.
std::string json_string(std::string_view text);
std::string json_number(double value);  // read back exactly; "null" if it is not finite

class JsonWriter {
 public:
  // In one line without spaces; with `indent`, each value on a line of its own, indented by so many spaces per level.
  explicit JsonWriter(int indent = -1) : indent_(indent) {}

  // `f` writes the members, or the values.
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
  JsonWriter& key(std::string_view name);  // of the value that follows

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
  void separate();  // from the value before
  void begin_line();

  int indent_;
  int depth_ = 0;
  bool first_ = true;  // no value yet in this object or list
  bool after_key_ = false;
  std::string text_;
};

}  // namespace kintsugi::base
