// Fingerprints of token files: whether two files hold the same, wherever they lie, without reading all of a large one.
#pragma once

#include <string>

#include "kintsugi/base/read_only_file.h"
#include "kintsugi/data/token_file.h"

namespace kintsugi::data {

// XXH3 of the sizes of both files and of their bytes, as 16 hexadecimal digits. Of a file of more than 64 MiB only 256
// blocks of 256 KiB are read, evenly spread from its first byte to its last.
std::string fingerprint(const base::ReadOnlyFile& bin, const base::ReadOnlyFile& idx);
std::string fingerprint(const TokenFile& file);

}  // namespace kintsugi::data
