#include "kintsugi/tensor/attributes.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::tensor {

const Attributes::List& Attributes::none() {
  static const List list;
  return list;
}

const Attributes::Value* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : list())
    if (key == name) return &value;
  return nullptr;
}

template <typename T>
const T& Attributes::get(std::string_view name) const {
  const Value* value = find(name);
  // Kernels call this during a step, so format the message only on error.
  if (!value || !std::holds_alternative<T>(*value))
    throw base::InternalError("attributes", "no \"{}\" of the type asked for in \"{}\"", name, to_string(*this));
  return std::get<T>(*value);
}

int64_t Attributes::integer(std::string_view name) const {
  return get<int64_t>(name);
}
double Attributes::number(std::string_view name) const {
  return get<double>(name);
}
const std::string& Attributes::text(std::string_view name) const {
  return get<std::string>(name);
}

int64_t Attributes::integer_or(std::string_view name, int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}
double Attributes::number_or(std::string_view name, double otherwise) const {
  return has(name) ? number(name) : otherwise;
}
std::string Attributes::text_or(std::string_view name, std::string_view otherwise) const {
  return has(name) ? text(name) : std::string(otherwise);
}

void Attributes::set(std::string_view name, Value value) {
  List changed = list();
  const auto old = std::find_if(changed.begin(), changed.end(), [&](const auto& entry) { return entry.first == name; });
  if (old != changed.end()) {
    old->second = std::move(value);
  } else {
    changed.emplace_back(name, std::move(value));
  }
  list_ = std::make_shared<const List>(std::move(changed));
}

std::string to_string(const Attributes& attributes) {
  std::string text;
  for (const auto& [key, value] : attributes.list()) {
    text += (text.empty() ? "" : " ") + key + "=";
    if (const auto* i = std::get_if<int64_t>(&value)) text += std::to_string(*i);
    if (const auto* d = std::get_if<double>(&value)) text += fmt::format("{}", *d);
    if (const auto* s = std::get_if<std::string>(&value))
      text += s->find(' ') == std::string::npos ? *s : "\"" + *s + "\"";
  }
  return text;
}

}  // namespace kintsugi::tensor
