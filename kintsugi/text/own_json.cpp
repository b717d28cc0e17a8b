#include "kintsugi/text/own_json.h"

#include "kintsugi/base/error.h"
#include "kintsugi/text/json_check.h"

namespace kintsugi::text {

nlohmann::ordered_json begin_own_json(std::string_view kind) {
  return {{"format", kOwnFormat}, {"version", kOwnVersion}, {"kind", kind}};
}

void check_keys(const nlohmann::json& document, const std::vector<std::string>& more, std::string_view where) {
  check_number(document, "version", kOwnVersion, where);
  std::vector<std::string> keys = {"format", "version", "kind"};
  keys.insert(keys.end(), more.begin(), more.end());
  for (const std::string& key : keys) {
    if (!document.contains(key)) throw base::UserError("tokenizer", "{}: the file lacks \"{}\"", where, key);
  }
  for (const auto& [key, value] : document.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    throw base::UserError("tokenizer", "{}: the key {} is not known; did you mean \"{}\"?", where, quote(key),
                          base::nearest(key, keys));
  }
}

void check_number(const nlohmann::json& document, const std::string& key, int32_t number, std::string_view where) {
  const auto found = document.find(key);
  if (found == document.end()) throw base::UserError("tokenizer", "{}: the file lacks \"{}\"", where, key);
  if (found->is_number_integer() && *found == number) return;
  throw base::UserError("tokenizer", "{}: \"{}\" is {}, and should be {}", where, key,
                        found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), number);
}

}  // namespace kintsugi::text
