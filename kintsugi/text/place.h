// The position of a part of a text: determines what a tokenizer adds before it.
#pragma once

namespace kintsugi::text {

enum class Place {
  kBegin,      // at the beginning of the text
  kInside,     // after an added token, or after another piece of the text
  kContinued,  // continues what was encoded before: adds nothing before it and strips nothing
};

}  // namespace kintsugi::text
