#include "kintsugi/kernels/cpu/kernels.h"

#include <array>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/cpu/experts.h"
#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/cpu/optimizers.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels {
namespace cpu {
namespace {

// All operations.
constexpr CpuKernel kKernels[] = {
    {"fill", fill, fill_takes},
    {"broadcast", broadcast, broadcast_takes},
    {"add", add, add_takes},
    {"scale", scale, first_is_fast},
    {"sum", sum, sum_takes, sum_workspace},
    {"cast", cast, cast_takes},
    {"contract", contract, contract_takes, contract_workspace},
    {"embedding", embedding, second_is_fast},
    {"embedding_grad", embedding_grad, second_is_fast},
    {"position", position, first_is_fast},
    {"position_grad", position_grad, first_is_fast},
    {"layer_norm", layer_norm, first_is_fast},
    {"layer_norm_grad", layer_norm_grad, first_is_fast, norm_grad_workspace},
    {"rms_norm", rms_norm, first_is_fast},
    {"rms_norm_grad", rms_norm_grad, first_is_fast, norm_grad_workspace},
    {"gelu", gelu, first_is_fast},
    {"gelu_grad", gelu_grad, first_is_fast},
    {"silu", silu, first_is_fast},
    {"silu_grad", silu_grad, first_is_fast},
    {"relu", relu, first_is_fast},
    {"relu_grad", relu_grad, first_is_fast},
    {"relu2", relu2, first_is_fast},
    {"relu2_grad", relu2_grad, first_is_fast},
    {"tanh", tanh, first_is_fast},
    {"tanh_grad", tanh_grad, first_is_fast},
    {"gated", gated, gated_takes},
    {"gated_grad", gated_grad, gated_grad_takes},
    {"rotary", rotary, first_is_fast, rotary_workspace},
    {"route", nullptr, nothing_is_fast},
    {"route_grad", nullptr, nothing_is_fast},
    {"balance_loss", nullptr, nothing_is_fast},
    {"balance_loss_grad", nullptr, nothing_is_fast},
    {"expert_load", nullptr, nothing_is_fast},
    {"expert_balance", nullptr, nothing_is_fast},
    {"balance_bias", nullptr, nothing_is_fast},
    {"router_z_loss", nullptr, nothing_is_fast},
    {"router_z_loss_grad", nullptr, nothing_is_fast},
    {"assign_slots", nullptr, nothing_is_fast},
    {"dispatch", dispatch, slots_take},
    {"combine", combine, slots_take},
    {"weigh", weigh, slots_take},
    {"grouped", grouped, grouped_takes, grouped_workspace},
    {"expert_bias", expert_bias, expert_bias_takes},
    {"expert_bias_grad", expert_bias_grad, expert_bias_takes},
    {"clamped_gated", clamped_gated, gated_takes},
    {"clamped_gated_grad", clamped_gated_grad, gated_grad_takes},
    {"join_head_dims", join_head_dims, join_head_dims_takes},
    {"join_head_dims_grad", join_head_dims_grad, join_head_dims_takes},
    {"attention", attention, first_is_fast, attention_workspace},
    {"attention_grad", attention_grad, first_is_fast, attention_grad_workspace},
    {"dropout", dropout, first_is_fast},
    {"head", head, first_is_fast, head_workspace},
    {"head_grad", head_grad, first_is_fast, head_grad_workspace},
    {"head_with_grad", head_with_grad, first_is_fast, head_with_grad_workspace},
    {"cross_entropy", cross_entropy, cross_entropy_takes},
    {"cross_entropy_grad", cross_entropy_grad, cross_entropy_grad_takes},
    {"sample_scores", sample_scores, sample_scores_takes},
    {"weighted_scores", nullptr, nothing_is_fast},
    {"weighted_scores_grad", nullptr, nothing_is_fast},
    {"preference_loss", nullptr, nothing_is_fast},
    {"preference_loss_grad", nullptr, nothing_is_fast},
    {"policy_loss", nullptr, nothing_is_fast},
    {"policy_loss_grad", nullptr, nothing_is_fast},
    {"class_loss", class_loss, sample_loss_takes},
    {"class_loss_grad", class_loss_grad, sample_loss_takes},
    {"squared_error", squared_error, sample_loss_takes},
    {"squared_error_grad", squared_error_grad, sample_loss_takes},
    {"field_errors", field_errors, field_errors_take},
    {"field_errors_grad", field_errors_grad, field_errors_grad_takes},
    {"relative_error", nullptr, nothing_is_fast},
    {"relative_error_grad", nullptr, nothing_is_fast},
    {"first", first, first_is_fast},
    {"first_grad", first_grad, first_is_fast},
    {"accumulate", accumulate, accumulate_takes},
    {"sum_squares", sum_squares, first_is_fast},
    {"sum_blocks", sum_blocks, scalars_take},
    {"update_scale", update_scale, scalars_take},
    {"adamw", adamw, adamw_takes},
    {"sgd", sgd, sgd_takes},
    {"adamw8", adamw8, adamw8_takes},
    {"adamw16", adamw16, adamw16_takes},
    {"lion", lion, optimizer_takes},
    {"adadelta", adadelta, optimizer_takes},
    {"adam_direction", adam_direction, optimizer_takes},
    {"apply_direction", apply_direction, optimizer_takes},
    {"lars", lars, optimizer_takes},
    {"muon_momentum", muon_momentum, optimizer_takes},
    {"orthogonalize", orthogonalize, orthogonalize_takes, orthogonalize_workspace},
    {"factored_sums", nullptr, nothing_is_fast},
    {"factored_moments", nullptr, nothing_is_fast},
    {"factored_direction", nullptr, nothing_is_fast},
    {"unfactored_direction", nullptr, nothing_is_fast},
    {"moving_average", moving_average, optimizer_takes},
    {"loss_scale", loss_scale, scalars_take},
    {"cache_write", cache_write, first_is_fast},
    {"take", take, first_is_fast},
    {"cache_write_at", cache_write_at, first_is_fast},
    {"attention_at", attention_at, first_is_fast, attention_at_workspace},
    {"rotary_at", rotary_at, first_is_fast, rotary_at_workspace},
    {"position_at", position_at, first_is_fast},
    {"take_rows", take_rows, first_is_fast},
    {"join_columns", nullptr, nothing_is_fast},
    {"split_columns", nullptr, nothing_is_fast},
    {"stack", stack, stack_takes},
    {"unstack", unstack, stack_takes},
    {"halo_pack", halo_pack, halo_takes},
    {"halo_place", halo_place, halo_takes},
    {"halo_add", halo_add, halo_add_takes},
    {"mask", mask, mask_takes},
    {"logsumexp", logsumexp, logsumexp_takes},
    {"attention_join", attention_join, attention_join_takes},
    {"class_hits", nullptr, nothing_is_fast},
    {"pixels", pixels, pixels_take},
    {"convolution", convolution, convolution_takes, convolution_workspace},
    {"convolution_grad_input", convolution_grad_input, convolution_takes, convolution_grad_input_workspace},
    {"convolution_grad_weight", convolution_grad_weight, convolution_takes, convolution_grad_weight_workspace},
    {"max_pool", max_pool, pool_takes},
    {"max_pool_grad", max_pool_grad, pool_takes, pool_grad_workspace},
    {"average_pool", average_pool, pool_takes},
    {"average_pool_grad", average_pool_grad, pool_takes, pool_grad_workspace},
    {"batch_statistics", batch_statistics, batch_statistics_takes, batch_statistics_workspace},
    {"batch_norm", batch_norm, batch_norm_takes, batch_norm_workspace},
    {"batch_norm_sums", batch_norm_sums, batch_norm_takes, batch_norm_sums_workspace},
    {"batch_norm_grad", batch_norm_grad, batch_norm_takes, batch_norm_workspace},
    {"leaky_relu", leaky_relu, first_is_fast},
    {"leaky_relu_grad", leaky_relu_grad, first_is_fast},
    {"transposed_convolution", transposed_convolution, convolution_takes, transposed_convolution_workspace},
    {"upsample", upsample, resample_takes, resample_workspace},
    {"upsample_grad", upsample_grad, resample_takes, resample_workspace},
    {"adaptive_pool", adaptive_pool, resample_takes, resample_workspace},
    {"adaptive_pool_grad", adaptive_pool_grad, resample_takes, resample_workspace},
    {"concatenate", nullptr, nothing_is_fast},
    {"slice", nullptr, nothing_is_fast},
    {"drop_path", drop_path, first_is_fast, channel_scale_workspace},
    {"channel_scale", channel_scale, first_is_fast, channel_scale_workspace},
    {"channel_scale_sums", channel_scale_sums, first_is_fast, channel_scale_sums_workspace},
    {"group_statistics", group_statistics, group_norm_takes, group_norm_workspace},
    {"group_norm", group_norm, group_norm_takes, group_norm_workspace},
    {"group_norm_sums", group_norm_sums, group_norm_takes, group_norm_workspace},
    {"group_norm_grad", group_norm_grad, group_norm_takes, group_norm_workspace},
    {"running_statistics", nullptr, nothing_is_fast},
    {"batch_moments", nullptr, nothing_is_fast},
    {"running_moments", nullptr, nothing_is_fast},
};
constexpr size_t kNumKernels = std::size(kKernels);

const Kernel& reference(std::string_view kind) {
  static const std::unique_ptr<const KernelSet> set = reference_kernels();
  return set->find(kind);
}

// The only place that selects between the fast kernel and the reference.
void run_either(const CpuKernel& kernel, const KernelCall& call) {
  if (kernel.takes({Types(call.ins), Types(call.outs), call.attributes})) return kernel.run(call);
  reference(kernel.kind).run(call);
}
int64_t workspace_of_either(const CpuKernel& kernel, const KernelShapes& shapes) {
  if (kernel.takes({Types(shapes.ins), Types(shapes.outs), shapes.attributes}))
    return kernel.workspace ? kernel.workspace(shapes) : 0;
  const Kernel& other = reference(kernel.kind);
  return other.workspace ? other.workspace(shapes) : 0;
}

template <size_t I>
void run(const KernelCall& call) {
  run_either(kKernels[I], call);
}
template <size_t I>
int64_t workspace(const KernelShapes& shapes) {
  return workspace_of_either(kKernels[I], shapes);
}

// Either may compute, so both take the operands in the same order.
template <size_t I>
Kernel dispatched() {
  const Kernel& other = reference(kKernels[I].kind);
  return {.kind = other.kind,
          .ins = other.ins,
          .outs = other.outs,
          .run = run<I>,
          .workspace = workspace<I>,
          .abilities = other.abilities};
}
template <size_t... I>
std::array<Kernel, kNumKernels> make_kernels(std::index_sequence<I...>) {
  return {dispatched<I>()...};
}

class CpuKernels : public KernelSet {
 public:
  std::string_view name() const override { return "cpu"; }
  const Kernel& find(std::string_view kind) const override {
    static const std::array<Kernel, kNumKernels> kernels = make_kernels(std::make_index_sequence<kNumKernels>());
    for (const Kernel& kernel : kernels)
      if (kernel.kind == kind) return kernel;
    throw base::InternalError("kernel", "the CPU kernels have no \"{}\"", kind);
  }
};

}  // namespace

bool is_fast(tensor::DType dtype) {
  return dtype == tensor::DType::f32 || dtype == tensor::DType::bf16 || dtype == tensor::DType::f16;
}
bool nothing_is_fast(const Operands&) {
  return false;
}
bool first_is_fast(const Operands& o) {
  return is_fast(o.ins[0].dtype);
}
bool second_is_fast(const Operands& o) {
  return is_fast(o.ins[1].dtype);
}
bool one_number(const Operands& o) {
  return scalars_take(o) && o.outs[0].shape.elements() == 1;
}

}  // namespace cpu

std::unique_ptr<KernelSet> cpu_kernels() {
  return std::make_unique<cpu::CpuKernels>();
}

}  // namespace kintsugi::kernels
