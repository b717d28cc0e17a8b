// [parallel] context_method and context_balance as types.
#pragma once

#include <span>
#include <string_view>

#include "kintsugi/config/settings.h"

namespace kintsugi::config {

// How attention gets the tokens of other ranks: keys and values are gathered, or travel round the axis in pieces, or
// heads are exchanged for tokens.
enum class ContextMethod { gathered, ring, ulysses };
// Which tokens a rank has: one early and one late chunk, or one contiguous chunk.
enum class ContextBalance { zigzag, contiguous };

std::span<const std::string_view> context_methods();  // their names, in the order of the enumeration
std::span<const std::string_view> context_balances();

// InternalError for a word that keys.cpp does not allow.
ContextMethod context_method(const Parallel& parallel);
ContextBalance context_balance(const Parallel& parallel);  // if not given, that which suits the method
std::string_view name_of(ContextBalance balance);

}  // namespace kintsugi::config
