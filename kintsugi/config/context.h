// [parallel] context_method and context_balance as types.
#pragma once

#include <span>
#include <string_view>

#include "kintsugi/config/settings.h"

namespace kintsugi::config {

// How attention obtains the tokens of other ranks: gathers keys and values, passes them around the axis in pieces
// (ring), or exchanges heads for tokens (Ulysses).
enum class ContextMethod { gathered, ring, ulysses };
// The tokens of a rank: one early and one late chunk, or one contiguous chunk.
enum class ContextBalance { zigzag, contiguous };

std::span<const std::string_view> context_methods();  // names, in enumerator order
std::span<const std::string_view> context_balances();

// Throws InternalError for a word that keys.cpp does not allow.
ContextMethod context_method(const Parallel& parallel);
ContextBalance context_balance(const Parallel& parallel);  // if not set, the one that suits the method
std::string_view name_of(ContextBalance balance);

}  // namespace kintsugi::config
