#include "kintsugi/kernels/gpu/device_kernels.h"

#include <algorithm>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/gpu/rows.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::gpu_emulated {

std::span<const kernels::DeviceRow> rows();

}  // namespace kintsugi::gpu_emulated

namespace kintsugi::kernels {
namespace {

class DeviceKernels : public KernelSet {
 public:
  DeviceKernels(std::unique_ptr<device::Device> device, std::span<const DeviceRow> rows, bool tf32)
      : device_(std::move(device)), tf32_(tf32) {
    const auto reference = reference_kernels();
    for (const DeviceRow& row : rows) {
      const Kernel& same = reference->find(row.kind);
      kernels_.push_back({row.kind, same.ins, same.outs, row.run, row.workspace, row.prepares, row.abilities,
                          row.thin_rows, row.together});
    }
  }
  std::string_view name() const override { return device_ ? device_->kind() : "device"; }
  device::Device* device() const override { return device_.get(); }
  bool on_device() const override { return true; }
  bool tf32() const override { return tf32_; }
  bool sums_in_place() const override { return true; }
  bool has(std::string_view kind) const override {
    return std::ranges::find(kernels_, kind, &Kernel::kind) != kernels_.end();
  }
  const Kernel& find(std::string_view kind) const override {
    for (const Kernel& kernel : kernels_)
      if (kernel.kind == kind) return kernel;
    throw base::UserError("kernels", "a device has no kernel for \"{}\" yet: parallel.device = \"cpu\" has", kind);
  }

 private:
  std::unique_ptr<device::Device> device_;
  bool tf32_;
  std::vector<Kernel> kernels_;
};

}  // namespace

std::unique_ptr<KernelSet> planned_device_kernels() {
  return std::make_unique<DeviceKernels>(nullptr, gpu_emulated::rows(), false);
}

std::unique_ptr<KernelSet> device_kernels(std::unique_ptr<device::Device> device, bool tf32) {
  std::span<const DeviceRow> rows = gpu_emulated::rows();
  if (!device->emulated()) {
    const auto list = reinterpret_cast<DeviceRows*>(device->symbol(kDeviceRows));
    base::require(list != nullptr, "kernels", "the module of {} has no kernels", device->kind());
    list(&rows);
  }
  return std::make_unique<DeviceKernels>(std::move(device), rows, tf32);
}

}  // namespace kintsugi::kernels
