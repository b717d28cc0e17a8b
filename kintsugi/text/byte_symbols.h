// The characters by which byte-level BPE spells bytes in its files: printable Latin-1 stands for itself, each other
// byte for a character from U+0100 on (Radford et al. 2019, section 2.2; the published GPT-2 files).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kintsugi::text {

char32_t byte_symbol(uint8_t byte);
// The byte that the i-th symbol in the order of code points stands for, i in [0, 256): GPT-2's first ids.
uint8_t nth_symbol_byte(int i);

std::string spell_bytes(std::string_view bytes);
// Appends to `bytes`; false (and `bytes` of no use) where `symbols` holds a character that stands for no byte.
bool read_symbols(std::string_view symbols, std::string& bytes);

}  // namespace kintsugi::text
