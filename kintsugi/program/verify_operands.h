// The operands that a collective or copy requires.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kintsugi/program/byte_range.h"
#include "kintsugi/program/program.h"

namespace kintsugi::program {

// A collective has the operands, sizes, dtypes, group and peer that its kind requires, in place only if a communicator
// allows it, on every rank; a copy is between the arena and the file, and both sides have equal bytes. `ranges`:
// byte_ranges(p). InternalError that begins with where().
void verify_operands(const Program& p, const std::vector<ByteRange>& ranges, const Instruction& i,
                     const std::function<std::string()>& where);

}  // namespace kintsugi::program
