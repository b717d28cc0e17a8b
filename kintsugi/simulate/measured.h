// Measurements of a machine: times of kernels and collectives, which replace estimates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/product_size.h"

namespace kintsugi::simulate {

// What the time of a kernel depends on. size and form: for matmuls.
struct KernelKey {
  std::string kernel;  // "contract"
  tensor::DType type = tensor::DType::f32;
  std::string form = {};
  std::optional<ProductSize> size = {};
  double flops = 0, bytes = 0;  // bytes read and written

  bool operator==(const KernelKey&) const = default;
};

// For a compute instruction.
KernelKey key_of(const program::Program& p, const program::Instruction& i);

struct MeasuredKernel {
  KernelKey key;
  double seconds = 0;
};

// For a group in which each rank sends that many bytes.
struct MeasuredTransfer {
  program::Collective collective = program::Collective::all_reduce;
  int ranks = 2;
  double bytes = 0;
  double seconds = 0;
};

struct Measured {
  std::vector<MeasuredKernel> kernels;
  std::vector<MeasuredTransfer> transfers;

  const MeasuredKernel* find(const KernelKey& key) const;  // null: none
  // The exact match, or an estimate from similar kernels: for matmuls the rate of the nearest sizes, for others an
  // interpolation between the next smaller and larger. Nothing if no kernel of that kind and type was measured.
  std::optional<double> kernel_seconds(const KernelKey& key) const;
  // Likewise, for a group of that many ranks. Nothing if no transfer of that kind and group size was measured.
  std::optional<double> transfer_seconds(program::Collective collective, int ranks, double bytes) const;

  // Replaces those with the same key.
  void add(const MeasuredKernel& kernel);
  void add(const MeasuredTransfer& transfer);
};

}  // namespace kintsugi::simulate
