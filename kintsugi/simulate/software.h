// What the software of a measurement does otherwise than ours, so that a published figure can be compared with the
// simulation of the same run.
#pragma once

#include <string_view>
#include <vector>

namespace kintsugi::simulate {

struct Software {
  std::string_view name = {};
  std::string_view source = {};
  bool fused_attention = true;     // false: scores are written to memory and read back
  bool fused_loss = true;          // false: logits are, in fp32
  bool overlaps_gradients = true;  // false: sums of gradients over ranks wait for the end of the backward passes
  double gradient_share = 1;       // bytes of a gradient that is sent, over ours in fp32: half in 16 bits
  double gradient_bucket = 0;      // elements that it sums at a time, or 1/40 of that for each rank if that is more;
                                   // smaller sums share a start. 0: as in the program
  bool gathers_later = false;  // weights that ranks share are gathered beside the next step's forward pass, all but the
                               // first part: a chunk of a stage, or else a layer
  bool overlaps_messages = true;   // false: a message between stages begins when the receiver needs it
  bool cuts_messages = false;      // ranks that hold the same value send a part each, and gather it (2021, section 4.1)
  bool adds_gradients = false;     // of weights, in a kernel of its own for each micro-batch after the first
  bool starts_early = false;       // a collective of the backward pass begins up to one product before ours
  bool repeats_layers = false;     // what is computed again of a layer includes its last product, which nobody reads
  bool joins_products = false;     // of one operand in a layer: query, key and value; gate and up
  bool joins_activations = true;   // false: they are kernels of their own, not done by the products
  bool joins_sums = false;         // gradients of biases are made with those of norms or of weights
  bool joins_elementwise = false;  // biases, dropout and residuals added one after another are one kernel
  bool keeps_masks = false;        // of dropout; and norms have two kernels for their gradients
  bool sequence_first = false;     // the outermost dim is the sequence: its parts need not be stacked
  double update_bytes = 0;         // of each weight, that kernels around the update read and write beside ours
  double host_time = 0;            // seconds of the host for each kernel, where it waits for one before the next
  bool pieces = false;             // products hide gathers and sums over `tensor`: see Builder::hide
  double sum_units = 0;     // of the device that a sum over `tensor` beside a product of the forward pass occupies
  double logit_bytes = 52;  // read and written for each logit, forward and backward, without a fused loss
  std::string_view attention =
      "";                    // its kernels, whose shares the cluster's file has: "triton", "flash2"; "": the best
  double channels = 0;       // units of the device that a collective over `data` occupies; 0: node.slowdown
  bool flat_layers = false;  // a layer's weights are one collective over `data`, and so are its gradients
  double gather_copies = 0;  // bytes that kernels around a gather of weights move, over the bytes gathered
  double reduce_copies = 0;  // the same around a reduce-scatter of gradients
  bool saves_every_second = false;  // with recompute = "full": attention and each second product are kept
  double norm_bytes = 0;            // of each element, moved beside ours by norms that are chains of kernels
  double norm_grad_bytes = 0;       // the same for their gradients
  double rotary_bytes = 0;          // the same for rotary positions, forward and backward each
  bool fp8 = false;                 // products with weights take operands in fp8, cast by kernels of their own
  bool groups_launches = false;     // one launch performs instructions as the program says: this program alone
  bool shards_context = false;      // optimizer state is split over `context` too: parallel.shard_context
};

// The visible list; the first is ours.
const std::vector<Software>& softwares();
const Software& software_named(std::string_view name);  // UserError if there is none

}  // namespace kintsugi::simulate
