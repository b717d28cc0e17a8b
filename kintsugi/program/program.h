// The program of a rank: plain data, completely known before the first step. A table of bodies (straight-line lists of
// instructions over buffers at fixed offsets), and named lists of calls of bodies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/mesh/layout.h"
#include "kintsugi/program/device_order.h"
#include "kintsugi/program/instruction.h"
#include "kintsugi/tensor/shape.h"
#include "kintsugi/tensor/state.h"

namespace kintsugi::program {

using tensor::OptimizerPart;
using tensor::StateKind;

// state: persists from step to step, shared by all lists of calls. arena: used within one list of calls. file: outside
// memory, in the rank's file; copied to the arena for use.
enum class Region { state, arena, file };
std::string_view name_of(Region region);

struct Buffer {
  std::string name;
  tensor::Type type;  // local block
  Region region = Region::arena;
  // A view: the memory of another buffer from byte `shift`, of which this rank has the part at its position among the
  // ranks along `part`, times bytes().
  BufferId same_as = kNoBuffer;
  int64_t shift = 0;
  std::vector<mesh::Factor> part = {};
  // Bytes from the beginning of the region, or of its segment; a multiple of 64.
  int64_t offset = -1;
  int segment = -1;  // in the arena; see CallList::slots
  // In the file: number of consecutive places; micro-batch m uses place m % copies. 0: a state, with one place.
  int64_t copies = 0;
  // The value over all ranks, and its layout. If `ring` has factors, this is the piece of another rank, the one `turn`
  // positions further along them.
  tensor::Shape whole = {};
  mesh::Layout layout = {};
  std::vector<mesh::Factor> ring = {};
  int64_t turn = 0;
  std::string input = {};   // name under which the run fills it before a call
  std::string output = {};  // name under which the run reads it after the last call

  int64_t bytes() const { return type.bytes(); }
};

// A state and its initial value, filled in by the run. For a state within a bucket, its block (by `layout`) begins
// `first` elements after the beginning of the bucket's flat dim, of which this rank holds the part given by the
// bucket's own layout.
struct StateInfo {
  std::string name;
  BufferId buffer = kNoBuffer;   // of the state or its bucket
  BufferId reduced = kNoBuffer;  // accumulator: buffer of the sum over all ranks after a step
  StateKind kind = StateKind::weight;
  std::string weight = {};  // gradient or optimizer state: name of its weight
  OptimizerPart part = OptimizerPart::none;
  tensor::Type whole;  // of the whole state
  mesh::Layout layout = {};
  bool in_bucket = false;
  int64_t first = 0;
  int layer = 0;
  bool replica = false;  // another stage also has it, and saves it
  tensor::Init init = {};
  bool saved = true;

  bool is_master() const { return part == OptimizerPart::master; }
};

// What a stage does with its chunk of the layers. weight: weight gradients, if the schedule separates them. reduce:
// sums of accumulators over ranks, once per step. Each from `evaluate` on has its own list of calls.
enum class Work : uint8_t {
  forward,
  backward,
  weight,
  reduce,
  update,
  evaluate,
  sample,
  tasks,
  prefill,
  prefill_quarter,
  score,
  decode,
  decode_half,
  decode_quarter,
  decode_one
};
std::string_view name_of(Work work);
// Whether the work reads and writes key-value caches.
bool generates(Work work);

// work: the work itself. receives: starts the receives of its body. waits_for_sent: waits for its sends.
// waits_for_sums: waits for the gradient reductions that it has started.
enum class Role : uint8_t { work, receives, waits_for_sent, waits_for_sums };

// "forward.3" for chunk 3 of several, "forward" for a single chunk.
struct Body {
  std::string name;
  std::string position_dim = {};  // generation: the index of this dim begins at the run's position
  std::vector<Instruction> instructions;
  Work work = Work::forward;
  Role role = Role::work;
  int chunk = 0;
  int stage = 0;
  int variant_of = -1;  // the body it was made from, with the same buffers

  bool does(Work w) const { return role == Role::work && work == w; }
};

struct Call {
  int body = 0;
  int64_t micro_batch = 0;  // -1: the whole step
  int slot = 0;             // index into CallList::slots
};

// The step that a list of calls performs. sample: whole texts without caches, for the logits of one position. tasks:
// log-likelihoods per sample. prefill_quarter, decode_half, decode_quarter, decode_one: prefill and decode with fewer
// rows.
enum class Step : uint8_t {
  train,
  evaluate,
  sample,
  tasks,
  prefill,
  prefill_quarter,
  score,
  decode,
  decode_half,
  decode_quarter,
  decode_one
};
std::string_view name_of(Step step);

// The calls of one step.
//
// A value that is live across calls of a micro-batch is in a segment of the arena, with one instance per micro-batch in
// flight; a slot gives the start of the segments of a call.
struct CallList {
  Step step = Step::train;
  std::vector<Call> calls;
  int64_t micro_batches = 0;                     // train: of a list with fewer than the first one; 0: the first
  std::vector<std::vector<int64_t>> slots = {};  // [slot][segment]: bytes from the beginning of the arena
  int64_t arena_bytes = 0;                       // of its own buffers
  int64_t lower_bound_bytes = 0;                 // maximum over time of the bytes of live buffers
  DeviceOrder order = {};                        // on a device
};

// How ranks on devices exchange data: by the devices, in streams, or through host memory, which synchronizes with the
// device at each transfer.
enum class Exchange : uint8_t { in_streams, through_host };
std::string_view name_of(Exchange exchange);

// A program belongs to a pipeline stage: every rank of the stage runs it, and derives its groups, parts and indices
// from its rank.
struct Program {
  mesh::Mesh mesh;
  int stage = 0;
  std::vector<Buffer> buffers;
  std::vector<StateInfo> states;
  std::vector<Body> bodies;
  std::vector<CallList> lists;
  int64_t state_bytes = 0;
  int64_t arena_bytes = 0;  // maximum over lists
  int64_t file_bytes = 0;
  bool on_device = false;  // all memory below is device memory
  Exchange exchange = Exchange::in_streams;
  // In all groups, at any cost. On a device, memory for it follows the arena (ordered_sums.h).
  bool sums_in_rank_order = false;
  int64_t sums_bytes = 0;
  int64_t staged_bytes = 0;  // device: follows that, staging of inputs and scalars (staging.h)

  int64_t bytes() const { return state_bytes + arena_bytes + sums_bytes + staged_bytes; }  // total memory
  // Offsets are multiples of this: a CPU cache line, or the preferred alignment of a device's copies and libraries.
  int64_t alignment() const { return on_device ? 256 : 64; }
  int64_t aligned(int64_t bytes) const { return (bytes + alignment() - 1) / alignment() * alignment(); }
  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }
  Buffer& buffer(BufferId id) { return buffers[static_cast<size_t>(id)]; }
  const CallList* find(Step step) const;                // null: none
  const CallList& list(Step step) const;                // InternalError where there is none
  const StateInfo* state(std::string_view name) const;  // null: none
  BufferId root(BufferId id) const;                     // follows same_as
  int64_t begin(BufferId id, int rank) const;           // bytes from the beginning of its root, on a rank
  bool is_part(BufferId id) const;                      // its start depends on the rank
  bool overlap(BufferId a, BufferId b) const;           // may share bytes; a part counts as its whole
  double flops(Step step) const;                        // of all its calls
  // The body of which this one is a variant, or itself.
  int base(int body) const {
    return bodies[static_cast<size_t>(body)].variant_of < 0 ? body : bodies[static_cast<size_t>(body)].variant_of;
  }
  // Offset of a root buffer in its region, in a call with that slot.
  int64_t offset(BufferId root, const CallList& list, int slot) const;
  // Offset of a buffer in the rank's file.
  int64_t in_file(BufferId id, int64_t micro_batch, int rank) const;
  // The index of a dim of a buffer on a rank.
  tensor::DimIndex index(BufferId id, std::string_view dim, int rank) const;
};

// Alignment of offsets in the file.
constexpr int64_t kPage = 4096;
inline int64_t whole_pages(int64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace kintsugi::program
