// An entry printed by `show`: a line, or several if it exceeds the page width.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "app/fold.h"
#include "app/standard_streams.h"

namespace kintsugi::app {

inline void print_entry(std::string_view name, std::string_view value, FoldAt at = FoldAt::spaces) {
  write_out("{:<12} {}\n", name, fold(base::one_line(value, std::string_view::npos), kColumns, 13, at));
}

}  // namespace kintsugi::app
