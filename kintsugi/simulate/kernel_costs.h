// Time of a program's kernels on a device.
//
// Matmuls are cut into tiles, which the device's units compute in waves: a partial last wave takes as long as a full
// one, and each tile has a fixed cost in addition to its multiplications. Other kernels take the time of the bytes that
// they read and write. Attention reaches a fraction of the peak measured for the device's library.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/product_size.h"
#include "kintsugi/simulate/software.h"

namespace kintsugi::simulate {

using Class = tensor::CostClass;
constexpr int kClasses = static_cast<int>(tensor::kCostClasses.size());

struct KernelTime {
  Class of = Class::other;
  double seconds = 0;
};

// An instruction as run by some software.
struct Arranged {
  const program::Instruction* instruction = nullptr;
  std::optional<ProductSize> product = {};      // the matmul executed instead: several joined into one
  const program::Instruction* first = nullptr;  // the first of these matmuls, which determines the types
  double more_bytes = 0;                        // of elementwise instructions fused into it
  bool elsewhere = false;                       // fused into another
  double units = 0;                             // device units occupied by a concurrent transfer
  bool fp8 = false;                             // a matmul whose operands are cast to 8 bits
  double cast_bytes = 0;                        // moved by the kernels of the cast
};

class KernelCosts {
 public:
  // Both must outlive it.
  KernelCosts(const Cluster& cluster, const Software& software) : cluster_(cluster), software_(software) {}

  // Excludes the launch overhead if an earlier launch performs it. Throws UserError if the cluster has no peak for the
  // type of a matmul.
  KernelTime of(const program::Program& p, const Arranged& a) const;

  // units: device units that it may not use.
  double product(const ProductSize& size, tensor::DType dtype, double units = 0) const;
  double product_fp8(const ProductSize& size, double units = 0) const;
  double bytes(double bytes) const;  // read and written by one kernel

 private:
  KernelTime alone(const program::Program& p, const Arranged& a) const;
  static Class class_of(const Arranged& a);
  double contract(const program::Program& p, const Arranged& a) const;
  double attention(const program::Program& p, const program::Instruction& i, bool backward) const;
  double head(const program::Program& p, const program::Instruction& i) const;
  double grouped(const program::Program& p, const program::Instruction& i) const;
  double other_product(const program::Program& p, const program::Instruction& i) const;
  double tiled(const ProductSize& size, double rate, double element, double units) const;
  double share_of_attention(bool backward) const;

  const Cluster& cluster_;
  const Software& software_;
};

}  // namespace kintsugi::simulate
