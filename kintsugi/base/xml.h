// Text within XML, as in pictures.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::base {

// `text` as the content of an element, in one line: &, < and > escaped, control characters as spaces. For an attribute
// it is not enough.
std::string escape_xml(std::string_view text);

}  // namespace kintsugi::base
