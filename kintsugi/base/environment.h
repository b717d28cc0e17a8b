// Environment variables that select one of a few words.
#pragma once

#include <initializer_list>
#include <string_view>

namespace kintsugi::base {

// "" if it is not set. Throws UserError "[where] NAME is ..." for any other word.
std::string_view environment_word(std::string_view where, const char* name,
                                  std::initializer_list<std::string_view> words);

}  // namespace kintsugi::base
