#include "kintsugi/run/touched.h"

#include <algorithm>

#include "kintsugi/base/overlap.h"
#include "kintsugi/bind/bound_kernel.h"

namespace kintsugi::run {

using bind::bytes_of;

void Touched::add(std::span<const std::byte> bytes, bool written) {
  if (!bytes.empty()) all_.push_back({bytes, written});
}

void Touched::add(std::span<const tensor::View> reads, std::span<const tensor::View> writes,
                  std::span<const std::byte> workspace) {
  for (const tensor::View& v : reads) add(bytes_of(v), false);
  for (const tensor::View& v : writes) add(bytes_of(v), true);
  add(workspace, true);
}

bool Touched::must_wait(const comm::Communicator& group, std::span<const tensor::View> reads,
                        std::span<const tensor::View> writes) {
  const auto known = std::ranges::find(known_, &group, &decltype(known_)::value_type::first);
  if (known == known_.end()) {
    known_.emplace_back(&group, all_.size());
    return true;
  }
  const auto touched = [&](const tensor::View& v, bool written) {
    const std::span<const std::byte> bytes = bytes_of(v);
    return std::any_of(all_.begin() + static_cast<std::ptrdiff_t>(known->second), all_.end(),
                       [&](const Touch& t) { return (written || t.written) && base::overlap(t.bytes, bytes); });
  };
  if (std::ranges::none_of(reads, [&](const auto& v) { return touched(v, false); }) &&
      std::ranges::none_of(writes, [&](const auto& v) { return touched(v, true); }))
    return false;
  known->second = all_.size();
  return true;
}

}  // namespace kintsugi::run
