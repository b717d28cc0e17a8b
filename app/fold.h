// Wraps text to a limited width.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::app {

inline constexpr int kColumns = 80;  // of what is printed to be read

// Where a line may be broken: at every space, or only at spaces after a comma.
enum class FoldAt { spaces, commas };

// `text` wrapped to lines of at most `columns` characters, except for longer words; lines after the first are indented
// by `indent` spaces, which count.
std::string fold(std::string_view text, int columns, int indent, FoldAt at = FoldAt::spaces);

}  // namespace kintsugi::app
