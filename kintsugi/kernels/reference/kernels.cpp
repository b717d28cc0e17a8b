// The list of reference kernels, with the operands and outputs of each by name.
#include "kintsugi/base/error.h"
#include "kintsugi/kernels/adamw8.h"
#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/experts.h"
#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels {
namespace {

using tensor::optional;
using tensor::rest;

// Gradients of frozen weights are absent.
constexpr OperandList kHeadGradOuts = {"dx", optional("dtable"), optional("dbias")},
                      kHeadWithGradOuts = {"lse", "target", "dx", optional("dtable"), optional("dbias")},
                      kNormGradOuts = {"dx", optional("dgamma"), optional("dbeta"), optional("sums")};

constexpr std::string_view kRelu[] = {"relu"}, kFirstDims[] = {kFirstDim};
constexpr Ability kMatmulAbilities[] = {{Capability::epilogue, kActivations}},
                  kBatchNormAbilities[] = {{Capability::epilogue, kRelu}, {Capability::add}},
                  kGroupedAbilities[] = {{Capability::add}}, kHaloAbilities[] = {{Capability::parts}},
                  kConvolutionAbilities[] = {{Capability::parts, kFirstDims}};

constexpr Kernel kKernels[] = {
    {"accumulate", {"x"}, {"y", rest("levels")}, reference::accumulate},
    {"adamw", AdamwIn::kNames, AdamwOut::kNames, reference::adamw},
    {"add", {rest("x")}, {"y"}, reference::add},
    {"attention", AttentionIn::kNames, AttentionOut::kNames, reference::attention},
    {"attention_grad", AttentionGradIn::kNames, AttentionGradOut::kNames, reference::attention_grad},
    {"attention_join", AttentionJoinIn::kNames, AttentionOut::kNames, reference::attention_join},
    {"broadcast", {"x"}, {"y"}, reference::broadcast},
    {"cache_write", {"cache", "x"}, {"y"}, reference::cache_write},
    {"cast", {"x"}, {"y"}, reference::cast},
    {"class_loss", ClassLossIn::kNames, {"loss", "count"}, reference::class_loss},
    {"class_loss_grad", ClassLossIn::kGradNames, {"dlogits"}, reference::class_loss_grad},
    {.kind = "contract",
     .ins = ContractIn::kNames,
     .outs = ContractOut::kNames,
     .run = reference::contract,
     .abilities = kMatmulAbilities},
    {"cross_entropy", CrossEntropyIn::kNames, {"loss", "count"}, reference::cross_entropy},
    {"cross_entropy_grad", {"labels", "dloss"}, {"dlse", "dtarget"}, reference::cross_entropy_grad},
    {"dropout", {"x"}, {"y"}, reference::dropout},
    {"embedding", {"tokens", "table"}, {"y"}, reference::embedding},
    {"embedding_grad", {"tokens", "dy"}, {"dtable"}, reference::embedding_grad},
    {"fill", {}, {rest("y")}, reference::fill},
    {"first", {"x"}, {"y"}, reference::first},
    {"first_grad", {"dy"}, {"dx"}, reference::first_grad},
    {"gated", GatedIn::kNames, {"y"}, reference::gated},
    {"gated_grad", GatedGradIn::kNames, {"dgate", "dup"}, reference::gated_grad},
    {"gelu", {"x"}, {"y"}, reference::gelu},
    {"gelu_grad", {"x", "dy"}, {"dx"}, reference::gelu_grad},
    {"halo_add", {"x", tensor::optional("received")}, {"y"}, reference::halo_add},
    {"halo_pack", {"x"}, {"packed"}, reference::halo_pack},
    {.kind = "halo_place",
     .ins = {"x", tensor::optional("received")},
     .outs = {"y"},
     .run = reference::halo_place,
     .abilities = kHaloAbilities},
    {"head", HeadIn::kNames, HeadOut::kNames, reference::head},
    {"head_grad", HeadGradIn::kNames, kHeadGradOuts, reference::head_grad},
    {"head_with_grad", HeadWithGradIn::kNames, kHeadWithGradOuts, reference::head_with_grad},
    {"join_columns", {rest("x")}, {"y"}, reference::join_columns},
    {"layer_norm", NormIn::kNames, {"y"}, reference::layer_norm},
    {"layer_norm_grad", NormGradIn::kNames, kNormGradOuts, reference::layer_norm_grad},
    {"lion", LionIn::kNames, LionOut::kNames, reference::lion},
    {"adamw8", Adamw8In::kNames, Adamw8Out::kNames, reference::adamw8},
    {"adamw16", AdamwIn::kNames, AdamwOut::kNames, reference::adamw16},
    {"adadelta", AdadeltaIn::kNames, AdadeltaOut::kNames, reference::adadelta},
    {"adam_direction", AdamwIn::kNames, AdamDirectionOut::kNames, reference::adam_direction},
    {"apply_direction", ApplyDirectionIn::kNames, ApplyDirectionOut::kNames, reference::apply_direction},
    {"lars", LarsIn::kNames, SgdOut::kNames, reference::lars},
    {"muon_momentum", MuonMomentumIn::kNames, {"m", "u"}, reference::muon_momentum},
    {"orthogonalize", {"u"}, {"u"}, reference::orthogonalize},
    {"factored_sums", {"g", "factor"}, {"row_sums", "column_sums"}, reference::factored_sums},
    {"factored_moments", FactoredMomentsIn::kNames, {"r", "c"}, reference::factored_moments},
    {"factored_direction", FactoredDirectionIn::kNames, {"u"}, reference::factored_direction},
    {"unfactored_direction", UnfactoredDirectionIn::kNames, {"v", "u"}, reference::unfactored_direction},
    {"moving_average", {"average", "w", "finite"}, {"average"}, reference::moving_average},
    {"logsumexp", {"x"}, {"y"}, reference::logsumexp},
    {"loss_scale", LossScaleIn::kNames, {"scale", "good"}, reference::loss_scale},
    {"field_errors", {"y", "targets"}, {"errors", "norms"}, reference::field_errors},
    {"field_errors_grad", {"y", "targets", "derrors"}, {"dy"}, reference::field_errors_grad},
    {"mask", {"x"}, {"y"}, reference::mask},
    {"position", {"table"}, {"y"}, reference::position},
    {"policy_loss", PolicyLossIn::kNames, PolicyLossOut::kNames, reference::policy_loss},
    {"policy_loss_grad", PolicyLossIn::kGradNames, {"dlse", "dtarget"}, reference::policy_loss_grad},
    {"preference_loss", PreferenceLossIn::kNames, PreferenceLossOut::kNames, reference::preference_loss},
    {"preference_loss_grad", PreferenceLossIn::kGradNames, {"dmargin"}, reference::preference_loss_grad},
    {"position_grad", {"dy"}, {"dtable"}, reference::position_grad},
    {"relative_error", {"errors", "norms"}, {"loss", "count"}, reference::relative_error},
    {"relative_error_grad", {"errors", "norms", "dloss"}, {"derrors"}, reference::relative_error_grad},
    {"relu", {"x"}, {"y"}, reference::relu},
    {"relu_grad", {"x", "dy"}, {"dx"}, reference::relu_grad},
    {"relu2", {"x"}, {"y"}, reference::relu2},
    {"relu2_grad", {"x", "dy"}, {"dx"}, reference::relu2_grad},
    {"rms_norm", {"x", "gamma"}, {"y"}, reference::rms_norm},
    {"rms_norm_grad", NormGradIn::kNames, {"dx", optional("dgamma")}, reference::rms_norm_grad},
    {"rotary", {"x"}, {"y"}, reference::rotary},
    {"sample_scores", SampleScoresIn::kNames, SampleScoresOut::kNames, reference::sample_scores},
    {"route", RouteIn::kNames, RouteOut::kNames, reference::route},
    {"route_grad", RouteGradIn::kNames, {"dlogits"}, reference::route_grad},
    {"balance_loss", BalanceLossIn::kNames, {"loss"}, reference::balance_loss},
    {"balance_loss_grad", BalanceLossGradIn::kNames, {"dlogits"}, reference::balance_loss_grad},
    {"expert_load", {"counts"}, {"load"}, reference::expert_load},
    {"expert_balance", {"load"}, {"most"}, reference::expert_balance},
    {"balance_bias", BalanceBiasIn::kNames, {"bias"}, reference::balance_bias},
    {"router_z_loss", RouterZLossIn::kNames, {"loss"}, reference::router_z_loss},
    {"router_z_loss_grad", RouterZLossGradIn::kNames, {"dlogits"}, reference::router_z_loss_grad},
    {"assign_slots", {"experts"}, AssignSlotsOut::kNames, reference::assign_slots},
    {"dispatch", DispatchIn::kNames, {"y"}, reference::dispatch},
    {"combine", CombineIn::kNames, {"x"}, reference::combine},
    {"weigh", WeighIn::kNames, {"dweights"}, reference::weigh},
    {.kind = "grouped",
     .ins = GroupedIn::kNames,
     .outs = {"y"},
     .run = reference::grouped,
     .abilities = kGroupedAbilities},
    {"expert_bias", ExpertBiasIn::kNames, {"y"}, reference::expert_bias},
    {"expert_bias_grad", ExpertBiasIn::kGradNames, {"dbias"}, reference::expert_bias_grad},
    {"clamped_gated", GatedIn::kNames, {"y"}, reference::clamped_gated},
    {"clamped_gated_grad", GatedGradIn::kNames, {"dgate", "dup"}, reference::clamped_gated_grad},
    {"join_head_dims", {"a", optional("b")}, {"y"}, reference::join_head_dims},
    {"join_head_dims_grad", {"y"}, {"a", optional("b")}, reference::join_head_dims_grad},
    {"scale", {"x"}, {"y"}, reference::scale},
    {"sgd", SgdIn::kNames, SgdOut::kNames, reference::sgd},
    {"silu", {"x"}, {"y"}, reference::silu},
    {"silu_grad", {"x", "dy"}, {"dx"}, reference::silu_grad},
    {"split_columns", {rest("x")}, {rest("y")}, reference::split_columns},
    {"squared_error", {"y", "targets"}, {"loss", "count"}, reference::squared_error},
    {"squared_error_grad", {"y", "targets", "dloss"}, {"dy"}, reference::squared_error_grad},
    {"stack", {"x"}, {"y"}, reference::stack},
    {"sum", {"x"}, {"y"}, reference::sum},
    {"sum_squares", {rest("g")}, {rest("blocks")}, reference::sum_squares},
    {"take", {"x"}, {"y"}, reference::take},
    {"cache_write_at", CacheWriteAtIn::kNames, {"y"}, reference::cache_write_at},
    {"attention_at", AttentionAtIn::kNames, {"o"}, reference::attention_at},
    {"rotary_at", {"x", "at"}, {"y"}, reference::rotary_at},
    {"position_at", {"table", "at"}, {"y"}, reference::position_at},
    {"take_rows", {"x", "rows"}, {"y"}, reference::take_rows},
    {"tanh", {"x"}, {"y"}, reference::tanh},
    {"tanh_grad", {"x", "dy"}, {"dx"}, reference::tanh_grad},
    {"unstack", {"y"}, {"x"}, reference::unstack},
    {"sum_blocks", {rest("blocks")}, {"sum"}, reference::sum_blocks},
    {"weighted_scores", WeightedScoresIn::kNames, {"score"}, reference::weighted_scores},
    {"weighted_scores_grad", WeightedScoresGradIn::kNames, {"dlse", "dtarget"}, reference::weighted_scores_grad},
    {"update_scale", UpdateScaleIn::kNames, UpdateScaleOut::kNames, reference::update_scale},
    {"class_hits", {"logits", "labels"}, {"top1", "top5"}, reference::class_hits},
    {"pixels", {"x"}, {"y"}, reference::pixels},
    {.kind = "convolution",
     .ins = ConvolutionIn::kNames,
     .outs = {"y"},
     .run = reference::convolution,
     .abilities = kConvolutionAbilities},
    {"convolution_grad_input", ConvolutionGradInputIn::kNames, {"dx"}, reference::convolution_grad_input},
    {"convolution_grad_weight", WindowGradIn::kNames, {"dw"}, reference::convolution_grad_weight},
    {"max_pool", {"x"}, {"y"}, reference::max_pool},
    {"max_pool_grad", WindowGradIn::kNames, {"dx"}, reference::max_pool_grad},
    {"average_pool", {"x"}, {"y"}, reference::average_pool},
    {"average_pool_grad", {"dy"}, {"dx"}, reference::average_pool_grad},
    {"batch_statistics", {"x"}, {"statistics"}, reference::batch_statistics},
    {.kind = "batch_norm",
     .ins = BatchNormIn::kNames,
     .outs = {"y"},
     .run = reference::batch_norm,
     .abilities = kBatchNormAbilities},
    {"batch_norm_sums", BatchNormSumsIn::kNames, BatchNormSumsOut::kNames, reference::batch_norm_sums},
    {"batch_norm_grad", BatchNormGradIn::kNames, {"dx"}, reference::batch_norm_grad},
    {"leaky_relu", {"x"}, {"y"}, reference::leaky_relu},
    {"leaky_relu_grad", {"x", "dy"}, {"dx"}, reference::leaky_relu_grad},
    {"transposed_convolution", ConvolutionIn::kNames, {"y"}, reference::transposed_convolution},
    {"upsample", {"x"}, {"y"}, reference::upsample},
    {"upsample_grad", {"dy"}, {"dx"}, reference::upsample_grad},
    {"adaptive_pool", {"x"}, {"y"}, reference::adaptive_pool},
    {"adaptive_pool_grad", {"dy"}, {"dx"}, reference::adaptive_pool_grad},
    {"concatenate", {"a", "b"}, {"y"}, reference::concatenate},
    {"slice", {"x"}, {"y"}, reference::slice},
    {"drop_path", {"x"}, {"y"}, reference::drop_path},
    {"channel_scale", {"x", "gamma"}, {"y"}, reference::channel_scale},
    {"channel_scale_sums", {"x", "dy"}, {"dgamma"}, reference::channel_scale_sums},
    {"group_statistics", {"x"}, {"statistics"}, reference::group_statistics},
    {"group_norm", GroupNormIn::kNames, {"y"}, reference::group_norm},
    {"group_norm_sums", GroupNormSumsIn::kNames, GroupNormSumsOut::kNames, reference::group_norm_sums},
    {"group_norm_grad", GroupNormGradIn::kNames, {"dx"}, reference::group_norm_grad},
    {"running_statistics", RunningStatisticsIn::kNames, {"mean", "variance"}, reference::running_statistics},
    {"batch_moments", {"statistics"}, {"moments"}, reference::batch_moments},
    {"running_moments", RunningMomentsIn::kNames, {"mean", "variance"}, reference::running_moments},
};

class ReferenceKernels : public KernelSet {
 public:
  std::string_view name() const override { return "reference"; }
  const Kernel& find(std::string_view kind) const override {
    for (const Kernel& kernel : kKernels) {
      if (kernel.kind == kind) return kernel;
    }
    throw base::InternalError("kernels", "the reference set has no kernel \"{}\"", kind);
  }
};

}  // namespace

std::span<const Kernel> reference::list() {
  return kKernels;
}

std::unique_ptr<KernelSet> reference_kernels() {
  return std::make_unique<ReferenceKernels>();
}

}  // namespace kintsugi::kernels
