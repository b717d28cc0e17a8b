// The program of a rank: plain data, completely known before the first step. A table of bodies (straight lists of
// instructions over buffers at fixed offsets) and, by name, lists of calls of bodies.
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

// state: kept from step to step, shared by all lists of calls. arena: of one list of calls. file: outside of memory,
// in a file of the rank; copied to the arena for use.
enum class Region { state, arena, file };
std::string_view name_of(Region region);

struct Buffer {
  std::string name;
  tensor::Type type;  // the local block
  Region region = Region::arena;
  // A view: memory of another buffer, from `shift` bytes after its beginning, and there the part of this rank: its
  // position among the ranks along `part`, times bytes().
  BufferId same_as = kNoBuffer;
  int64_t shift = 0;
  std::vector<mesh::Factor> part = {};
  // Bytes from the beginning of the region, or of its segment, a multiple of 64.
  int64_t offset = -1;
  int segment = -1;  // of the arena, see CallList::slots
  // Of the file: consecutive places, of which micro-batch m uses that of m % copies; 0: a state, which has one.
  int64_t copies = 0;
  // The value on all ranks, and its layout. If `ring` names factors, this is the piece of another rank: of the one
  // `turn` positions further along them.
  tensor::Shape whole = {};
  mesh::Layout layout = {};
  std::vector<mesh::Factor> ring = {};
  int64_t turn = 0;
  std::string input = {};   // the name under which the run fills it before a call
  std::string output = {};  // the name under which the run reads it after the last call

  int64_t bytes() const { return type.bytes(); }
};

// A state, and its initial values, for the run to fill in. If a state is one of several in a bucket, its block (that
// of `layout`) begins `first` elements after the beginning of the bucket's flat dim, of which this rank has the part
// given by the bucket's own layout.
struct StateInfo {
  std::string name;
  BufferId buffer = kNoBuffer;   // the state's, or that of its bucket
  BufferId reduced = kNoBuffer;  // of an accumulator: the buffer with the sum over all ranks after a step
  StateKind kind = StateKind::weight;
  std::string weight = {};  // of a gradient or an optimizer's state: the name of the weight that it belongs to
  OptimizerPart part = OptimizerPart::none;
  tensor::Type whole;  // the whole state
  mesh::Layout layout = {};
  bool in_bucket = false;
  int64_t first = 0;
  int layer = 0;
  bool replica = false;  // another stage has it too, and saves it
  tensor::Init init = {};
  bool saved = true;

  bool is_master() const { return part == OptimizerPart::master; }
};

// What a stage does with its chunk of the layers. weight: the gradients of weights, if a schedule separates them.
// reduce: the sums of accumulators over ranks, once a step. The last four are calls of their own lists.
enum class Work : uint8_t { forward, backward, weight, reduce, update, evaluate, sample, prefill, score, decode };
std::string_view name_of(Work work);

// work: the work itself. receives: starts the receives of the body that it belongs to. waits_for_sent: waits for its
// sends. waits_for_sums: for the sums of gradients that it has started.
enum class Role : uint8_t { work, receives, waits_for_sent, waits_for_sums };

// "forward.3" with the chunk 3 of several, "forward" with all of them.
struct Body {
  std::string name;
  std::string position_dim = {};  // generation: the index of this dim begins at the run's position
  std::vector<Instruction> instructions;
  Work work = Work::forward;
  Role role = Role::work;
  int chunk = 0;
  int stage = 0;
  int variant_of = -1;  // the body that it was made from, with the same buffers

  bool does(Work w) const { return role == Role::work && work == w; }
};

struct Call {
  int body = 0;
  int64_t micro_batch = 0;  // -1: of the step as a whole
  int slot = 0;             // in CallList::slots
};

// The step that a list of calls performs. sample: texts are read whole, for the logits of one position, without caches.
enum class Step : uint8_t { train, evaluate, sample, prefill, score, decode };
std::string_view name_of(Step step);

// The calls of one step.
//
// A value that is live from one call to another of the same micro-batch is in a segment of the arena, of which there
// is one for each micro-batch under way; a slot says where the segments of a call begin.
struct CallList {
  Step step = Step::train;
  std::vector<Call> calls;
  std::vector<std::vector<int64_t>> slots = {};  // by slot, by segment: bytes from the beginning of the arena
  int64_t arena_bytes = 0;                       // of its own buffers
  int64_t lower_bound_bytes = 0;                 // the largest sum of buffers that are live at one time
  DeviceOrder order = {};                        // on a device
};

// How ranks on devices exchange data: the devices do, in streams; or through memory of the host, which waits for the
// device at each transfer.
enum class Exchange : uint8_t { in_streams, through_host };
std::string_view name_of(Exchange exchange);

// A program belongs to a pipeline stage: every rank of the stage runs it, and its groups, parts and indices follow
// from the rank.
struct Program {
  mesh::Mesh mesh;
  int stage = 0;
  std::vector<Buffer> buffers;
  std::vector<StateInfo> states;
  std::vector<Body> bodies;
  std::vector<CallList> lists;
  int64_t state_bytes = 0;
  int64_t arena_bytes = 0;  // the largest of the lists
  int64_t file_bytes = 0;
  bool on_device = false;  // all of this is memory of a device
  Exchange exchange = Exchange::in_streams;
  // Of all groups, whatever that costs. Of a device: behind the arena, what that takes (ordered_sums.h).
  bool sums_in_rank_order = false;
  int64_t sums_bytes = 0;
  int64_t staged_bytes = 0;  // of a device: behind that, where the numbers and inputs of a step come (staging.h)

  int64_t bytes() const { return state_bytes + arena_bytes + sums_bytes + staged_bytes; }  // of memory
  // Offsets are multiples of this: a line of a processor's cache, or what a device's copies and libraries like best.
  int64_t alignment() const { return on_device ? 256 : 64; }
  int64_t aligned(int64_t bytes) const { return (bytes + alignment() - 1) / alignment() * alignment(); }
  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }
  Buffer& buffer(BufferId id) { return buffers[static_cast<size_t>(id)]; }
  const CallList* find(Step step) const;                // or null
  const CallList& list(Step step) const;                // InternalError where there is none
  const StateInfo* state(std::string_view name) const;  // or null
  BufferId root(BufferId id) const;                     // follows same_as
  int64_t begin(BufferId id, int rank) const;           // bytes from the beginning of its root, on a rank
  bool is_part(BufferId id) const;                      // its beginning depends on the rank
  bool overlap(BufferId a, BufferId b) const;           // may share bytes; a part counts as its whole
  double flops(Step step) const;                        // of all its calls
  // The body of which this one is a variant, or itself.
  int base(int body) const {
    return bodies[static_cast<size_t>(body)].variant_of < 0 ? body : bodies[static_cast<size_t>(body)].variant_of;
  }
  // Where a root buffer begins in its region, in a call of that slot.
  int64_t offset(BufferId root, const CallList& list, int slot) const;
  // Where a buffer of the file begins in it, on a rank.
  int64_t in_file(BufferId id, int64_t micro_batch, int rank) const;
  // The index of a dim of a buffer on a rank.
  tensor::DimIndex index(BufferId id, std::string_view dim, int rank) const;
};

// Offsets in the file are multiples of this.
constexpr int64_t kPage = 4096;
inline int64_t whole_pages(int64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace kintsugi::program
