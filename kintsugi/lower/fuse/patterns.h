// The list of fusions: which instructions are replaced by one, the result, and the capability required of its kernel.
// The passes fuse, join_columns, join_lists and group_launches match these patterns. A new fusion is a row here, and a
// kernel; a new kind of rewrite is also a function in one of the passes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::lower {

// How a pattern is rewritten. P is the producer, C the consumer of its value.
enum class Rewrite : uint8_t {
  write,         // C writes the value to a state, or accumulates it there: done by P
  activation,    // C is y = f(x): applied by P to its result; x becomes a second output if anything else reads it
  slope,         // C is dx = f'(x) dy: applied by P to its result dy, with x as an operand
  bias,          // C adds a value with the last dims of the result: done by P
  sum_in_place,  // C adds values: the first one produced becomes the sum, into which the other producers accumulate
  residual,      // C adds another value of the same type: done by P
  row_sums,      // C sums the result over rows: also done by P
  columns,       // values produced by P are multiplied and summed: P makes them adjacent, one matmul gives the sum
  list,          // P and C are the same operation with one output per operand: one instruction with all operands
  launch,        // P and C, or several C, are performed by one launch
};

using kernels::Capability;

struct Pattern {
  Rewrite rewrite;
  std::vector<std::string_view> producers = {};  // kinds of operations; empty: any that is capable
  std::vector<std::string_view> consumers = {};  // likewise
  std::string_view operand = {};  // optional operand of the producer that receives what the consumer reads
  std::string_view output = {};   // optional output of the producer that the rewrite fills
  std::vector<std::string_view> replaced = {};  // outputs of the producer that it replaces, in order
  // The capability required of the resulting kernel, for `columns` also of the consumers; none: beyond the operation,
  // none. `sum_in_place` also requires KernelSet::sums_in_place, and `launch` Kernel::together.
  std::optional<Capability> needs = {};
  // May cross layers, since the result is bit-identical to separate instructions. Otherwise all are in one layer.
  bool across_layers = false;
  bool on_device = false;  // only in programs for devices

  bool has_producer(std::string_view kind) const;
  bool has_consumer(std::string_view kind) const;
};

// In the order in which passes try them.
std::span<const Pattern> patterns();

// The pattern of a rewrite with that producer; null if there is none.
const Pattern* find_pattern(Rewrite rewrite, std::string_view producer);

// Whether a kernel supports a pattern in which it also performs an operation of kind `also`, or accumulates the output
// `also`.
bool is_capable(const kernels::Kernel& kernel, const Pattern& pattern, std::string_view also);

}  // namespace kintsugi::lower
