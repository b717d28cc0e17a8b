// Generated texts, for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::app {

// A prompt and its continuation, in lines of at most `columns` that start with "  > ", or "  | " after the first, at
// most `most` of them; the last says how many are left out. Escapes control characters.
std::vector<std::string> sample_lines(std::string_view prompt, std::string_view text, int columns, size_t most);

}  // namespace kintsugi::app
