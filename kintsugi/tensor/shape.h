// A shape: an ordered list of named dims without duplicates.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::tensor {

struct Dim {
  std::string name;
  int64_t size = 0;

  bool operator==(const Dim&) const = default;
};

// Immutable, so that copies share one list of dims.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : Shape(std::vector<Dim>(dims)) {}
  explicit Shape(std::vector<Dim> dims);  // InternalError if a name occurs twice

  const std::vector<Dim>& dims() const { return dims_ ? *dims_ : none(); }
  size_t rank() const { return dims().size(); }
  const Dim& operator[](size_t i) const { return dims()[i]; }
  auto begin() const { return dims().begin(); }
  auto end() const { return dims().end(); }

  int find(std::string_view name) const;  // position, or -1
  bool has(std::string_view name) const { return find(name) >= 0; }
  int64_t size(std::string_view name) const;  // InternalError if there is no such dim
  int64_t elements() const;                   // 1 for a scalar
  int64_t stride(size_t i) const;             // elements between neighbors along dim i, row-major

  bool operator==(const Shape& other) const { return dims_ == other.dims_ || dims() == other.dims(); }

 private:
  static const std::vector<Dim>& none();

  std::shared_ptr<const std::vector<Dim>> dims_;  // null: scalar
};

// "[batch:4 seq:8 embed:16]", "[]" for a scalar.
std::string to_string(const Shape& shape);

// The type of a value: dims and element type.
struct Type {
  Shape shape;
  DType dtype = DType::f32;

  int64_t bytes() const { return shape.elements() * size_of(dtype); }
  bool operator==(const Type&) const = default;
};

// "batch seq" -> {"batch", "seq"}
std::vector<std::string> words(std::string_view text);
// The names of its dims: "batch seq".
std::string names(const Shape& shape);

}  // namespace kintsugi::tensor
