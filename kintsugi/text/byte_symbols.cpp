#include "kintsugi/text/byte_symbols.h"

#include <array>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

constexpr int kNumSymbols = 0x144;  // the last is U+0143

struct Symbols {
  std::array<char32_t, 256> of_byte{};
  std::array<int, kNumSymbols> byte_of{};  // -1 if none
};

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Symbols make_symbols() {
  Symbols symbols;
  symbols.byte_of.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t symbol = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    symbols.of_byte[byte] = symbol;
    symbols.byte_of[symbol] = byte;
  }
  return symbols;
}

constexpr Symbols kSymbols = make_symbols();

constexpr std::array<uint8_t, 256> make_order() {
  std::array<uint8_t, 256> order{};
  int n = 0;
  for (const int byte : kSymbols.byte_of) {
    if (byte >= 0) order[n++] = static_cast<uint8_t>(byte);
  }
  return order;
}

constexpr std::array<uint8_t, 256> kOrder = make_order();

}  // namespace

char32_t byte_symbol(uint8_t byte) {
  return kSymbols.of_byte[byte];
}

uint8_t nth_symbol_byte(int i) {
  return kOrder.at(i);
}

std::string spell_bytes(std::string_view bytes) {
  std::string symbols;
  symbols.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_character(byte_symbol(static_cast<uint8_t>(byte)), symbols);
  return symbols;
}

bool read_symbols(std::string_view symbols, std::string& bytes) {
  while (!symbols.empty()) {
    const Character c = read_character(symbols);
    if (c.size == 0 || c.code >= kNumSymbols || kSymbols.byte_of[c.code] < 0) return false;
    bytes.push_back(static_cast<char>(kSymbols.byte_of[c.code]));
    symbols.remove_prefix(c.size);
  }
  return true;
}

}  // namespace kintsugi::text
