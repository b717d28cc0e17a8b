// Computes the interior of a convolution while its halo travels.
#pragma once

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// When a part is computed on its own. It costs a call more: its start, and the second packing of the weights.
struct InteriorRule {
  // Output positions of a block, over all samples. Packing a weight costs about as much as its product with 20
  // positions.
  int64_t fewest_positions = 4096;
  // Of the whole convolution: at least 0.1 ms of a core, or 20 us of a device, for calls that start within 5 us.
  double fewest_flops = 4e6, fewest_device_flops = 1e9;
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
// positions along the dim are inner ones, and the rule admits its size. FLOPs stay the same; the time without any
// transfer grows by a call, which by the rule is at most 5% of the convolution's own time.
void split_interior(program::Program& p, const kernels::KernelSet& kernels, const InteriorRule& rule = {});

}  // namespace kintsugi::lower
