#include "kintsugi/kernels/kernel_set.h"

#include <algorithm>
#include <map>

namespace kintsugi::kernels {

bool Kernel::joins(std::string_view operation) const {
  return std::ranges::find(epilogues, operation) != epilogues.end();
}

namespace {

// Restricts the capabilities of another set's kernels.
class Lesser : public KernelSet {
 public:
  Lesser(std::unique_ptr<KernelSet> set, bool epilogues) : set_(std::move(set)), epilogues_(epilogues) {}
  std::string_view name() const override { return set_->name(); }
  device::Device* device() const override { return set_->device(); }
  bool on_device() const override { return set_->on_device(); }
  bool tf32() const override { return set_->tf32(); }
  bool has(std::string_view kind) const override { return set_->has(kind); }
  const Kernel& find(std::string_view kind) const override {
    const Kernel& kernel = set_->find(kind);
    if (!kernel.also_sums && !kernel.also_adds && !kernel.columns && (epilogues_ || kernel.epilogues.empty()))
      return kernel;
    const auto [found, is_new] = lesser_.try_emplace(kernel.kind, kernel);
    if (is_new) {
      found->second.also_sums = found->second.also_adds = found->second.columns = false;
      if (!epilogues_) found->second.epilogues = {};
    }
    return found->second;
  }
  bool sums_in_place() const override { return epilogues_ && set_->sums_in_place(); }

 private:
  std::unique_ptr<KernelSet> set_;
  bool epilogues_;
  mutable std::map<std::string_view, Kernel> lesser_;
};

}  // namespace

std::unique_ptr<KernelSet> without_epilogues(std::unique_ptr<KernelSet> set) {
  return std::make_unique<Lesser>(std::move(set), false);
}

std::unique_ptr<KernelSet> without_sums(std::unique_ptr<KernelSet> set) {
  return std::make_unique<Lesser>(std::move(set), true);
}

std::unique_ptr<KernelSet> kernels_named(std::string_view name, tensor::DType dtype) {
  return name == "reference" || dtype == tensor::DType::f64 ? reference_kernels() : cpu_kernels();
}

}  // namespace kintsugi::kernels
