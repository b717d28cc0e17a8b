// Computes the interior of a convolution while its halo travels.
#pragma once

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// When the interior is computed on its own. That costs a call more: its start, and the second transformation of the
// weights.
struct InteriorRule {
  // Output positions of a block, over all samples. For Winograd's algorithm, transforming a weight costs about as much
  // as its product with 150 positions.
  int64_t fewest_positions = 8192;
  // Of the whole convolution: some 1 ms of a core, or 20 us of a device, on which a call starts within 5 us.
  double fewest_flops = 3e7, fewest_device_flops = 1e9;
};

// Where halo_place assembles the operand of a convolution from a rank's own rows and received ones, splits both:
//
//   xh = halo_place(x, received)        xh = halo_place(x)                  own rows, zeros outside the value
//   y = convolution(xh, w)        ->    y = convolution(xh, w)              inner positions
//                                       xh = halo_place(xh, received)       received rows
//                                       y = convolution(xh, w)              outer positions
//
// `overlap` then waits for the exchange before the second halo_place. Inner positions are a range along the dim of the
// exchange (tensor::OutputPart) whose windows cover no received row on any rank, since ranks share a program; its ends
// are even, as far as they border on outer positions, so that tiles of two rows are not cut. If two dims are split, the
// exchanges follow each other, and the interior is that of the last one only.
//
// Applies if both kernels can (Capability::parts), the convolution is the first to read xh, at least half of the output
// positions along the dim are inner ones, and the rule admits its size. FLOPs stay the same; without any time of the
// transfer, both calls together take at most 5% longer than one (measured on a core: 0 to 4%). Not applied to gradients
// of inputs: their exchange overlaps with the gradient of the weights (overlap).
void split_interior(program::Program& p, const kernels::KernelSet& kernels, const InteriorRule& rule = {});

}  // namespace kintsugi::lower
