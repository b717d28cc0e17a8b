// Instructions: what a rank executes, in order, with buffers as operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/mesh/layout.h"
#include "kintsugi/mesh/mesh.h"
#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/cost_class.h"
#include "kintsugi/tensor/operands.h"
#include "kintsugi/tensor/phase.h"

namespace kintsugi::program {

using BufferId = int32_t;
constexpr BufferId kNoBuffer = -1;

using tensor::Phase;

// compute: a kernel. collective: asynchronous, between ranks. copy: asynchronous, between the arena and the rank's
// file, in order. wait: for the collective or copy with the same event, whose operands it repeats.
enum class Kind : uint8_t { compute, collective, copy, wait };

// shift: each rank sends its block one position back around the ring of its group. send (one input), receive (one
// output): a message between a rank and its peer. halo: ranks exchange the rows they need (halo.h), packed one after
// another.
enum class Collective : uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, shift, halo, send, receive };
std::string_view name_of(Collective collective);

// fetch: from the file to the arena. store: from the arena to the file.
enum class Copy : uint8_t { fetch, store };
std::string_view name_of(Copy copy);

enum class Reduction : uint8_t { sum, max };
std::string_view name_of(Reduction reduction);

// The cost of an instruction on a rank. wire_bytes: sent to other ranks, or moved to or from its file.
struct Cost {
  double flops = 0;
  double memory_bytes = 0;  // bytes read and written by a kernel
  double wire_bytes = 0;
  tensor::CostClass cost_class = tensor::CostClass::other;
};

// The dim and factors along which blocks are stacked or unstacked: a part of `length` per rank along them, with halo if
// given. `exchanges`: for halo_pack, halo_place, halo_add and the collective between them, which convert the normal
// split of `length` to the one with halo or, if its blocks add, back (halo.h).
struct Cuts {
  std::string dim;
  int64_t length = 0;
  std::vector<mesh::Factor> factors = {};
  std::optional<mesh::Halo> halo = std::nullopt;
  bool exchanges = false;

  bool operator==(const Cuts&) const = default;
};

// Window operations; bit i: the i-th present operand or output is indexed by input position.
struct Windowed {
  uint32_t ins = 0, outs = 0;
};

struct Instruction {
  Kind kind = Kind::compute;
  Kind awaited = Kind::collective;                 // wait: a collective or a copy
  std::string kernel = {};                         // compute: kind of the operation
  Collective collective = Collective::all_reduce;  // collective, or a wait for one
  Copy copy = Copy::fetch;                         // copy, or a wait for one
  std::vector<BufferId> ins = {};                  // compute: those present, in the operation's order
  std::vector<BufferId> outs = {};
  tensor::Absent absent = {};  // compute: the operation's absent operands and outputs
  tensor::Attributes attributes = {};
  Windowed windowed = {};
  uint32_t accumulate = 0;  // bit i: accumulates into output i
  // Bit i: writes a part of output i (tensor::OutputPart, halo_place). begins: the first part, after which only
  // instructions that begin a part may read the buffer. completes: the rest.
  uint32_t begins = 0, completes = 0;
  // Adds a micro-batch's sum in a binary tree over micro-batches: outputs are the accumulator and the levels at which
  // sums wait. The pass `schedule` replaces it by the additions of each micro-batch.
  bool adds_in_tree = false;
  BufferId workspace = kNoBuffer;
  int layer = 0;
  Phase phase = Phase::forward;
  Cost cost = {};
  Cuts cuts = {};                        // stack, unstack, and halo exchanges
  std::vector<mesh::Factor> group = {};  // collective: the ranks along these factors
  int64_t peer = -1;                     // message: position of the peer in the group
  std::string channel = {};              // collectives and messages of one channel keep their order; a message has one
  Reduction reduction = Reduction::sum;  // reducing collective
  std::string reason = {};               // why it was inserted: "sum over data, needed whole"
  int event = -1;  // a wait matches the start with the same event and micro-batch, here or in an earlier call
  int launch = 1;  // number of instructions launched together from here; 0: launched by an earlier one
};

inline bool is_collective(const Instruction& i) {
  return i.kind == Kind::collective;
}
// Whether it starts this kind of collective.
inline bool starts(const Instruction& i, Collective collective) {
  return i.kind == Kind::collective && i.collective == collective;
}
// Whether it is, or waits for, a message, a reduction or a copy.
bool is_message(const Instruction& i);
bool reduces(const Instruction& i);
bool is_copy(const Instruction& i);

// The kernel, or the kind of collective or copy, as printed.
std::string_view name_of(const Instruction& i);

// The wait for an instruction that was started.
Instruction wait_for(Instruction started);

}  // namespace kintsugi::program
