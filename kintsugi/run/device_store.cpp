#include "kintsugi/run/device_store.h"

#include <cstring>

namespace kintsugi::run {

DeviceStore::DeviceStore(DeviceSide& side, int64_t bytes)
    : side_(side),
      compute_(side.stream()),
      memory_(side.pinned(bytes)),
      stream_(side.device().stream()),
      joined_(side.device().event()) {
  std::memset(memory_->data(), 0, static_cast<size_t>(bytes));
}

void DeviceStore::begin(Copy& copy) {
  stream_->wait_for(compute_, *copy.ready);
}

void DeviceStore::fetch(Copy& copy, int64_t offset, std::span<std::byte> to) {
  begin(copy);
  stream_->copy(to.data(), memory_->data() + offset, static_cast<int64_t>(to.size()));
  stream_->record(*copy.done);
}

void DeviceStore::store(Copy& copy, int64_t offset, std::span<const std::byte> from) {
  begin(copy);
  stream_->copy(memory_->data() + offset, from.data(), static_cast<int64_t>(from.size()));
  stream_->record(*copy.done);
}

// The host's accesses are announced as those of `compute`, which is idle, has waited for all copies and is waited for
// by later ones: the calling thread may differ from the rank's.
void DeviceStore::read(int64_t offset, std::span<std::byte> to) {
  side_.synchronize();
  stream_->synchronize();
  const std::span<const std::byte> from(memory_->data() + offset, to.size());
  compute_.announce({.what = "the host's look at what is offloaded", .reads = {&from, 1}, .writes = {}});
  std::memcpy(to.data(), from.data(), from.size());
}

void DeviceStore::write(int64_t offset, std::span<const std::byte> from) {
  side_.synchronize();
  stream_->synchronize();
  const std::span<const std::byte> to(memory_->data() + offset, from.size());
  compute_.announce({.what = "the host's change of what is offloaded", .reads = {}, .writes = {&to, 1}});
  std::memcpy(memory_->data() + offset, from.data(), from.size());
}

}  // namespace kintsugi::run
