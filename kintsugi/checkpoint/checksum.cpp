#include "kintsugi/checkpoint/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <new>

namespace kintsugi::checkpoint {

uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
uint64_t checksum_of(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::string checksum_text(uint64_t checksum) {
  return fmt::format("{:016x}", checksum);
}

std::optional<uint64_t> checksum_from(std::string_view text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void Checksum::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}
uint64_t Checksum::value() const {
  return XXH3_64bits_digest(state_.get());
}
void Checksum::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

}  // namespace kintsugi::checkpoint
