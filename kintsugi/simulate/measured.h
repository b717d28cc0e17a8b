// What was measured of a machine: the times of kernels and of collectives, which replace estimates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/product_size.h"

namespace kintsugi::simulate {

// What the time of a kernel depends on. size and form: of a product.
struct KernelKey {
  std::string kernel;  // "contract"
  tensor::DType type = tensor::DType::f32;
  std::string form = {};
  std::optional<ProductSize> size = {};
  double flops = 0, bytes = 0;  // bytes: read and written

  bool operator==(const KernelKey&) const = default;
};

// Of an instruction that computes.
KernelKey key_of(const program::Program& p, const program::Instruction& i);

struct MeasuredKernel {
  KernelKey key;
  double seconds = 0;
};

// Of a group in which each rank sends that many bytes.
struct MeasuredTransfer {
  program::Collective collective = program::Collective::all_reduce;
  int ranks = 2;
  double bytes = 0;
  double seconds = 0;
};

struct Measured {
  std::vector<MeasuredKernel> kernels;
  std::vector<MeasuredTransfer> transfers;

  const MeasuredKernel* find(const KernelKey& key) const;  // or null
  // Exactly that kernel; or what those that are like it give: of products the rate of the nearest sizes, of others the
  // time between the next smaller and the next larger. Nothing if none of that kernel and type was measured.
  std::optional<double> kernel_seconds(const KernelKey& key) const;
  // Likewise, in a group of so many ranks. Nothing if no transfer of that kind and group was measured.
  std::optional<double> transfer_seconds(program::Collective collective, int ranks, double bytes) const;

  // In place of those with the same key.
  void add(const MeasuredKernel& kernel);
  void add(const MeasuredTransfer& transfer);
};

}  // namespace kintsugi::simulate
