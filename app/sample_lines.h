// Texts that a model wrote, for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::app {

// A prompt and what follows it, in lines of at most `columns` that begin with "  > ", or "  | " after the first, at
// most `most` of them: what is left out is told in the last. Control characters are written as escapes.
std::vector<std::string> sample_lines(std::string_view prompt, std::string_view text, int columns, size_t most);

}  // namespace kintsugi::app
