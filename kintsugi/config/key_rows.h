// Building blocks of the rows in the list of keys: one file per group of sections (keys_*.cpp).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kintsugi/config/keys.h"

namespace kintsugi::config {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr int64_t kMany = 1'000'000'000'000;  // steps
inline constexpr int64_t kLarge = 1'000'000'000;     // tokens per sample, samples per batch
inline constexpr int64_t kWide = 1'000'000;          // embedding size
inline constexpr int64_t kRanks = 1'000'000;         // size of a mesh axis
inline constexpr Number kAnyNumber = {-kInfinity, kInfinity};
inline constexpr Number kPositive = {0, kInfinity, true};
inline constexpr Number kNotNegative = {0, kInfinity};
inline constexpr Number kFraction = {0, 1, false, true};

// Accesses member M of section S.
template <auto S, auto M>
struct Member {
  using T = std::decay_t<decltype(std::declval<Settings>().*S.*M)>;
  using Stored = std::conditional_t<std::is_same_v<T, uint64_t>, int64_t, T>;

  static Value get(const Settings& settings) { return static_cast<Stored>(settings.*S.*M); }
  static void set(Settings& settings, const Value& value) { settings.*S.*M = static_cast<T>(std::get<Stored>(value)); }
};

struct KeyRow {
  std::string_view name;
  Allowed allowed;
  Resume resume;
  std::string_view rule;
  std::string_view help;
  std::string_view others = "";
};

template <auto S, auto M>
Key key(std::string_view section, KeyRow row) {
  return {section,  row.name,  std::move(row.allowed), &Member<S, M>::get, &Member<S, M>::set, row.resume, row.rule,
          row.help, row.others};
}

inline std::vector<std::string_view> words(std::span<const std::string_view> list) {
  return {list.begin(), list.end()};
}

inline OneOf one_of(std::span<const std::string_view> list) {
  return {words(list)};
}

// The keys of each section, in the order of its page.
std::vector<Key> model_keys();
std::vector<Key> data_keys();
std::vector<Key> train_keys();
std::vector<Key> lora_keys();
std::vector<Key> dpo_keys();
std::vector<Key> grpo_keys();
std::vector<Key> parallel_keys();
std::vector<Key> checkpoint_keys();
std::vector<Key> launch_keys();
std::vector<Key> evaluate_keys();

}  // namespace kintsugi::config
