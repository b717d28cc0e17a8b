// For tests: a byte-level BPE small enough to work out by hand.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "kintsugi/text/byte_symbols.h"

namespace kintsugi::text {

// The 256 bytes, the merges "l o", "lo w", "Ġ low", "e r", and <|endoftext|> as the last id: 261 tokens.
inline nlohmann::json small_bpe() {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (int i = 0; i < 256; ++i) vocabulary[spell_bytes(std::string(1, static_cast<char>(nth_symbol_byte(i))))] = i;
  vocabulary["lo"] = 256;
  vocabulary["low"] = 257;
  vocabulary["Ġlow"] = 258;
  vocabulary["er"] = 259;
  const nlohmann::json end = {{"id", 260}, {"content", "<|endoftext|>"}, {"special", true}, {"normalized", false}};
  return {{"version", "1.0"},
          {"added_tokens", {end}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"l o", "lo w", "Ġ low", "e r"}}}}};
}

// The id of a byte that is a printable character.
inline int32_t id_of(char c) {
  return c - '!';
}

}  // namespace kintsugi::text
