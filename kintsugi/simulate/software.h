// What the software of a measurement does otherwise than ours, so that a published figure can be held against the
// simulation of the same run.
#pragma once

#include <string_view>
#include <vector>

namespace kintsugi::simulate {

struct Software {
  std::string_view name;
  std::string_view source;
  bool fused_attention = true;         // false: scores are written to memory and read back
  bool fused_loss = true;              // false: logits are, in fp32
  bool overlaps_gradients = true;      // false: sums of gradients over ranks wait for the end of the backward pass
  bool awaits_gradients_last = false;  // they are waited for before the update, not at the end of each backward pass
  double gradient_share = 1;           // bytes of a gradient that is sent, over ours: half where it is in 16 bits
  double gradient_bucket = 0;          // bytes that it sums at a time; smaller sums share a start. 0: as in the program
  bool overlaps_messages = true;       // false: a message between stages begins when the receiver needs it
  bool cuts_messages = false;   // ranks that hold the same value send a part each, and gather it (2021, section 4.1)
  bool adds_gradients = false;  // of weights, in a kernel of its own for each micro-batch after the first
  bool starts_early = false;    // a collective of the backward pass begins up to one product before ours
  bool repeats_layers = false;  // what is computed again of a layer includes its last product, which nobody reads
  double hidden_tensor = 0;     // the part of communication over the axis `tensor` that products hide in pieces
};

// The visible list; the first is ours.
const std::vector<Software>& softwares();
const Software& software_named(std::string_view name);  // UserError if there is none

}  // namespace kintsugi::simulate
