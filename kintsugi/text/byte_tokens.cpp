#include "kintsugi/text/byte_tokens.h"

#include <fmt/format.h>

#include <charconv>

namespace kintsugi::text {

std::string byte_token(uint8_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

std::optional<uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return byte;
}

}  // namespace kintsugi::text
