// The families, one file each.
#pragma once

#include <span>
#include <string_view>

#include "kintsugi/models/builder.h"

namespace kintsugi::models {

Trunk gpt(Builder& builder);
Trunk llama(Builder& builder);

struct Family {
  std::string_view name;
  Trunk (*build)(Builder&);
};

// The list of all families.
std::span<const Family> families();
// UserError for a name that is none of them.
const Family& family(std::string_view name);

}  // namespace kintsugi::models
