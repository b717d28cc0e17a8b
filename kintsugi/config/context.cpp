#include "kintsugi/config/context.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::config {
namespace {

constexpr std::string_view kContextMethods[] = {"gathered", "ring", "ulysses"};
constexpr std::string_view kBalances[] = {"zigzag", "contiguous"};

template <typename Enum>
Enum parse(std::span<const std::string_view> names, std::string_view word) {
  const auto at = std::ranges::find(names, word);
  base::require(at != names.end(), "config", "the word \"{}\" was not checked", word);
  return static_cast<Enum>(at - names.begin());
}

}  // namespace

std::span<const std::string_view> context_methods() {
  return kContextMethods;
}

std::span<const std::string_view> context_balances() {
  return kBalances;
}

ContextMethod context_method(const Parallel& parallel) {
  return parse<ContextMethod>(kContextMethods, parallel.context_method);
}

ContextBalance context_balance(const Parallel& parallel) {
  if (!parallel.context_balance.empty()) return parse<ContextBalance>(kBalances, parallel.context_balance);
  // With Ulysses a rank sees all tokens, so its work is balanced.
  return context_method(parallel) == ContextMethod::ulysses ? ContextBalance::contiguous : ContextBalance::zigzag;
}

std::string_view name_of(ContextBalance balance) {
  return kBalances[static_cast<size_t>(balance)];
}

}  // namespace kintsugi::config
