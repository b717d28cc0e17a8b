#include "kintsugi/data/token_type.h"

#include "kintsugi/base/error.h"

namespace kintsugi::data {

size_t size_of(TokenType type) {
  switch (type) {
    case TokenType::kU8:
    case TokenType::kI8:
      return 1;
    case TokenType::kI16:
    case TokenType::kU16:
      return 2;
    case TokenType::kI32:
      return 4;
    case TokenType::kI64:
      return 8;
  }
  throw base::InternalError("tokens", "type code {}", static_cast<int>(type));
}

std::string_view name_of(TokenType type) {
  switch (type) {
    case TokenType::kU8:
      return "uint8";
    case TokenType::kI8:
      return "int8";
    case TokenType::kI16:
      return "int16";
    case TokenType::kU16:
      return "uint16";
    case TokenType::kI32:
      return "int32";
    case TokenType::kI64:
      return "int64";
  }
  throw base::InternalError("tokens", "type code {}", static_cast<int>(type));
}

std::optional<TokenType> token_type_of(uint8_t code) {
  if ((code >= 1 && code <= 5) || code == 8) return static_cast<TokenType>(code);
  return std::nullopt;
}

TokenType token_type_for(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kU16 : TokenType::kI32;
}

}  // namespace kintsugi::data
