// Iterates over the characters of a text.
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {

// Calls f(code, bytes) for each character of valid UTF-8.
template <typename F>
void each_character(std::string_view text, F&& f) {
  for (size_t at = 0; at < text.size();) {
    const Character c = read_valid_character(text.substr(at));
    f(c.code, text.substr(at, c.size));
    at += c.size;
  }
}

// Removes the characters for which f(code) is true.
template <typename F>
void remove_characters(std::string& text, F&& f) {
  std::string kept;
  kept.reserve(text.size());
  each_character(text, [&](char32_t code, std::string_view bytes) {
    if (!f(code)) kept += bytes;
  });
  text = std::move(kept);
}

}  // namespace kintsugi::text
