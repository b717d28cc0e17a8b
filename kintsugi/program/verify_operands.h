// The operands that a collective or copy requires.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kintsugi/program/byte_range.h"
#include "kintsugi/program/program.h"

namespace kintsugi::program {

// A collective must have the operands, sizes, dtypes, group and peer that its kind requires on every rank, and be in
// place only if communicators allow it; a copy must be between arena and file, with equal bytes on both sides.
// `ranges`: byte_ranges(p). Throws an InternalError that begins with where().
void verify_operands(const Program& p, const std::vector<ByteRange>& ranges, const Instruction& i,
                     const std::function<std::string()>& where);

}  // namespace kintsugi::program
