// Fingerprints of token files: detect equal content, regardless of path, without reading all of a large file.
#pragma once

#include <string>

#include "kintsugi/base/read_only_file.h"
#include "kintsugi/data/token_file.h"

namespace kintsugi::data {

// XXH3 of the sizes and the bytes of both files, as 16 hexadecimal digits. For a file above 64 MiB, samples 256 blocks
// of 256 KiB, spaced evenly from the first byte to the last.
std::string fingerprint(const base::ReadOnlyFile& bin, const base::ReadOnlyFile& idx);
std::string fingerprint(const TokenFile& file);

}  // namespace kintsugi::data
