// Instructions: what a rank does, in the order in which it does it, with buffers as operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/mesh/layout.h"
#include "kintsugi/mesh/mesh.h"
#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/operands.h"
#include "kintsugi/tensor/phase.h"

namespace kintsugi::program {

using BufferId = int32_t;
constexpr BufferId kNoBuffer = -1;

using tensor::Phase;

// compute: a kernel. collective: enqueued, between ranks. copy: enqueued, between the arena and the rank's file, done
// in order. wait: until the collective or copy of the same event is done; it has the operands of that.
enum class Kind : uint8_t { compute, collective, copy, wait };

// shift: the block of each rank goes to the rank one position back in the ring of its group. send (one input), receive
// (one output): a message between a rank and its peer. halo: each rank sends others of its group the rows that they
// need (halo.h); blocks of several rows, packed one after another.
enum class Collective : uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, shift, halo, send, receive };
std::string_view name_of(Collective collective);

// fetch: from the file to the arena. store: from the arena to the file.
enum class Copy : uint8_t { fetch, store };
std::string_view name_of(Copy copy);

enum class Reduction : uint8_t { sum, max };
std::string_view name_of(Reduction reduction);

// The cost of an instruction on a rank. wire_bytes: what it sends to others, or moves to or from its file.
struct Cost {
  double flops = 0;
  double memory_bytes = 0;  // read and written by a kernel
  double wire_bytes = 0;
};

// Along which dim blocks are stacked or unstacked, over which factors: a part of `length` for each of their ranks, with
// a halo if one is given. `exchanges`: of halo_pack, halo_place, halo_add and the collective between them, which lead
// from the normal split of `length` to the one with halo or, if its blocks add, back (halo.h).
struct Cuts {
  std::string dim;
  int64_t length = 0;
  std::vector<mesh::Factor> factors = {};
  std::optional<mesh::Halo> halo = std::nullopt;
  bool exchanges = false;

  bool operator==(const Cuts&) const = default;
};

// Of a window operation: bit i: operand or output i of those present is indexed by input position.
struct Windowed {
  uint32_t ins = 0, outs = 0;
};

struct Instruction {
  Kind kind = Kind::compute;
  Kind awaited = Kind::collective;                 // of a wait: a collective or a copy
  std::string kernel = {};                         // of compute: the kind of the operation
  Collective collective = Collective::all_reduce;  // of a collective, and of a wait for one
  Copy copy = Copy::fetch;                         // of a copy, and of a wait for one
  std::vector<BufferId> ins = {};                  // of compute: those that are present, in the operation's order
  std::vector<BufferId> outs = {};
  tensor::Absent absent = {};  // of compute: which of the operation's are absent
  tensor::Attributes attributes = {};
  Windowed windowed = {};
  uint32_t accumulate = 0;  // bit i: adds to output i
  // The sum of a micro-batch, which is added to those before it in a binary tree: outputs are the accumulator, and the
  // levels at which sums wait. `schedule` replaces it by the additions of each micro-batch.
  bool adds_in_tree = false;
  BufferId workspace = kNoBuffer;
  int layer = 0;
  Phase phase = Phase::forward;
  Cost cost = {};
  Cuts cuts = {};                        // of stack, unstack, and all that exchanges halos
  std::vector<mesh::Factor> group = {};  // of a collective: the ranks along these factors
  int64_t peer = -1;                     // of a message: the position of the other rank in the group
  std::string channel = {};              // of a message: messages of one channel keep their order
  Reduction reduction = Reduction::sum;  // of a collective that reduces
  std::string reason = {};               // why it is there: "sum over data, needed whole"
  int event = -1;  // a wait is for the start of the same event in the same micro-batch, here or in an earlier call
  int launch = 1;  // of compute on a device: instructions that one launch performs from here on; 0: an earlier one does
};

inline bool is_collective(const Instruction& i) {
  return i.kind == Kind::collective;
}
// Starts this kind of collective.
inline bool starts(const Instruction& i, Collective collective) {
  return i.kind == Kind::collective && i.collective == collective;
}
// Is a message, reduces, or is a copy; or waits for one of these.
bool is_message(const Instruction& i);
bool reduces(const Instruction& i);
bool is_copy(const Instruction& i);

// The kernel, or the kind of collective or copy: its name in prints.
std::string_view name_of(const Instruction& i);

// The wait for what an instruction has started.
Instruction wait_for(Instruction started);

}  // namespace kintsugi::program
