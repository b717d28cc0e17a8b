// Limits of the emulated device.
#include <atomic>

#include "kintsugi/base/error.h"
#include "kintsugi/device/emulate.h"

namespace kintsugi::device::emulate {
namespace {

std::atomic<int> warp_lanes{32};
std::atomic<size_t> shared_set{0};
std::atomic<Order> order_now{Order::first_to_last};

}  // namespace

void set_warp(int lanes) {
  warp_lanes = lanes;
}
int warp() {
  return warp_lanes;
}
void set_most_shared(size_t bytes) {
  shared_set = bytes;
}
size_t most_shared() {
  const size_t set = shared_set;
  return set > 0 ? set : warp() == 64 ? 64 << 10 : 227 << 10;
}
void set_order(Order order) {
  order_now = order;
}
Order order() {
  return order_now;
}

void require_possible(const Grid<Size>& grid, Size threads, size_t shared) {
  const uint64_t count = uint64_t{threads.x} * threads.y * threads.z;
  base::require(count > 0 && count <= kMostThreads, "device", "a block of {} threads", count);
  constexpr unsigned kMostAcross = INT32_MAX, kMostBeside = 65535;  // grid size in x, and in y and z
  const Size& blocks = grid.blocks;
  base::require(blocks.x <= kMostAcross && blocks.y <= kMostBeside && blocks.z <= kMostBeside, "device",
                "a grid of {} x {} x {} blocks", blocks.x, blocks.y, blocks.z);
  base::require(grid.cluster > 0 && grid.cluster <= 8 && blocks.x % grid.cluster == 0, "device",
                "{} blocks in clusters of {}", blocks.x, grid.cluster);
  base::require(shared <= most_shared(), "device", "a block asks for {} bytes of shared memory, and may have {}",
                shared, most_shared());
}

}  // namespace kintsugi::device::emulate
