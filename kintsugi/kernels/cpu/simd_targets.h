// Which SIMD targets are built: SSE4, AVX2, AVX-512 or NEON, above what the compiler may always use. The others that
// Highway knows would add to the build and nothing to fp32. Include before anything of Highway.
#pragma once

// Bits of hwy/detect_targets.h, the same in all its versions: AVX-512 beyond its first form, SSSE3, and SVE.
#define HWY_DISABLED_TARGETS 0xF0010FFLL
