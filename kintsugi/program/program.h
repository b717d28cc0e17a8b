// The program of a rank: plain data, known whole before the first step. A table of bodies (straight lists of
// instructions over buffers at fixed offsets) and, by name, lists of calls of bodies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::program {

using BufferId = int32_t;
constexpr BufferId kNoBuffer = -1;

// state: lives from step to step, shared by all lists of calls. arena: lives within one list of calls.
enum class Region { state, arena };
std::string_view name_of(Region region);

struct Buffer {
  std::string name;
  tensor::Type type;  // the local block
  Region region = Region::arena;
  BufferId same_as = kNoBuffer;  // the memory of that buffer, under other dims
  int64_t offset = -1;           // bytes from the beginning of the region, a multiple of 64
  std::string input = {};        // the name under which the run fills it before a call
  std::string output = {};       // the name under which the run reads it after the last call

  int64_t bytes() const { return type.bytes(); }
};

// What a state begins with, for the run to fill in. See graph::Init.
struct StateInfo {
  std::string name;
  BufferId buffer = kNoBuffer;
  std::string kind;    // weight, gradient, optimizer, statistic, cache
  tensor::Type whole;  // the whole state; the buffer may hold a part
  int layer = 0;
  std::string init;  // constant, normal, copy
  double init_value = 0.0;
  std::string init_source = {};
  bool saved = true;
};

struct Instruction {
  std::string kernel;  // the kind of the operation
  std::vector<BufferId> ins;
  std::vector<BufferId> outs;
  tensor::Attributes attributes;
  uint32_t accumulate = 0;  // bit i: adds to output i
  BufferId workspace = kNoBuffer;
  int layer = 0;
  std::string phase;
  double flops = 0;
  double bytes = 0;
};

struct Body {
  std::string name;
  bool at_position = false;  // generation: the index of `seq` begins at the run's position
  std::vector<Instruction> instructions;
};

struct Call {
  int body = 0;
  int64_t micro_batch = 0;  // -1: of the step as a whole
};

// A list of calls that is one step of something: "train", "evaluate", "prefill", "decode".
struct CallList {
  std::string name;
  std::vector<Call> calls;
  int64_t arena_bytes = 0;        // of its own buffers
  int64_t lower_bound_bytes = 0;  // the largest sum of buffers that live at one time
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<StateInfo> states;
  std::vector<Body> bodies;
  std::vector<CallList> lists;
  int64_t state_bytes = 0;
  int64_t arena_bytes = 0;  // the largest of the lists

  int64_t bytes() const { return state_bytes + arena_bytes; }
  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }
  Buffer& buffer(BufferId id) { return buffers[static_cast<size_t>(id)]; }
  const CallList& list(std::string_view name) const;    // InternalError where there is none
  const StateInfo* state(std::string_view name) const;  // or null
  BufferId root(BufferId id) const;                     // follows same_as
  double flops(std::string_view list) const;            // of all its calls
};

// Bytes begin on boundaries of this.
constexpr int64_t kAlignment = 64;
inline int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace kintsugi::program
