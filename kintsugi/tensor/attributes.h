// The attributes of an operation: a short list of named numbers, integers or texts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kintsugi::tensor {

// Copies share one list (copy on write).
class Attributes {
 public:
  using Value = std::variant<int64_t, double, std::string>;
  using List = std::vector<std::pair<std::string, Value>>;

  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Value>> list) {
    if (list.size() > 0) list_ = std::make_shared<const List>(list);
  }

  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Throws InternalError if the attribute is absent or of another type.
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  int64_t integer_or(std::string_view name, int64_t otherwise) const;
  double number_or(std::string_view name, double otherwise) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;

  void set(std::string_view name, Value value);
  bool empty() const { return list().empty(); }
  const List& list() const { return list_ ? *list_ : none(); }
  bool operator==(const Attributes& other) const { return list_ == other.list_ || list() == other.list(); }

 private:
  const Value* find(std::string_view name) const;
  template <typename T>
  const T& get(std::string_view name) const;

  static const List& none();

  std::shared_ptr<const List> list_;  // null: empty
};

// "p=0.1 key=layer0", or "".
std::string to_string(const Attributes& attributes);

}  // namespace kintsugi::tensor
