// The tokens of byte fallback: "<0x0A>" represents the byte 0x0A.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::text {

std::string byte_token(uint8_t byte);
// Returns nothing if the token represents no byte.
std::optional<uint8_t> byte_of_token(std::string_view token);

}  // namespace kintsugi::text
