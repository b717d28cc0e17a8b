// The operands, or the outputs, of an operation by name. Each has a position, the same in the operation's row and in
// every kernel. In graphs and programs, an operation's list omits absent ones, which are given by a mask: bit i is
// position i.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/error.h"

namespace kintsugi::tensor {

struct Operand {
  std::string_view name = {};
  bool optional = false;  // may be absent
  bool rest = false;      // any number of them; only as the last of a list

  constexpr Operand() = default;
  constexpr Operand(const char* n, bool is_optional = false, bool is_rest = false)
      : name(n), optional(is_optional), rest(is_rest) {}
  bool operator==(const Operand&) const = default;
};

constexpr Operand optional(const char* name) {
  return {name, true, false};
}
constexpr Operand rest(const char* name) {
  return {name, false, true};
}

class OperandList {
 public:
  static constexpr size_t kMost = 12;

  constexpr OperandList() = default;
  constexpr OperandList(std::initializer_list<Operand> list) {
    for (const Operand& o : list) {
      if (size_ == kMost || has_rest()) throw base::InternalError("operands", "\"{}\" stands behind the last", o.name);
      list_[size_++] = o;
    }
  }

  constexpr size_t size() const { return size_; }
  constexpr const Operand& operator[](size_t i) const { return list_[i]; }
  constexpr const Operand* begin() const { return list_.data(); }
  constexpr const Operand* end() const { return list_.data() + size_; }
  constexpr bool has_rest() const { return size_ > 0 && list_[size_ - 1].rest; }

  bool has(std::string_view name) const;
  size_t position(std::string_view name) const;  // InternalError if there is none
  // The index of that name in a list of those present; nothing if it is absent. Throws InternalError if there is no
  // such name.
  std::optional<size_t> place(std::string_view name, uint32_t absent) const;
  // The name at that index in a list of those present.
  const Operand& at(size_t place, uint32_t absent) const;
  // Whether an operation may have `count` of these, with those absent.
  bool allows(size_t count, uint32_t absent) const;
  // The mask of the trailing operands that are absent if there are only `count`.
  uint32_t absent_behind(size_t count) const;

  bool operator==(const OperandList& other) const;

 private:
  std::array<Operand, kMost> list_ = {};
  size_t size_ = 0;
};

// "x, [starts], blocks ..."
std::string to_string(const OperandList& list);

// Which operands and outputs are absent.
struct Absent {
  uint32_t ins = 0, outs = 0;

  bool operator==(const Absent&) const = default;
};

inline bool is_absent(uint32_t absent, size_t position) {
  return position < 32 && ((absent >> position) & 1u);
}
// Converts the position of a present operand to its index in a list of those present, and back.
size_t place_of(size_t position, uint32_t absent);
size_t position_of(size_t place, uint32_t absent);

// Expands a list of those present to one entry per position, with `none` for those absent.
template <typename T>
std::vector<T> by_position(std::span<const T> there, uint32_t absent, const T& none) {
  std::vector<T> list;
  list.reserve(there.size() + 4);
  for (const T& t : there) {
    while (is_absent(absent, list.size())) list.push_back(none);
    list.push_back(t);
  }
  while (is_absent(absent, list.size())) list.push_back(none);
  return list;
}

// Inserts a previously absent operand into the list of those present.
template <typename T>
void insert(std::vector<T>& there, uint32_t& absent, size_t position, const T& one) {
  there.insert(there.begin() + static_cast<std::ptrdiff_t>(place_of(position, absent)), one);
  absent &= ~(1u << position);
}

// As by_position(), for bits, one per present operand.
uint32_t bits_by_position(uint32_t bits, uint32_t absent);

}  // namespace kintsugi::tensor
