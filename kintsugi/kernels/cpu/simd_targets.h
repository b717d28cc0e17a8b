// The SIMD targets to build: SSE4, AVX2, AVX-512 or NEON, above the compiler's baseline. Highway's other targets would
// make the build longer and fp32 no faster. Include before any other Highway header.
#pragma once

// Bits of hwy/detect_targets.h, the same in all its versions: AVX-512 beyond its first form, SSSE3, and SVE.
#define HWY_DISABLED_TARGETS 0xF0010FFLL
