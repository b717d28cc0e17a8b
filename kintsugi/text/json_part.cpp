#include "kintsugi/text/json_part.h"

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {

std::optional<base::Json> find_part(const base::Json& object, std::string_view key) {
  auto part = object.find(key);
  if (part && part->is_null()) part.reset();
  return part;
}

bool flag(const base::Json& object, std::string_view key, bool otherwise) {
  const auto found = find_part(object, key);
  return found ? found->boolean() : otherwise;
}

char32_t one_character(const base::Json& value) {
  const Character c = read_character(value.text());
  if (c.size == 0 || static_cast<size_t>(c.size) != value.text().size()) value.refuse("one character");
  return c.code;
}

}  // namespace kintsugi::text
