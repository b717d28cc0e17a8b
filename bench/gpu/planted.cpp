// Kernels with one fault each, for bench/gpu/sanitizers.sh: planted NAME runs one, which must be reported; "none" has
// no fault.
#include <cstdio>
#include <string>
#include <vector>

#include "kintsugi/device/gpu.h"

namespace kintsugi::gpu_emulated {
namespace {

enum class Fault { none, shared, index, barrier, warp_barrier, blocks };

// y[block][i] = the sum of two neighbours of x[block], through shared memory.
__global__ void neighbours(const float* x, float* y, Fault fault) {
  GPU_DYNAMIC_SHARED(float, all);
  __shared__ float halves[64];
  const int i = static_cast<int>(threadIdx.x), count = static_cast<int>(blockDim.x), next = (i + 1) % count;
  const float* const own = x + blockIdx.x * blockDim.x;
  all[fault == Fault::shared && i == count - 1 ? count : i] = own[i];
  if (fault != Fault::barrier) __syncthreads();
  halves[fault == Fault::index && i == count - 1 ? 64 : i] = all[i] + all[next];
  if (fault != Fault::warp_barrier) warp_barrier();
  const float sum = halves[i / 32 * 32 + (i + 1) % 32];
  y[fault == Fault::blocks ? i : static_cast<int>(blockIdx.x * blockDim.x) + i] = sum;
}

int run(const std::string& name) {
  constexpr std::pair<const char*, Fault> kNames[] = {
      {"none", Fault::none},     {"memory", Fault::none},     {"shared", Fault::shared},
      {"index", Fault::index},   {"barrier", Fault::barrier}, {"warp_barrier", Fault::warp_barrier},
      {"blocks", Fault::blocks},
  };
  for (const auto& [known, fault] : kNames) {
    if (name != known) continue;
    constexpr unsigned kBlocks = 64, kThreads = 64;
    constexpr int64_t kBytes = kBlocks * kThreads * sizeof(float);
    const auto device = device::open_device("emulated");
    const auto stream = device->stream();
    const auto x = device->allocate(kBytes - (name == "memory" ? 4 : 0)), y = device->allocate(kBytes);
    launch(*stream, kBlocks, kThreads, kThreads * sizeof(float), neighbours, reinterpret_cast<const float*>(x->data()),
           reinterpret_cast<float*>(y->data()), fault);
    stream->synchronize();
    return 0;
  }
  std::fprintf(stderr, "no fault is called \"%s\"\n", name.c_str());
  return 2;
}

}  // namespace
}  // namespace kintsugi::gpu_emulated

int main(int argc, char** argv) {
  return kintsugi::gpu_emulated::run(argc > 1 ? argv[1] : "none");
}
