// The integer types of token files, with Megatron's codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kintsugi::data {

enum class TokenType : uint8_t { kU8 = 1, kI8 = 2, kI16 = 3, kI32 = 4, kI64 = 5, kU16 = 8 };

size_t size_of(TokenType type);
std::string_view name_of(TokenType type);

// Returns the type of a code; nothing for codes 6 and 7 (floating-point types) and for unknown ones.
std::optional<TokenType> token_type_of(uint8_t code);

// Megatron's choice for a vocabulary of this size: 16 bits below 65,500 ids, otherwise 32.
TokenType token_type_for(int64_t vocab_size);

}  // namespace kintsugi::data
