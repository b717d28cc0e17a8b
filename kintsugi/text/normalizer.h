// A normalizer of tokenizer.json: transforms text before it is split into words.
#pragma once

#include <memory>
#include <string>

#include "kintsugi/base/json.h"
#include "kintsugi/text/place.h"

namespace kintsugi::text {

// Const use is thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `text` is valid UTF-8 before and after.
  virtual void apply(std::string& text, Place place) const = 0;
  // Whether its output is spelled in the characters that represent bytes.
  virtual bool spells_bytes() const { return false; }
};

// Throws UserError for a type that is not among the rows of normalizer.cpp.
std::unique_ptr<Normalizer> read_normalizer(const base::Json& part);

}  // namespace kintsugi::text
