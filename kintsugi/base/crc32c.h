// CRC-32C (Castagnoli), the checksum of RFC 3720, appendix B.4.
#pragma once

#include <cstdint>
#include <string_view>

namespace kintsugi::base {

uint32_t crc32c(std::string_view bytes);

}  // namespace kintsugi::base
