// fp32 convolutions of 3 x 3 windows with stride 1 by Winograd's algorithm F(2 x 2, 3 x 3) (Lavin, Gray 2015, section
// 4.1): 16 multiplications for four outputs instead of 36. Rounding errors are about twice those of the direct sum.
#pragma once

#include <span>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/convolution_library.h"

namespace kintsugi::kernels::cpu {

// Whether a pass is computed this way: two dims, 3 x 3, stride and dilation 1, one group, enough channels and filters.
bool is_winograd(const ConvolutionSizes& sizes);

// Size of the scratch in floats.
int64_t winograd_scratch(const ConvolutionSizes& sizes, int threads);

// x [samples height width channels], weights [3 3 channels filters], y [samples height width filters]: reads two of the
// three and writes the output of the pass; the forward pass only the given ranges of rows of y. `first`: the indices of
// the first row and column of y in the whole image. Tiles begin at even ones, so that the bits of y do not depend on
// how ranks split the image.
struct WinogradStart {
  int64_t row = 0, column = 0;
};
void winograd(const ConvolutionSizes& sizes, std::span<const base::Range> rows, float* x, float* weights, float* y,
              float* scratch, base::ThreadTeam& team, WinogradStart first = {});

}  // namespace kintsugi::kernels::cpu
