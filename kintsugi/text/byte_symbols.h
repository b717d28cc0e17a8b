// The characters that represent bytes in the files of byte-level BPE: printable Latin-1 represents itself, other bytes
// are characters from U+0100 (Radford et al. 2019, section 2.2; the published GPT-2 files).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kintsugi::text {

char32_t byte_symbol(uint8_t byte);
// The byte of the i-th symbol by code point, i in [0, 256): GPT-2's first ids.
uint8_t nth_symbol_byte(int i);

std::string spell_bytes(std::string_view bytes);
// Appends to `bytes`; returns false (and `bytes` is meaningless) if `symbols` contains a character that represents no
// byte.
bool read_symbols(std::string_view symbols, std::string& bytes);

}  // namespace kintsugi::text
