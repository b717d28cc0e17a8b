// How operations are computed on a device: one of the two interfaces to the world. A kernel knows its operands, its
// attributes and the global index of its local block; it knows nothing of graphs, meshes or ranks.
//
// A kernel names the operands that it takes and the outputs that it makes, as the operation's row does. The caller
// puts each at the position of its name; one that is absent is a null view. So a kernel uses `call.ins[kBias].data`,
// and never the number of operands.
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

// What changes from call to call. It changes values and masks, never shapes.
struct Numbers {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t batch_offset = 0;  // the position in the global batch of the first sample of this micro-batch
  int64_t batch_rows = 0;    // samples of a micro-batch, of all ranks; if given, the run sets batch_offset
  int64_t position = 0;      // generation: tokens already in the cache
  int64_t last = 0;          // generation: the local position of the last token of the prompt
  double learning_rate = 0.0;
};

struct NamedIndex {
  std::string dim;
  tensor::DimIndex index;
  bool windowed = false;  // of operands that are indexed by input position
};

// One call of one kernel. Everything it points to outlives the call.
struct KernelCall {
  std::span<const tensor::View> ins;  // by position; the rest of a list follows at the end, any number of them
  std::span<const tensor::View> outs;
  const tensor::Attributes& attributes;
  std::span<const NamedIndex> indices;  // one for each dim of the operands
  uint32_t accumulate = 0;              // bit i: add to the output at position i what would be stored
  std::span<std::byte> workspace;       // as many bytes as the kernel asked for, aligned as the program says
  const Numbers& numbers;
  base::ThreadTeam& team;
  // Of kernels on a device, whose operands and workspace are its memory: where they are enqueued, and where the device
  // finds seed, step, position, last and learning rate when they run, which is later, and again and again if captured.
  device::Stream* stream = nullptr;
  const Numbers* later = nullptr;
  std::string_view moved = {};  // of generation on a device: the dim whose index begins later->position later
  bool tf32 = false;            // products of fp32 may round their operands to TF32
  std::string_view kind = {};   // of the operation

  const tensor::DimIndex& index(std::string_view dim) const;  // InternalError if there is none
  // The index of a windowed dim of the operands and outputs that are indexed by input position (OpRow::windowed).
  // Positions with index -1 are absent, like positions outside of the block: zero in a convolution, not counted in
  // pooling. Local window o begins at local position o * stride - low, with the call's attributes: of a split dim, low
  // and high are 0 and the block includes the padding. Without such an index every position of the block is present.
  const tensor::DimIndex& window_index(std::string_view dim) const;
  bool accumulates(size_t output) const { return (accumulate >> output) & 1u; }
  bool moves(std::string_view dim) const { return !moved.empty() && moved == dim; }
};

// What is known of a call in advance.
struct KernelShapes {
  std::span<const tensor::Type* const> ins;  // by position, null where one is absent
  std::span<const tensor::Type* const> outs;
  const tensor::Attributes& attributes;
  int threads = 1;
};

inline constexpr size_t kMostTogether = 32, kMostBefore = 4;

struct Kernel {
  std::string_view kind;  // that of the operation
  tensor::OperandList ins;
  tensor::OperandList outs;
  void (*run)(const KernelCall&) = nullptr;
  int64_t (*workspace)(const KernelShapes&) = nullptr;  // bytes; null: none
  // Of a device: each call is first made in a stream in which nothing is enqueued (device::NoStream), when a program is
  // bound, so that libraries choose their algorithms then.
  bool prepares = false;
  // Of a product: the kinds of operations that it can do to its result, given as the attribute "epilogue" with the
  // attributes of that operation. The bits are those of both, one after the other, but for libraries of devices.
  std::span<const std::string_view> epilogues = {};
  // Outputs, beside those that the operation says, that it can add to what is there, with the bits of an addition
  // behind it: what would be stored is rounded first.
  std::span<const std::string_view> also_accumulates = {};
  // Of a product: with at most so many rows it adds a bias, and then to what is there, and rounds once. With more, it
  // may be a library that does not.
  int64_t thin_rows = 0;
  // Of the gradient of a norm: it also makes the output "sums" (Rewrite::row_sums), with the bits of the operation
  // "sum".
  bool also_sums = false;
  // Of a product: it adds the operand "added" to its result, with the bits of an addition behind it or rounded once.
  bool also_adds = false;
  // It makes values side by side (Rewrite::columns), or takes columns of a wider value, from the attribute "first" on:
  // of a product, its operand b.
  bool columns = false;
  // Of a device: at most kMostTogether calls that follow each other, none of which touches what another writes, by one
  // launch; with the same bits as by `run`, but for products, whose sums may be taken in another order. Before them may
  // stand calls of the kinds `begins_with`, at most kMostBefore, which make what they read, and do not write what they
  // write. Of those only states are made. False, and nothing is done: it does not do these at once. Null: none.
  bool (*together)(std::span<const KernelCall>) = nullptr;
  std::span<const std::string_view> begins_with = {};

  bool joins(std::string_view operation) const;
};

class KernelSet {
 public:
  virtual ~KernelSet() = default;
  virtual std::string_view name() const = 0;
  // InternalError if the set has no such kernel.
  virtual const Kernel& find(std::string_view kind) const = 0;
  // False where only a device lacks it, whose list may be shorter.
  virtual bool has(std::string_view) const { return true; }
  // Whose memory the operands are, and in whose streams kernels are enqueued; null: the host's.
  virtual device::Device* device() const { return nullptr; }
  virtual bool on_device() const { return false; }  // true also where it only plans for one
  virtual bool tf32() const { return false; }       // calls are given it
  // Whether values that are only added up are added where the first of them lies, by what makes the others.
  virtual bool sums_in_place() const { return false; }
};

// Slow and obvious, one thread, every floating dtype; sums in fp64.
std::unique_ptr<KernelSet> reference_kernels();

// Fast: oneDNN for matrix products, SIMD chosen at run time for the rest. fp64 is left to the reference.
std::unique_ptr<KernelSet> cpu_kernels();

// Of a device: enqueued in a stream. The kernels of the emulation are in the program, others in the module of the
// device.
std::unique_ptr<KernelSet> device_kernels(std::unique_ptr<device::Device> device, bool tf32 = false);
// The same for planning, without one: what they take, and their workspace. They are not run.
std::unique_ptr<KernelSet> planned_device_kernels();

// The same kernels, none of which does another operation to its result, or sums in place, or takes columns.
std::unique_ptr<KernelSet> without_epilogues(std::unique_ptr<KernelSet> set);

// The same kernels, none of which also makes sums, adds another value to its result, or takes columns.
std::unique_ptr<KernelSet> without_sums(std::unique_ptr<KernelSet> set);

// "reference" or "cpu"; a program in fp64 uses the reference entirely.
std::unique_ptr<KernelSet> kernels_named(std::string_view name, tensor::DType dtype);

}  // namespace kintsugi::kernels
