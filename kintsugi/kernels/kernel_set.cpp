#include "kintsugi/kernels/kernel_set.h"

#include <algorithm>
#include <map>

namespace kintsugi::kernels {

bool Kernel::joins(std::string_view operation) const {
  return std::ranges::find(epilogues, operation) != epilogues.end();
}

namespace {

class WithoutEpilogues : public KernelSet {
 public:
  explicit WithoutEpilogues(std::unique_ptr<KernelSet> set) : set_(std::move(set)) {}
  std::string_view name() const override { return set_->name(); }
  device::Device* device() const override { return set_->device(); }
  bool on_device() const override { return set_->on_device(); }
  bool tf32() const override { return set_->tf32(); }
  const Kernel& find(std::string_view kind) const override {
    const Kernel& kernel = set_->find(kind);
    if (kernel.epilogues.empty()) return kernel;
    const auto [found, is_new] = without_.try_emplace(kernel.kind, kernel);
    if (is_new) found->second.epilogues = {};
    return found->second;
  }

 private:
  std::unique_ptr<KernelSet> set_;
  mutable std::map<std::string_view, Kernel> without_;
};

}  // namespace

std::unique_ptr<KernelSet> without_epilogues(std::unique_ptr<KernelSet> set) {
  return std::make_unique<WithoutEpilogues>(std::move(set));
}

std::unique_ptr<KernelSet> kernels_named(std::string_view name, tensor::DType dtype) {
  return name == "reference" || dtype == tensor::DType::f64 ? reference_kernels() : cpu_kernels();
}

}  // namespace kintsugi::kernels
