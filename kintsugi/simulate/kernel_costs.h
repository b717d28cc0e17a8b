// How long the kernels of a program take on a device.
//
// Products are cut into tiles, which the device's units compute in waves: the last wave takes as long as a full one,
// and each tile takes a fixed time beside its multiplications. What is no product takes the time of the bytes that it
// reads and writes. Attention reaches a share of the peak that its device's library was measured at.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/product_size.h"
#include "kintsugi/simulate/software.h"

namespace kintsugi::simulate {

enum class Class : uint8_t { product, attention, other };
constexpr int kClasses = 3;
std::string_view name_of(Class c);  // "products", "attention", "other kernels"

struct KernelTime {
  Class of = Class::other;
  double seconds = 0;
};

// An instruction as a software runs it.
struct Arranged {
  const program::Instruction* instruction = nullptr;
  std::optional<ProductSize> product = {};      // that it does instead: several as one
  const program::Instruction* first = nullptr;  // of these products, which has the types of all
  double more_bytes = 0;                        // of elementwise instructions that it does too
  bool elsewhere = false;                       // another does it
  double units = 0;                             // of the device that a transfer beside it occupies
  bool fp8 = false;                             // a product whose operands are cast to 8 bits
  double cast_bytes = 0;                        // that kernels of the cast move
};

class KernelCosts {
 public:
  // Both outlive it.
  KernelCosts(const Cluster& cluster, const Software& software) : cluster_(cluster), software_(software) {}

  // Without the start of its kernel if an earlier launch performs it. UserError if the cluster has no peak for the type
  // of a product.
  KernelTime of(const program::Program& p, const Arranged& a) const;

  // units: of the device that it may not use.
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
  double peak(tensor::DType dtype) const;
  double tiled(const ProductSize& size, double rate, double element, double units) const;
  double share_of_attention(bool backward) const;

  const Cluster& cluster_;
  const Software& software_;
};

}  // namespace kintsugi::simulate
