// Mutations of a file's content.
#pragma once

#include <string>
#include <vector>

#include "tests/mutate/random.h"

namespace kintsugi::tests {

enum class Content { text, binary };  // JSON, TOML, plain text; anything else

// One to three mutations of `content`. `others`: contents from which parts are taken.
std::string mutate(std::string content, Content kind, const std::vector<std::string>& others, Random& random);

}  // namespace kintsugi::tests
