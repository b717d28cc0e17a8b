// Base64 (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::text {

std::string write_base64(std::string_view bytes);
// Returns nothing for invalid base64.
std::optional<std::string> read_base64(std::string_view text);

}  // namespace kintsugi::text
