// The list of device kernels. Operands and outputs are those of the reference.
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/gpu/kernels.h"
#include "kintsugi/kernels/gpu/rows.h"
#include "kintsugi/kernels/operands.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::Capability;

constexpr std::string_view kNormDx[] = {"dx"};
constexpr std::string_view kOfToken[] = {"rotary", "cache_write"};
constexpr std::string_view kRelu[] = {"relu"};
constexpr std::string_view kNorms[] = {"layer_norm", "rms_norm"};

constexpr kernels::Ability kAttentionAbilities[] = {{Capability::follow, kOfToken}};
constexpr kernels::Ability kBatchNormAbilities[] = {{Capability::epilogue, kRelu}, {Capability::add}};
constexpr kernels::Ability kParts[] = {{Capability::parts}};
constexpr kernels::Ability kColumns[] = {{Capability::columns}};
constexpr kernels::Ability kContractAbilities[] = {{Capability::epilogue, kernels::kActivations},
                                                   {Capability::add},
                                                   {Capability::columns},
                                                   {Capability::follow, kNorms}};
constexpr kernels::Ability kGroupedAbilities[] = {{Capability::add}};
constexpr kernels::Ability kLayerNormGradAbilities[] = {{Capability::accumulate, kNormDx}, {Capability::row_sums}};
constexpr kernels::Ability kRmsNormGradAbilities[] = {{Capability::accumulate, kNormDx}};

constexpr kernels::DeviceRow kRows[] = {
    {"accumulate", accumulate},
    {"adadelta", adadelta},
    {"adam_direction", adam_direction},
    {.kind = "adamw", .run = adamw, .together = adamw_together},
    {"adamw16", adamw16},
    {"adamw8", adamw8},
    {"adaptive_pool", adaptive_pool},
    {"adaptive_pool_grad", adaptive_pool_grad},
    {"add", add},
    {"apply_direction", apply_direction},
    {"assign_slots", assign_slots, assign_slots_workspace},
    {.kind = "attention",
     .run = attention,
     .workspace = attention_workspace,
     .prepares = true,
     .abilities = kAttentionAbilities,
     .together = attention_together},
    {"attention_at", attention_at},
    {.kind = "attention_grad",
     .run = attention_grad,
     .workspace = attention_grad_workspace,
     .prepares = true,
     .abilities = kColumns},
    {"attention_join", attention_join},
    {"average_pool", average_pool},
    {"average_pool_grad", average_pool_grad},
    {"balance_bias", balance_bias},
    {"balance_loss", balance_loss, balance_loss_workspace},
    {"balance_loss_grad", balance_loss_grad, router_loss_grad_workspace},
    {"batch_moments", batch_moments},
    {.kind = "batch_norm", .run = batch_norm, .abilities = kBatchNormAbilities},
    {"batch_norm_grad", batch_norm_grad},
    {"batch_norm_sums", batch_norm_sums, batch_statistics_workspace},
    {"batch_statistics", batch_statistics, batch_statistics_workspace},
    {"broadcast", broadcast},
    {.kind = "cache_write", .run = cache_write, .together = cache_write_together},
    {"cache_write_at", cache_write_at},
    {"cast", cast},
    {"channel_scale", channel_scale},
    {"channel_scale_sums", channel_scale_sums, channel_scale_sums_workspace},
    {"clamped_gated", clamped_gated},
    {"clamped_gated_grad", clamped_gated_grad},
    {"class_hits", class_hits, class_loss_workspace},
    {"class_loss", class_loss, class_loss_workspace},
    {"class_loss_grad", class_loss_grad},
    {"combine", combine},
    {"concatenate", concatenate},
    {.kind = "contract",
     .run = contract,
     .workspace = contract_workspace,
     .prepares = true,
     .abilities = kContractAbilities,
     .thin_rows = kThinRows,
     .together = contract_together},
    {"convolution", convolution, convolution_workspace, true, kParts},
    {"convolution_grad_input", convolution_grad_input, convolution_grad_input_workspace, true},
    {"convolution_grad_weight", convolution_grad_weight, convolution_grad_weight_workspace, true},
    {"cross_entropy", cross_entropy, cross_entropy_workspace},
    {"cross_entropy_grad", cross_entropy_grad},
    {"dispatch", dispatch},
    {"drop_path", drop_path},
    {"dropout", dropout},
    {"embedding", embedding},
    {"embedding_grad", embedding_grad, embedding_grad_workspace},
    {"expert_balance", expert_balance},
    {"expert_bias", expert_bias},
    {"expert_bias_grad", expert_bias_grad},
    {"expert_load", expert_load},
    {"factored_direction", factored_direction},
    {"factored_moments", factored_moments},
    {"factored_sums", factored_sums, factored_sums_workspace},
    {"field_errors", field_errors, field_errors_workspace},
    {"field_errors_grad", field_errors_grad},
    {"fill", fill},
    {"first", first},
    {"first_grad", first_grad},
    {"gated", gated},
    {"gated_grad", gated_grad},
    {"gelu", gelu},
    {"gelu_grad", gelu_grad},
    {"group_norm", group_norm},
    {"group_norm_grad", group_norm_grad},
    {"group_norm_sums", group_norm_sums, group_statistics_workspace},
    {"group_statistics", group_statistics, group_statistics_workspace},
    {.kind = "grouped", .run = grouped, .abilities = kGroupedAbilities},
    {"halo_add", halo_add},
    {"halo_pack", halo_pack},
    {.kind = "halo_place", .run = halo_place, .abilities = kParts},
    {"head", head, head_workspace, true},
    {"head_grad", head_grad, head_grad_workspace, true},
    {"head_with_grad", head_with_grad, head_with_grad_workspace, true},
    {"join_columns", join_columns},
    {"join_head_dims", join_head_dims},
    {"join_head_dims_grad", join_head_dims_grad},
    {"lars", lars},
    {"layer_norm", layer_norm},
    {.kind = "layer_norm_grad",
     .run = layer_norm_grad,
     .workspace = norm_grad_workspace,
     .abilities = kLayerNormGradAbilities},
    {"leaky_relu", leaky_relu},
    {"leaky_relu_grad", leaky_relu_grad},
    {"lion", lion},
    {"logsumexp", logsumexp},
    {"loss_scale", loss_scale},
    {"mask", mask},
    {"max_pool", max_pool},
    {"max_pool_grad", max_pool_grad},
    {"moving_average", moving_average},
    {"muon_momentum", muon_momentum},
    {"orthogonalize", orthogonalize, orthogonalize_workspace, true},
    {"pixels", pixels},
    {"policy_loss", policy_loss, policy_loss_workspace},
    {"policy_loss_grad", policy_loss_grad},
    {"position", position},
    {"position_at", position_at},
    {"position_grad", position_grad},
    {"preference_loss", preference_loss, preference_loss_workspace},
    {"preference_loss_grad", preference_loss_grad},
    {"relative_error", relative_error, relative_error_workspace},
    {"relative_error_grad", relative_error_grad},
    {"relu", relu},
    {"relu_grad", relu_grad},
    {"relu2", relu2},
    {"relu2_grad", relu2_grad},
    {"rms_norm", rms_norm},
    {"rms_norm_grad", rms_norm_grad, norm_grad_workspace, false, kRmsNormGradAbilities},
    {.kind = "rotary", .run = rotary, .together = rotary_together},
    {"rotary_at", rotary_at},
    {"route", route},
    {"route_grad", route_grad},
    {"router_z_loss", router_z_loss, router_z_loss_workspace},
    {"router_z_loss_grad", router_z_loss_grad, router_loss_grad_workspace},
    {"running_moments", running_moments},
    {"running_statistics", running_statistics},
    {"sample_scores", sample_scores},
    {"scale", scale},
    {"sgd", sgd},
    {"silu", silu},
    {"silu_grad", silu_grad},
    {"slice", slice},
    {"split_columns", split_columns},
    {"squared_error", squared_error, squared_error_workspace},
    {"squared_error_grad", squared_error_grad},
    {"stack", stack},
    {.kind = "sum", .run = sum, .workspace = sum_workspace, .abilities = kColumns},
    {"sum_blocks", sum_blocks, sum_blocks_workspace},
    {"sum_squares", sum_squares},
    {"take", take},
    {"take_rows", take_rows},
    {"tanh", tanh},
    {"tanh_grad", tanh_grad},
    {"transposed_convolution", transposed_convolution, transposed_convolution_workspace, true},
    {"unfactored_direction", unfactored_direction},
    {"unstack", unstack},
    {"update_scale", update_scale, sum_blocks_workspace},
    {"upsample", upsample},
    {"upsample_grad", upsample_grad},
    {"weigh", weigh},
    {"weighted_scores", weighted_scores},
    {"weighted_scores_grad", weighted_scores_grad},
};

}  // namespace

std::span<const kernels::DeviceRow> rows() {
  return kRows;
}

}  // namespace kintsugi::KINTSUGI_GPU

#if KINTSUGI_ON_GPU
extern "C" __attribute__((visibility("default"))) void kintsugi_device_rows_11(
    std::span<const kintsugi::kernels::DeviceRow>* rows) {
  *rows = kintsugi::KINTSUGI_GPU::rows();
}
#endif
