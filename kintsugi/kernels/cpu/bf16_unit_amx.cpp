// Intel AMX: tiles of 16 x 16 sums. A tile of c consists of four of them; each of two tiles of a is multiplied by each
// of two of b.
#include "kintsugi/kernels/cpu/bf16_finish.h"
#include "kintsugi/kernels/cpu/bf16_units.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kHalf = 16, kSquare = 1024;  // rows and bytes of a tile register

// The operand of ldtilecfg: registers of 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes kShapes;

__attribute__((target("amx-tile"))) void begin() {
  _tile_loadconfig(&kShapes);
}

__attribute__((target("amx-tile"))) void end() {
  _tile_release();
  _mm_sfence();
}

// Reads `t` before the first store: a load after stores of 4 KiB with equal low 12 address bits would stall (4K
// aliasing).
__attribute__((target("amx-tile,amx-bf16"))) void multiply(const Bf16Tile& t) {
  const int64_t a_row = t.a_row * 2, a_step = t.a_step * 2, c_row = t.c_row * 4, steps = t.steps;
  const char *a = reinterpret_cast<const char*>(t.a), *a2 = a + kHalf * a_row;
  const char *b = reinterpret_cast<const char*>(t.b), *b_end = b + steps * 2 * kSquare;
  char *c = reinterpret_cast<char*>(t.c), *c2 = c + kHalf * c_row;
  if (t.adds) {
    _tile_loadd(0, c, c_row);
    _tile_loadd(1, c + 64, c_row);
    _tile_loadd(2, c2, c_row);
    _tile_loadd(3, c2 + 64, c_row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (; b != b_end; a += a_step, a2 += a_step, b += 2 * kSquare) {
    _tile_loadd(4, a, a_row);
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + kSquare, 64);
    _tile_loadd(5, a2, a_row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_row);
  _tile_stored(1, c + 64, c_row);
  _tile_stored(2, c2, c_row);
  _tile_stored(3, c2 + 64, c_row);
}

// Linux allocates the tile state, 8 KiB per thread, only for processes that request it.
bool permitted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool present() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
  return (d & kBf16) && (d & kTiles) && avx512_bf16_unit() && permitted();
}

constexpr Bf16Unit kUnit = {"amx", begin, end, pack_a_avx512, pack_b_avx512, multiply, finish_tile_avx512};

}  // namespace

const Bf16Unit* amx_unit() {
  static const bool here = present();
  return here ? &kUnit : nullptr;
}

}  // namespace kintsugi::kernels::cpu
#else
namespace kintsugi::kernels::cpu {
const Bf16Unit* amx_unit() {
  return nullptr;
}
}  // namespace kintsugi::kernels::cpu
#endif
