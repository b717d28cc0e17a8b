// How operations are computed on a device: one of the two interfaces to the world. A kernel knows its operands, its
// attributes and the global index of its local block, but no graphs, meshes or ranks.
//
// A kernel names its operands and outputs, as the operation's row does. The caller places each at the position of its
// name; absent ones are null views. A kernel therefore uses `call.ins[kBias].data`, and never the number of operands.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/device/device.h"
#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/index.h"
#include "kintsugi/tensor/operands.h"
#include "kintsugi/tensor/view.h"

namespace kintsugi::kernels {

// Scalars that vary per call. They affect values and masks, never shapes.
struct Numbers {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t batch_offset = 0;  // position in the global batch of the first sample of this micro-batch
  int64_t batch_rows = 0;    // samples per micro-batch over all ranks; if given, the run sets batch_offset
  int64_t position = 0;      // generation: number of tokens in the cache
  int64_t last = 0;          // generation: local position of the last token of the prompt
  double learning_rate = 0.0;
  int64_t micro_batches = 0;  // of a training step, which selects its list of calls; 0: all that the plan has
};

struct RefusedTokens;  // refuse_token.h

// The location of a state's local block in the operands of a flat operation whose result depends on the positions of
// elements (OpRow::by_position).
struct StatePlace {
  uint64_t key = 0;                     // of the name of its weight
  int64_t first = 0;                    // element of the operands at which it begins; negative if they begin within it
  std::vector<tensor::DimIndex> index;  // of its dims
};

struct NamedIndex {
  std::string dim;
  tensor::DimIndex index;
  bool windowed = false;  // for operands that are indexed by input position
};

// One call of one kernel. Everything it points to outlives the call.
struct KernelCall {
  std::span<const tensor::View> ins;  // by position; a variadic rest follows at the end
  std::span<const tensor::View> outs;
  const tensor::Attributes& attributes;
  std::span<const NamedIndex> indices;  // one per dim of the operands
  uint32_t accumulate = 0;              // bit i: accumulate into the output at position i
  std::span<std::byte> workspace;       // of the requested size, aligned as the program says
  const Numbers& numbers;
  base::ThreadTeam& team;
  // Device kernels, whose operands and workspace are device memory: the stream to enqueue in, and the device memory
  // from which the kernel reads seed, step, position, last and learning rate when it runs (repeatedly, if captured).
  device::Stream* stream = nullptr;
  const Numbers* later = nullptr;
  std::string_view moved = {};  // generation on a device: the dim whose index is offset by later->position
  bool tf32 = false;            // fp32 matmuls may round their operands to TF32
  std::string_view kind = {};   // of the operation
  // Device kernels: where they report tokens without a slot; memory of the host that they can write. Null: nowhere.
  RefusedTokens* refused = nullptr;

  // Of the states that the attribute "states" names, in that order, for operations that depend on positions.
  std::span<const StatePlace> places = {};

  const tensor::DimIndex& index(std::string_view dim) const;  // InternalError if there is none
  // The index of a windowed dim of operands and outputs that are indexed by input position (OpRow::windowed). Positions
  // with index -1 are absent, like positions outside the block: zero in a convolution, not counted in pooling. Local
  // window o begins at local position o * stride - low, with the call's attributes: for a split dim, low and high are 0
  // and the block includes the padding. Without such an index every position of the block is present.
  const tensor::DimIndex& window_index(std::string_view dim) const;
  bool accumulates(size_t output) const { return (accumulate >> output) & 1u; }
  bool moves(std::string_view dim) const { return !moved.empty() && moved == dim; }
};

// What is known of a call in advance.
struct KernelShapes {
  std::span<const tensor::Type* const> ins;  // by position, null if absent
  std::span<const tensor::Type* const> outs;
  const tensor::Attributes& attributes;
  int threads = 1;
};

inline constexpr size_t kMostTogether = 32, kMostBefore = 4;

// What a kernel may be able to do in addition to its operation. The list of fusions (lower/fuse/patterns.h) states
// which of them each fusion needs. Unless stated otherwise the result is bit-identical to separate operations.
enum class Capability : uint8_t {
  // Matmul: applies an operation of these kinds to its result, given by the attribute "epilogue" and the attributes of
  // that operation. Device libraries may round once instead of twice.
  epilogue,
  // Matmul: adds the operand `added` to the result; may round once.
  add,
  // Accumulates these outputs too, in addition to those of the operation's row: the value is rounded first.
  accumulate,
  // Norm gradient: also computes the output "sums" (Rewrite::row_sums).
  row_sums,
  // Produces adjacent columns (Rewrite::columns), or reads columns of a wider value from the attribute "first" on; for
  // a
  // matmul, its operand b.
  columns,
  // Device: one launch first performs calls of these kinds, which produce what the kernel reads (Kernel::together).
  follow,
  // Window operation: computes the output positions of tensor::OutputPart only and leaves the others as they are. With
  // the name kFirstDim, only parts along the first windowed dim. halo_place: places a rank's own rows before those that
  // it receives (attribute "place"). Each element of the output is written by exactly one of the two calls; its bits
  // may differ from those of a single call only as they do in another layout.
  parts,
};

// A name of Capability::parts.
inline constexpr std::string_view kFirstDim = "first dim";

// A capability, and the kinds or outputs to which it applies; none: it does not depend on any.
struct Ability {
  Capability capability;
  std::span<const std::string_view> names = {};
};

struct Kernel {
  std::string_view kind;  // of the operation
  tensor::OperandList ins;
  tensor::OperandList outs;
  void (*run)(const KernelCall&) = nullptr;
  int64_t (*workspace)(const KernelShapes&) = nullptr;  // bytes; null: none
  // Device: when a program is bound, each call is first made in a stream that discards work (device::NoStream), so that
  // libraries select their algorithms.
  bool prepares = false;
  std::span<const Ability> abilities = {};
  // Matmul: with at most that many rows it adds the bias and the old output and rounds once. With more rows it may be a
  // library that does not.
  int64_t thin_rows = 0;
  // Device: runs at most kMostTogether consecutive calls in one launch, none of which accesses what another writes;
  // bit-identical to `run`, except for matmuls, whose sums may be taken in another order. At most kMostBefore calls of
  // the kinds that it may follow (Capability::follow) may precede them, which produce what they read, and do not write
  // what they write; only states among the outputs of those are stored. Returns false, with nothing done, if the calls
  // cannot be fused. Null: unsupported.
  bool (*together)(std::span<const KernelCall>) = nullptr;

  // Whether it has the capability, for a kind of operation or an output where the capability has names.
  bool can(Capability capability, std::string_view name = {}) const;
};

class KernelSet {
 public:
  virtual ~KernelSet() = default;
  virtual std::string_view name() const = 0;
  // Throws InternalError if the set has no such kernel.
  virtual const Kernel& find(std::string_view kind) const = 0;
  // Only device sets may lack kernels.
  virtual bool has(std::string_view) const { return true; }
  // The device that owns the operands' memory and the streams; null: the host.
  virtual device::Device* device() const { return nullptr; }
  virtual bool on_device() const { return false; }  // also true if it only plans for a device
  virtual bool tf32() const { return false; }       // passed to calls
  // Whether values that are only summed are accumulated in place, by the producers of the other terms.
  virtual bool sums_in_place() const { return false; }
};

// The same kernels without epilogues, in-place sums and columns.
std::unique_ptr<KernelSet> without_epilogues(std::unique_ptr<KernelSet> set);

// The same kernels without the capabilities add, row_sums and columns.
std::unique_ptr<KernelSet> without_sums(std::unique_ptr<KernelSet> set);

}  // namespace kintsugi::kernels
