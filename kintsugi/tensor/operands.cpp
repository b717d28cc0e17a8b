#include "kintsugi/tensor/operands.h"

#include <algorithm>
#include <bit>

namespace kintsugi::tensor {

bool OperandList::has(std::string_view name) const {
  return std::any_of(begin(), end(), [&](const Operand& o) { return o.name == name; });
}

size_t OperandList::position(std::string_view name) const {
  for (size_t i = 0; i < size_; ++i)
    if (list_[i].name == name) return i;
  throw base::InternalError("operands", "no \"{}\" among {}", name, to_string(*this));
}

std::optional<size_t> OperandList::place(std::string_view name, uint32_t absent) const {
  const size_t i = position(name);
  return is_absent(absent, i) ? std::nullopt : std::optional(place_of(i, absent));
}

const Operand& OperandList::at(size_t place, uint32_t absent) const {
  const size_t i = position_of(place, absent);
  if (i >= size_ && !has_rest()) throw base::InternalError("operands", "no {} among {}", i, to_string(*this));
  return list_[std::min(i, size_ - 1)];
}

bool OperandList::allows(size_t count, uint32_t absent) const {
  for (size_t i = 0; i < 32; ++i)
    if (is_absent(absent, i) && (i >= size_ || !list_[i].optional)) return false;
  const size_t named = size_ - (has_rest() ? 1 : 0) - static_cast<size_t>(std::popcount(absent));
  return has_rest() ? count >= named : count == named;
}

uint32_t OperandList::absent_behind(size_t count) const {
  uint32_t absent = 0;
  for (size_t i = count; i < size_; ++i)
    if (list_[i].optional) absent |= 1u << i;
  return absent;
}

bool OperandList::operator==(const OperandList& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string to_string(const OperandList& list) {
  std::string text;
  for (const Operand& o : list)
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", o.optional ? "[" : "", o.name,
                        o.optional ? "]"
                        : o.rest   ? " ..."
                                   : "");
  return text.empty() ? "none" : text;
}

size_t place_of(size_t position, uint32_t absent) {
  const uint32_t before = position < 32 ? (1u << position) - 1 : ~0u;
  return position - static_cast<size_t>(std::popcount(absent & before));
}

size_t position_of(size_t place, uint32_t absent) {
  size_t position = place;
  for (size_t i = 0; i < 32; ++i)
    if (is_absent(absent, i) && i <= position) ++position;
  return position;
}

uint32_t bits_by_position(uint32_t bits, uint32_t absent) {
  uint32_t moved = 0;
  for (size_t place = 0; place < 32; ++place)
    if ((bits >> place) & 1u) moved |= 1u << position_of(place, absent);
  return moved;
}

}  // namespace kintsugi::tensor
