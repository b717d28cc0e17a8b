#include "kintsugi/tensor/shape.h"

#include "kintsugi/base/error.h"

namespace kintsugi::tensor {

const std::vector<Dim>& Shape::none() {
  static const std::vector<Dim> list;
  return list;
}

Shape::Shape(std::vector<Dim> list) {
  if (list.empty()) return;
  dims_ = std::make_shared<const std::vector<Dim>>(std::move(list));
  for (size_t i = 0; i < rank(); ++i)
    for (size_t j = 0; j < i; ++j)
      if ((*this)[i].name == (*this)[j].name)
        throw base::InternalError("shape", "{} holds \"{}\" twice", to_string(*this), (*this)[i].name);
}

int Shape::find(std::string_view name) const {
  const std::vector<Dim>& list = dims();
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].name == name) return static_cast<int>(i);
  return -1;
}

int64_t Shape::size(std::string_view name) const {
  const int i = find(name);
  // Kernels call this during a step, so format the message only on error.
  if (i < 0) throw base::InternalError("shape", "{} has no dim \"{}\"", to_string(*this), name);
  return dims()[static_cast<size_t>(i)].size;
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (const Dim& d : dims()) n *= d.size;
  return n;
}

int64_t Shape::stride(size_t i) const {
  int64_t n = 1;
  for (size_t j = i + 1; j < rank(); ++j) n *= dims()[j].size;
  return n;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const Dim& d : shape) text += (text.size() > 1 ? " " : "") + d.name + ":" + std::to_string(d.size);
  return text + "]";
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find(' ', i), text.size());
    if (end > i) list.emplace_back(text.substr(i, end - i));
    i = end + 1;
  }
  return list;
}

std::string names(const Shape& shape) {
  std::string text;
  for (const Dim& dim : shape) text += (text.empty() ? "" : " ") + dim.name;
  return text;
}

}  // namespace kintsugi::tensor
