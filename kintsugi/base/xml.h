// Text within XML, as in SVG files.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::base {

// `text` as the content of an element, in one line: &, < and > escaped, control characters replaced by spaces. Not
// sufficient for an attribute.
std::string escape_xml(std::string_view text);

}  // namespace kintsugi::base
