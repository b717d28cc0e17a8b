#include "kintsugi/simulate/software.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "kintsugi/base/error.h"

namespace kintsugi::simulate {
namespace {

// Section 4.2: biases fused with GeLU, and with dropout and residual; section 4.1: messages in parts. From the release:
// attention as two batched matmuls with a fused softmax and a dropout between them (model/transformer.py, with the
// sequence as the outermost dim and one matmul for query, key and value); 16-bit gradients, which autograd accumulates
// by separate kernels, and which are reduced over `data` after the last backward pass; messages wait for their receiver
// (p2p_communication.py); recomputation of complete layers. The update reads and writes 28 bytes more than ours per
// weight gradient: cast to fp32 (6), unscaled and checked (8), clipped (8), weight cast (4), zeroed (2)
// (optimizer/optimizer.py, clip_grads.py).
constexpr Software kMegatron2021 = {
    .name = "megatron-2021",
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
    .joins_activations = false,
    .joins_elementwise = true,
    .keeps_masks = true,
    .sequence_first = true,
    .update_bytes = 28,
};

// The same: it was forked before matmuls accumulated gradients.
Software megatron_deepspeed() {
  Software s = kMegatron2021;
  s.name = "megatron-deepspeed";
  s.source = "Microsoft Megatron-DeepSpeed and forks, 2021 to 2022: Megatron-LM of before release 3.0";
  return s;
}

// A fork of that, with CUDA_LAUNCH_BLOCKING=1: the host launches a kernel only after the previous one has ended. Its
// time for each of our kernels, for which a PyTorch that recomputes layers launches several, follows from the eighteen
// pairs of runs that differ only in micro_batch: with this value, half of them change by more than simulated, half by
// less. A single value for all rows: good for a ranking, not for a time.
Software bloom() {
  Software s = megatron_deepspeed();
  s.name = "bloom-2022";
  s.source = "BigScience, train/tr11-176B-ml/chronicles-prequel.md, February 2022";
  s.host_time = 140e-6;
  return s;
}

// The same with bf16, from 28 February on: gradients are accumulated, and thus reduced, in fp32.
Software bloom_bf16() {
  Software s = bloom();
  s.name = "bloom-2022-bf16";
  s.source = "BigScience, train/tr11-176B-ml/chronicles-prequel.md, \"Rebalancing layers\"";
  s.gradient_share = 1;
  return s;
}

// As megatron-2021, but matmuls accumulate gradients in fp32 (tensor_parallel/layers.py, wgrad_gemm_accum_fp32), and
// gathers and sums over `tensor` overlap with one of the two matmuls of a gradient. The update: unscaled and checked
// (8), clipped (8), the weight cast (4), zeroed (4).
Software megatron_2022() {
  Software s = kMegatron2021;
  s.name = "megatron-2022";
  s.source = "Korthikanti et al. 2022, section 4.2.2; Megatron-LM, release 3.0";
  s.gradient_share = 1;
  s.adds_gradients = false;
  s.starts_early = true;
  s.update_bytes = 24;
  return s;
}

// Differences in eager PyTorch: activations and residuals are separate kernels, and so is each step of an update. FSDP
// makes a layer one flat parameter: autograd concatenates the gradients of its views before they are reduced. NCCL's
// rings on eight A100 have 24 channels, each a block on a multiprocessor ("Channel 00/24" in its logs).
constexpr Software kPyTorchFsdp = {
    .name = "pytorch-fsdp",
    .source = "llm-foundry, October 2023: PyTorch 2.1 FSDP, mixed_precision PURE, attn_impl triton; Composer",
    .fused_loss = false,
    .gathers_later = true,
    .joins_products = true,
    .joins_activations = false,
    // Composer's DecoupledAdamW is a chain of kernels over fp32: first moment 8 + 12, second 8 + 12, root 8, division
    // 8, addition of epsilon 8, weight 16. Gradients are cast (6), their norm read (4) and clipped (8), weights cast
    // (6). Minus the 28 of ours.
    .update_bytes = 76,
    // The fused loss reads the logits and overwrites them with their gradient (6); the two metrics of each training
    // batch, LanguageCrossEntropy and LanguagePerplexity, cast them to fp32 and normalize them (14 each).
    .logit_bytes = 34,
    .attention = AttentionKernels::triton,
    .channels = 24,
    .flat_layers = true,
    .reduce_copies = 2,
};

// FSDP2: gathered weights are copied out of a buffer per parameter; gradients are cast to fp32 in one buffer for all.
// Eager norms cast to fp32, square, average, multiply, cast and multiply by the weights (36 bytes per element, and 76
// in the backward pass; ours move 4 and 8); rotary positions cast, multiply complex numbers and cast (20; ours move 4).
constexpr Software kTorchtitan = {
    .name = "torchtitan",
    .source = "torchtitan, December 2024: PyTorch 2.6 FSDP2, gradients reduced in fp32, checkpointing of operations",
    .fused_loss = false,
    .gathers_later = true,
    .joins_activations = false,
    .update_bytes = 16,
    .attention = AttentionKernels::flash2,
    .channels = 16,
    .flat_layers = true,
    .gather_copies = 2,
    .reduce_copies = 1.5,
    .saves_every_second = true,
    .norm_bytes = 32,
    .norm_grad_bytes = 68,
    .rotary_bytes = 16,
};

// The same with torch.compile per block: consecutive elementwise operations fuse to one kernel, as does the loss.
Software torchtitan_compiled() {
  Software s = kTorchtitan;
  s.name = "torchtitan-compile";
  s.joins_activations = true;
  s.joins_elementwise = true;
  s.norm_bytes = s.norm_grad_bytes = s.rotary_bytes = 0;
  return s;
}

// Megatron's profile for H100.
//
// Flash attention of cuDNN. The user guide: gradient sums in buckets that overlap with all backward passes, in bf16
// (grad_reduce_in_fp32 is off); weight gathers overlap with forward passes, with one part exposed; gathers and sums
// over `tensor` overlap with matmuls. Of these, the configurations for H100 (userbuffers_bf16_h100_*): a ring exchange
// where a gather's result is multiplied, 4 pieces where the result of a matmul is summed in the forward pass, with 16
// multiprocessors for the sum (24 for the smaller matmul of attention), and bulk, overlapping with the matmul of the
// other gradient, elsewhere. Gradients in bf16 are train.gradient_dtype. The update: cast to fp32 (6), clipped (8), the
// weight cast (4), zeroed (2), and read by norm and optimizer in fp32 (4).
constexpr Software kMegatron2025 = {
    .name = "megatron-2025",
    .source =
        "NeMo user guide, communication overlap; Megatron-LM, distributed data parallel, bucket size; NeMo, "
        "tp_overlap_configs/userbuffers.py",
    .fused_loss = false,
    .gradient_bucket = 40e6,
    .gathers_later = true,
    .cuts_messages = true,
    .starts_early = true,
    .joins_products = true,
    .joins_activations = false,
    .joins_elementwise = true,
    .sequence_first = true,
    .update_bytes = 24,
    .pieces = true,
    .sum_units = 16,
    .shards_context = true,
};

// The same with fp8: matmuls with weights, forward and backward, with delayed scaling (Transformer Engine, recipe
// DelayedScaling, format HYBRID); attention, the head and everything else stay in bf16.
Software megatron_2025_fp8() {
  Software s = kMegatron2025;
  s.name = "megatron-2025-fp8";
  s.fp8 = true;
  return s;
}

}  // namespace

const std::vector<Software>& softwares() {
  static const std::vector<Software> list = {
      {.name = "kintsugi", .source = "the program as it is", .joins_sums = true, .groups_launches = true},
      kMegatron2021,
      megatron_deepspeed(),
      bloom(),
      bloom_bf16(),
      megatron_2022(),
      kMegatron2025,
      megatron_2025_fp8(),
      kPyTorchFsdp,
      kTorchtitan,
      torchtitan_compiled(),
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
