// Text in lines of limited width.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::app {

inline constexpr int kColumns = 80;  // of what is printed to be read

// Where a line may end: at every space, or at those behind a comma.
enum class FoldAt { spaces, commas };

// `text` with line breaks for spaces, so that no line is longer than `columns` characters, but for single words; lines
// after the first begin with `indent` spaces, which count.
std::string fold(std::string_view text, int columns, int indent, FoldAt at = FoldAt::spaces);

}  // namespace kintsugi::app
