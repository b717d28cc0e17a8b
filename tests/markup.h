// A checker of HTML pages, stricter than a browser.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::tests {

// "" if `page` is a complete, self-contained HTML page: elements are closed in order, attributes are quoted and unique,
// entities are known; no scripts, no addresses, nothing that is loaded. Otherwise the error and its position.
std::string markup_fault(std::string_view page);

}  // namespace kintsugi::tests
