// Helpers for the rules of resolve(): deriving one value, and the texts of errors and warnings.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/keys.h"
#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// "run.toml:7: " of the key among `names` that was given with the highest precedence, or "" if none was.
std::string place(const Given& given, std::initializer_list<std::string_view> names);
std::string place(const Given& given, const std::vector<std::string>& names);

// Stores `value`; its origin is `rule` if given, else the rule of the key `name`.
template <typename T>
void store(Given& given, std::string_view name, T& member, const T& value, std::string_view rule = "") {
  const int index = key_index(name);
  member = value;
  given.origins[index] = {Origin::Kind::derived, std::string(rule.empty() ? keys()[index].rule : rule)};
}

// Stores `value` if the member still has the value `unset`.
template <typename T>
void derive(Given& given, std::string_view name, T& member, const T& unset, const T& value) {
  if (member == unset) store(given, name, member, value);
}

// As derive(), for a member without a value that means "unset".
template <typename T>
void derive_ungiven(Given& given, std::string_view name, T& member, const T& value, std::string_view rule = "") {
  if (given.origin(name).kind == Origin::Kind::standard) store(given, name, member, value, rule);
}

// "4, 6": the divisors of `n`, or multiples of `step`, on either side of `x`.
std::string divisors_around(int64_t n, int64_t x);
std::string multiples_around(int64_t x, int64_t step);

// Warns if the user set `name` to something other than its default and it is not `used`, because of `other`.
void warn_if_idle(Resolved& given, std::string_view name, bool used, std::string_view other);
// For each of those whose value is not the family's.
void warn_if_idle(Resolved& given, std::initializer_list<std::string_view> names, bool used, std::string_view other);

// Whether the samples of the model's family are tokens.
bool reads_tokens(const Given& given);

}  // namespace kintsugi::config
