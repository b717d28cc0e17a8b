// A checker of HTML pages, stricter than a browser.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::tests {

// "" if `page` is a whole HTML page that needs nothing but itself: every element is closed in its order, attributes are
// quoted and stand once, entities are known; no scripts, no addresses, nothing that is loaded. Else what is wrong, and
// where.
std::string markup_fault(std::string_view page);

}  // namespace kintsugi::tests
