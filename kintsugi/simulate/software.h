// How the software of a published measurement differs from ours, so that the figure can be compared with a simulation
// of the same run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kintsugi::simulate {

// Kernels of attention, whose fractions of the peak are in the cluster's file. fastest: [attention] forward, backward.
enum class AttentionKernels : uint8_t { fastest, triton, flash2 };

struct Software {
  std::string_view name = {};
  std::string_view source = {};
  bool fused_attention = true;     // false: scores are written to memory and read back
  bool fused_loss = true;          // false: logits are, in fp32
  bool overlaps_gradients = true;  // false: gradient reductions wait for the end of the backward passes
  double gradient_share = 1;       // bytes of a gradient sent, relative to ours in fp32: one half in 16 bits
  double gradient_bucket = 0;      // elements reduced at a time, or 1/40 of that per rank if that is more; smaller
                                   // reductions share a start. 0: as in the program
  bool gathers_later = false;     // sharded weights are gathered concurrently with the next step's forward pass, except
                                  // the first part: a chunk of a stage, or else a layer
  bool overlaps_messages = true;  // false: a message between stages begins when the receiver needs it
  bool cuts_messages = false;     // ranks that hold the same value send a part each, and gather it (2021, section 4.1)
  bool adds_gradients =
      false;  // weight gradients are accumulated by a separate kernel for each micro-batch after the first
  bool starts_early = false;       // a collective of the backward pass begins up to one matmul before ours
  bool repeats_layers = false;     // recomputation of a layer includes its last matmul, whose result is unused
  bool joins_products = false;     // matmuls of one operand in a layer are joined: query, key and value; gate and up
  bool joins_activations = true;   // false: activations are separate kernels, not fused into matmuls
  bool joins_sums = false;         // bias gradients are fused with those of norms or weights
  bool joins_elementwise = false;  // consecutive biases, dropout and residuals are one kernel
  bool keeps_masks = false;        // of dropout; norms have two kernels for their gradients
  bool sequence_first = false;     // the sequence is the outermost dim: its parts need not be stacked
  double update_bytes = 0;         // per weight, read and written by kernels around the update in addition to ours
  double host_time = 0;            // host seconds per kernel, if it waits for each before the next
  bool pieces = false;             // matmuls hide gathers and reductions over `tensor`: see Builder::hide
  double sum_units = 0;     // device units occupied by a reduction over `tensor` concurrent with a forward matmul
  double logit_bytes = 52;  // read and written per logit, forward and backward, without a fused loss
  AttentionKernels attention = AttentionKernels::fastest;
  double channels = 0;              // multiprocessors occupied by a collective over `data`; 0: node.slowdown
  bool flat_layers = false;         // a layer's weights form one collective over `data`, as do its gradients
  double gather_copies = 0;         // bytes moved by kernels around a gather of weights, per byte gathered
  double reduce_copies = 0;         // the same around a reduce-scatter of gradients
  bool saves_every_second = false;  // with recompute = "full": keep attention and every second matmul
  double norm_bytes = 0;            // additional bytes per element moved by norms that are chains of kernels
  double norm_grad_bytes = 0;       // the same for their gradients
  double rotary_bytes = 0;          // the same for rotary positions, forward and backward each
  bool fp8 = false;                 // matmuls with weights take fp8 operands, cast by separate kernels
  bool groups_launches = false;     // one launch performs several instructions as the program specifies: kintsugi only
  bool shards_context = false;      // optimizer state is also split over `context`: parallel.shard_context
};

// All software models; the first is ours.
const std::vector<Software>& softwares();
const Software& software_named(std::string_view name);  // UserError if there is none

}  // namespace kintsugi::simulate
