#include "kintsugi/text/own_json.h"

#include <algorithm>

#include "kintsugi/base/format.h"

namespace kintsugi::text {

void begin_own_json(base::JsonWriter& out, std::string_view kind) {
  out.key("format").value(kOwnFormat).key("version").value(kOwnVersion).key("kind").value(kind);
}

void check_keys(const base::Json& document, const std::vector<std::string>& more) {
  check_number(document, "version", kOwnVersion);
  std::vector<std::string> keys = {"format", "version", "kind"};
  keys.insert(keys.end(), more.begin(), more.end());
  for (const std::string& key : keys) document.at(key);
  for (const base::Json& member : document.members()) {
    if (std::find(keys.begin(), keys.end(), member.key()) != keys.end()) continue;
    member.fail("the key {} is not known; did you mean \"{}\"?", base::in_quotes(member.key()),
                base::nearest(member.key(), keys));
  }
}

void check_number(const base::Json& document, std::string_view key, int32_t number) {
  const base::Json value = document.at(key);
  if (!value.is_number() || value.shown() != std::to_string(number)) value.refuse(std::to_string(number));
}

}  // namespace kintsugi::text
