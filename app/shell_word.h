// Shell quoting for commands shown to the user.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::app {

// The word as a shell needs it: quoted if it contains special characters.
std::string shell_word(std::string_view text);

}  // namespace kintsugi::app
