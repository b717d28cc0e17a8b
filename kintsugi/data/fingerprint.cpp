#include "kintsugi/data/fingerprint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <memory>
#include <span>

namespace kintsugi::data {
namespace {

constexpr uint64_t kBlocks = 256;
constexpr uint64_t kBlockBytes = 256 << 10;

void add(XXH3_state_t* hash, const base::ReadOnlyFile& file) {
  const auto update = [&](std::span<const std::byte> bytes) { XXH3_64bits_update(hash, bytes.data(), bytes.size()); };
  if (file.size() <= kBlocks * kBlockBytes) return base::for_each_block(file, update);
  const uint64_t last = file.size() - kBlockBytes;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    // i * last / (kBlocks - 1), without overflow.
    const uint64_t begin = last / (kBlocks - 1) * i + last % (kBlocks - 1) * i / (kBlocks - 1);
    base::for_each_block(file, begin, kBlockBytes, update);
  }
}

}  // namespace

std::string fingerprint(const base::ReadOnlyFile& bin, const base::ReadOnlyFile& idx) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  const std::array<uint64_t, 2> sizes = {bin.size(), idx.size()};
  XXH3_64bits_update(hash.get(), sizes.data(), sizeof sizes);
  add(hash.get(), bin);
  add(hash.get(), idx);
  return fmt::format("{:016x}", XXH3_64bits_digest(hash.get()));
}

std::string fingerprint(const TokenFile& file) {
  return fingerprint(file.bin(), file.idx());
}

}  // namespace kintsugi::data
