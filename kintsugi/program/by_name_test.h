// For tests that build programs by hand: enumerators by their printed names.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

template <typename T>
T by_name(std::string_view name, T last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (name_of(static_cast<T>(i)) == name) return static_cast<T>(i);
  throw std::invalid_argument("no type is named " + std::string(name));
}

inline Collective collective_named(std::string_view name) {
  return by_name(name, Collective::receive);
}

// "forward.3.last" is forward work.
inline Work work_named(std::string_view name) {
  return by_name(name.substr(0, name.find('.')), Work::decode);
}

// Bodies that complement another body are named by suffix.
inline Role role_named(std::string_view name) {
  return name.ends_with(".receive") ? Role::receives : name.ends_with(".sent") ? Role::waits_for_sent : Role::work;
}

}  // namespace kintsugi::program
