#include "kintsugi/checkpoint/read_parts.h"

#include <atomic>

namespace kintsugi::checkpoint {

void read_parts(const TensorSource& source, std::span<const WantedPart> parts, base::ThreadTeam& team) {
  std::atomic<size_t> next = 0;
  team.run([&](int thread) {
    if (thread >= kReaders) return;
    for (size_t i = next++; i < parts.size(); i = next++) {
      const WantedPart& wanted = parts[i];
      const auto bytes = static_cast<size_t>(wanted.part.flat.size() * size_of(wanted.dtype));
      source.read({.name = wanted.name, .box = wanted.part.box, .flat = wanted.part.flat}, wanted.dtype,
                  {wanted.out, bytes});
    }
  });
}

}  // namespace kintsugi::checkpoint
