// The list of fusions: which instructions become one, what the result is, and what its kernel must be capable of. The
// passes fuse, join_columns, join_lists and group_launches look for these patterns. A new fusion is a row here, and a
// kernel; a new kind of rewrite is a function of one of the passes too.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::lower {

// How a pattern is rewritten. P is the producer, C the consumer of its value.
enum class Rewrite : uint8_t {
  write,         // C writes the value to a state, or adds it there: P does so
  activation,    // C is y = f(x): P applies it to its result, and keeps x as a second output if anything else reads it
  slope,         // C is dx = f'(x) dy: P applies it to its result dy, with x as an operand
  bias,          // C adds a value that has the last dims of the result: P does so
  sum_in_place,  // C adds values: the first one that is made becomes the sum, to which the other producers add
  residual,      // C adds another value of the same type: P does so
  row_sums,      // C sums the result over rows: P does so too
  columns,       // values that P makes are multiplied and added up: P makes them adjacent, one product gives the sum
  list,          // P and C are the same operation, which makes an output of each operand: one instruction with all
  launch,        // P and C, or several C, are performed by one launch
};

// What the kernel that performs the result must be capable of (kernels::Kernel).
enum class Capability : uint8_t {
  none,      // what the operation is said to do
  epilogue,  // Kernel::epilogues
  in_place,  // KernelSet::sums_in_place, and that outputs can be added to what is there
  added,     // Kernel::also_adds
  sums,      // Kernel::also_sums
  columns,   // Kernel::columns, of the consumers too
  together,  // Kernel::together, Kernel::begins_with
};

struct Pattern {
  Rewrite rewrite;
  std::vector<std::string_view> producers = {};  // kinds of operations; empty: any that is capable
  std::vector<std::string_view> consumers = {};  // the same
  std::string_view operand = {};  // the optional operand of the producer that takes what the consumer reads
  std::string_view output = {};   // the optional output of the producer that the rewrite fills
  std::vector<std::string_view> replaced = {};  // the outputs of the producer that it replaces, in their order
  Capability needs = Capability::none;
  // Across layers, since the result has the bits of the separate instructions. Elsewhere all are of one layer.
  bool across_layers = false;
  bool on_device = false;  // programs for devices alone

  bool has_producer(std::string_view kind) const;
  bool has_consumer(std::string_view kind) const;
};

// In the order in which passes try them.
std::span<const Pattern> patterns();

// The pattern of a rewrite with that producer; null if there is none.
const Pattern* find_pattern(Rewrite rewrite, std::string_view producer);

// Whether a kernel is capable of a pattern in which it also performs an operation of that kind.
bool is_capable(const kernels::Kernel& kernel, const Pattern& pattern, std::string_view also);

}  // namespace kintsugi::lower
