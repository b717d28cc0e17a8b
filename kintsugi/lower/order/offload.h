// Offloads what is not used for a while to a file: optimizer states between updates, activations between forward and
// backward (Rajbhandari et al. 2021, sections 5.1 and 5.2).
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

struct Offload {
  bool optimizer = false;
  bool activations = false;
};

// Inserts copies and waits for them in the list "train"; after `overlap`, before `memory`.
//
// Optimizer states (including master weights) become states in the file. They are fetched into the arena before the
// optimizer uses them, and stored afterwards. Elementwise work of the optimizer is done in pieces of at most 2^20
// elements or a 128th of the rank's elements, so that staging memory for three pieces suffices: while one is computed,
// the previous one is stored and the next one fetched.
//
// A buffer of at least 64 KiB that is live from a forward body to the backward or weight body of its chunk is stored
// after its last use in the former, and fetched into another buffer before its first use in the latter, one layer
// ahead; the file has a place for each micro-batch in flight. If backward follows directly, the buffers that its first
// two layers read stay in memory, and buffers that are sent to another stage always do.
void offload(program::Program& p, const graph::OpTable& operations, const Offload& what);

}  // namespace kintsugi::lower
