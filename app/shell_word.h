// Words of commands that the user is told to type.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::app {

// The word as a shell takes it: in quotes where it holds a character that a shell reads otherwise.
std::string shell_word(std::string_view text);

}  // namespace kintsugi::app
