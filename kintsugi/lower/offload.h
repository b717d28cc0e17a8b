// What is not used for a while lies in a file: optimizer state between updates, activations between forward and
// backward (Rajbhandari et al. 2021, sections 5.1 and 5.2).
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

struct Offload {
  bool optimizer = false;
  bool activations = false;
};

// Puts copies and the waits for them between the instructions of the list "train"; after `overlap`, before `memory`.
//
// Optimizer state (master weights too) is then a state in the file. Before the optimizer works on it, it is fetched
// into the arena, and stored after. What the optimizer does element by element is done in pieces, of at most 2^20
// elements or a 128th of what the rank has, so that three pieces of staging are enough: while one is worked on, the one
// before it is stored and the next one fetched.
//
// A buffer of at least 64 KiB that lives from a forward body to the backward or weight body of its chunk is stored
// after its last use in the one, and fetched into another buffer before its first use in the other, one layer ahead;
// the file has a place of it for each micro-batch under way. Where backward follows directly, what its first two layers
// read stays, and everywhere what is sent to another stage.
void offload(program::Program& p, const graph::OpTable& operations, const Offload& what);

}  // namespace kintsugi::lower
