#include "kintsugi/simulate/software.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "kintsugi/base/error.h"

namespace kintsugi::simulate {

const std::vector<Software>& softwares() {
  static const std::vector<Software> list = {
      {.name = "kintsugi", .source = "the program as it is"},
      // Attention as two batched products with a fused softmax and a dropout between them; gradients in 16 bits are
      // added by kernels of their own, and summed over `data` after the last backward pass; messages wait for their
      // receiver; a layer is computed again with all that it has.
      {.name = "megatron-2021",
       .source = "Narayanan et al. 2021, section 4; Megatron-LM, release 2.5",
       .fused_attention = false,
       .fused_loss = false,
       .overlaps_gradients = false,
       .gradient_share = 0.5,
       .gradient_bucket = 40e6,
       .overlaps_messages = false,
       .cuts_messages = true,
       .adds_gradients = true,
       .repeats_layers = true,
       .joins_products = true,
       .joins_elementwise = true,
       .keeps_masks = true,
       .sequence_first = true,
       .update_bytes = 28},
      // The same: it was forked before products added to gradients.
      {.name = "megatron-deepspeed",
       .source = "Microsoft Megatron-DeepSpeed and forks, 2021 to 2022: Megatron-LM of before release 3.0",
       .fused_attention = false,
       .fused_loss = false,
       .overlaps_gradients = false,
       .gradient_share = 0.5,
       .gradient_bucket = 40e6,
       .overlaps_messages = false,
       .cuts_messages = true,
       .adds_gradients = true,
       .repeats_layers = true,
       .joins_products = true,
       .joins_elementwise = true,
       .keeps_masks = true,
       .sequence_first = true,
       .update_bytes = 28},
      // As megatron-2021, but products add to gradients, and gathers and sums over `tensor` run beside one of the two products
      // of a gradient.
      {.name = "megatron-2022",
       .source = "Korthikanti et al. 2022, section 4.2.2; Megatron-LM, release 3.0",
       .fused_attention = false,
       .fused_loss = false,
       .overlaps_gradients = false,
       .gradient_bucket = 40e6,
       .overlaps_messages = false,
       .cuts_messages = true,
       .starts_early = true,
       .repeats_layers = true,
       .joins_products = true,
       .joins_elementwise = true,
       .keeps_masks = true,
       .sequence_first = true,
       .update_bytes = 24},
      // Flash attention of cuDNN, products in pieces that hide gathers and sums over `tensor`, sums of gradients in
      // buckets that run beside all backward passes, and gathers of weights beside forward passes.
      {.name = "megatron-2025",
       .source = "NeMo user guide, communication overlap; Megatron-LM, distributed data parallel, bucket size",
       .fused_loss = false,
       .awaits_gradients_last = true,
       .gradient_bucket = 40e6,
       .gathers_later = true,
       .cuts_messages = true,
       .starts_early = true,
       .joins_products = true,
       .joins_elementwise = true,
       .sequence_first = true,
       .update_bytes = 20,
       .pieces = true,
       .sum_units = 16},
  };
  return list;
}

const Software& software_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Software& s : softwares()) {
    if (s.name == name) return s;
    names.push_back(s.name);
  }
  throw base::UserError("simulate", "no software is named \"{}\"; there are {}", name, fmt::join(names, ", "));
}

}  // namespace kintsugi::simulate
