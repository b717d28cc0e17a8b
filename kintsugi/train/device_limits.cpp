#include "kintsugi/train/device_limits.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "kintsugi/device/timings.h"
#include "kintsugi/tensor/view.h"

namespace kintsugi::train {
namespace {

constexpr double kLong = 2e-3;  // seconds that a repetition must take
constexpr int64_t kLeastSize = 32, kMostSize = 8192, kLeastCopy = int64_t{1} << 20, kMostCopy = int64_t{1} << 30;

class Gauge {
 public:
  Gauge(const kernels::KernelSet& kernels, base::ThreadTeam& team)
      : kernels_(kernels), team_(team), device_(*kernels.device()), stream_(device_.stream()) {}

  // Operations per second of [size size] times [size size].
  double products(tensor::DType dtype) {
    double rate = 0;
    for (int64_t size = kLeastSize; size <= kMostSize; size *= 2) {
      const double seconds = product_seconds(size, dtype);
      rate = std::max(rate, 2.0 * static_cast<double>(size * size * size) / seconds);
      if (seconds >= kLong) break;
    }
    return rate;
  }

  // Bytes per second, read and written.
  double memory() {
    double rate = 0;
    const int64_t most = std::min(kMostCopy, device_.properties().free / 8);
    for (int64_t bytes = kLeastCopy; bytes <= std::max(most, kLeastCopy); bytes *= 2) {
      const auto from = device_.allocate(bytes), to = device_.allocate(bytes);
      const double seconds = least_seconds([&] { stream_->copy(to->data(), from->data(), bytes); });
      rate = 2.0 * static_cast<double>(bytes) / seconds;  // largest size: smaller ones fit in a cache
      if (seconds >= kLong) break;
    }
    return rate;
  }

 private:
  double product_seconds(int64_t size, tensor::DType dtype) {
    const std::array<tensor::Type, 3> types = {tensor::Type{{{"batch", size}, {"embed", size}}, dtype},
                                               tensor::Type{{{"embed", size}, {"ffn", size}}, dtype},
                                               tensor::Type{{{"batch", size}, {"ffn", size}}, dtype}};
    std::vector<std::unique_ptr<device::Memory>> memory;
    std::vector<tensor::View> ins, outs;
    for (const tensor::Type& type : types) {
      memory.push_back(device_.allocate(type.bytes()));
      (ins.size() < 2 ? ins : outs).push_back({memory.back()->data(), type});
    }
    ins.emplace_back();  // no bias
    const kernels::Kernel& kernel = kernels_.find("contract");
    const tensor::Attributes attributes;
    const std::array<const tensor::Type*, 3> in_types = {&types[0], &types[1], nullptr};
    const std::array<const tensor::Type*, 1> out_types = {&types[2]};
    const int64_t bytes =
        kernel.workspace ? kernel.workspace({.ins = in_types, .outs = out_types, .attributes = attributes}) : 0;
    const auto workspace = device_.allocate(bytes);
    std::vector<kernels::NamedIndex> indices;
    for (const char* dim : {"batch", "embed", "ffn"}) indices.push_back({dim, tensor::DimIndex(size)});
    const kernels::Numbers numbers;
    const kernels::KernelCall call = {.ins = ins,
                                      .outs = outs,
                                      .attributes = attributes,
                                      .indices = indices,
                                      .workspace = {workspace->data(), static_cast<size_t>(bytes)},
                                      .numbers = numbers,
                                      .team = team_,
                                      .stream = stream_.get()};
    return least_seconds([&] { kernel.run(call); });
  }

  // Minimum of three repetitions, after one in which libraries select their algorithms.
  template <typename F>
  double least_seconds(F&& enqueue) {
    constexpr size_t kGoes = 3;
    const auto timings = device::make_timings(device_, kGoes + 1);
    enqueue();
    timings->mark(*stream_, 0);
    for (size_t go = 1; go <= kGoes; ++go) {
      enqueue();
      timings->mark(*stream_, go);
    }
    stream_->synchronize();
    int64_t least = timings->between(0, 1);
    for (size_t go = 2; go <= kGoes; ++go) least = std::min(least, timings->between(go - 1, go));
    return 1e-9 * static_cast<double>(std::max<int64_t>(1, least));
  }

  const kernels::KernelSet& kernels_;
  base::ThreadTeam& team_;
  device::Device& device_;
  std::unique_ptr<device::Stream> stream_;
};

}  // namespace

Limits measure_device_limits(const kernels::KernelSet& kernels, base::ThreadTeam& team, tensor::DType dtype,
                             const std::function<void()>& meet) {
  Gauge gauge(kernels, team);
  meet();
  Limits limits = {.flops = gauge.products(tensor::DType::f32)};
  limits.product_flops = limits.flops;
  if (dtype != tensor::DType::f32) {
    meet();
    limits.product_flops = gauge.products(dtype);
  }
  meet();
  limits.bytes = gauge.memory();
  return limits;
}

}  // namespace kintsugi::train
