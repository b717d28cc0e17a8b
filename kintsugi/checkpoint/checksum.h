// XXH3, 64 bits, seed 0 (xxhash): detects damage, not tampering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace kintsugi::checkpoint {

uint64_t checksum_of(std::span<const std::byte> bytes);
uint64_t checksum_of(std::string_view text);

// 16 lower-case hexadecimal digits, and the inverse; nothing for any other text.
std::string checksum_text(uint64_t checksum);
std::optional<uint64_t> checksum_from(std::string_view text);

// Incremental checksum.
class Checksum {
 public:
  Checksum();
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace kintsugi::checkpoint
