#include "kintsugi/models/models.h"

#include <array>

#include "kintsugi/base/error.h"

namespace kintsugi::models {

std::span<const Family> families() {
  static constexpr std::array<Family, 2> list = {{{"gpt", gpt}, {"llama", llama}}};
  return list;
}

const Family& family(std::string_view name) {
  for (const Family& f : families())
    if (f.name == name) return f;
  throw base::UserError("model", "no family \"{}\"; there are gpt, llama", name);
}

}  // namespace kintsugi::models
