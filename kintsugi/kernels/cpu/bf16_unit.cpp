#include "kintsugi/kernels/cpu/bf16_unit.h"

#include <array>
#include <atomic>

#include "kintsugi/kernels/cpu/bf16_units.h"

namespace kintsugi::kernels::cpu {
namespace {

struct Found {
  std::array<const Bf16Unit*, 3> units = {};
  size_t count = 0;
};

Found find_units() {
  Found found;
  for (const Bf16Unit* unit : {amx_unit(), avx512_bf16_unit(), plain_unit()})
    if (unit) found.units[found.count++] = unit;
  return found;
}

std::atomic<const Bf16Unit*> asked{nullptr};

}  // namespace

std::span<const Bf16Unit* const> bf16_units() {
  static const Found found = find_units();
  return {found.units.data(), found.count};
}

const Bf16Unit& bf16_unit() {
  const Bf16Unit* unit = asked.load(std::memory_order_relaxed);
  return unit ? *unit : *bf16_units()[0];
}

void use_bf16_unit(const Bf16Unit* unit) {
  asked = unit;
}

}  // namespace kintsugi::kernels::cpu
