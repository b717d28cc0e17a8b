// The section [measured] of a cluster file, which `kintsugi bench` writes: a list of kernels and a list of transfers.
//
//   kernels = [
//     {kernel = "contract", type = "fp32", form = "nt", size = "4096x768x3072", bytes = 67108864, time = "181 ms"},
//     {kernel = "gelu", type = "fp32", flops = 1.2e9, bytes = 25165824, time = "3.1 ms"},
//   ]
//   transfers = [
//     {collective = "all_reduce", ranks = 2, bytes = 1048576, time = "812 us"},
//   ]
//
// size: rows x columns x depth of a product, and how many if there are several.
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/config/toml_reader.h"
#include "kintsugi/simulate/measured.h"

namespace kintsugi::simulate {

// Reads one key of the section. Throws UserError, one line that begins with `name` and a line number.
void read_measured(const config::Entry& entry, std::string_view name, Measured& to);
// The whole section; empty if nothing was measured.
std::string to_toml(const Measured& measured);

}  // namespace kintsugi::simulate
