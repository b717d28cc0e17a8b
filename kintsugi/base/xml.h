// Text in XML, such as SVG files.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::base {

// `text` as the content of an element, in one line: escapes &, < and >, and replaces control characters by spaces. Not
// sufficient for an attribute.
std::string escape_xml(std::string_view text);

}  // namespace kintsugi::base
