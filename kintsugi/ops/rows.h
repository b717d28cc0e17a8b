// The rows of all operations, one file per operation and its gradient. docs/operations.md defines what each computes.
#pragma once

#include "kintsugi/graph/graph.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::ops {

using graph::Graph;
using graph::kNone;
using graph::Op;
using graph::OpRow;
using graph::OutTypes;
using graph::Types;
using graph::ValueId;
using tensor::Attributes;
using tensor::DType;
using tensor::optional;
using tensor::rest;
using tensor::Shape;
using tensor::Type;

// All rows.
const graph::OpTable& operations();

std::vector<OpRow> state_rows();  // state, accumulate, assign, output
std::vector<OpRow> free_rows();   // input, fill, broadcast
OpRow add();
OpRow scale();
OpRow sum();
OpRow cast();
OpRow rename();
OpRow contract();
OpRow embedding();
OpRow embedding_grad();
OpRow position();
OpRow position_grad();
OpRow layer_norm();
OpRow layer_norm_grad();
OpRow rms_norm();
OpRow rms_norm_grad();
OpRow gelu();
OpRow gelu_grad();
OpRow silu();
OpRow silu_grad();
OpRow relu();
OpRow relu_grad();
OpRow relu2();
OpRow relu2_grad();
OpRow tanh();
OpRow tanh_grad();
OpRow gated();
OpRow gated_grad();
OpRow rotary();
OpRow route();
OpRow route_grad();
OpRow balance_loss();
OpRow balance_loss_grad();
OpRow expert_load();
OpRow expert_balance();
OpRow balance_bias();
OpRow router_z_loss();
OpRow router_z_loss_grad();
OpRow expert_bias();
OpRow expert_bias_grad();
OpRow clamped_gated();
OpRow clamped_gated_grad();
OpRow join_head_dims();
OpRow join_head_dims_grad();
OpRow assign_slots();
OpRow dispatch();
OpRow combine();
OpRow weigh();
OpRow grouped();
OpRow attention();
OpRow attention_grad();
OpRow dropout();
OpRow head();
OpRow head_grad();
OpRow head_with_grad();
OpRow cross_entropy();
OpRow cross_entropy_grad();
OpRow sample_scores();
OpRow weighted_scores();
OpRow weighted_scores_grad();
OpRow preference_loss();
OpRow preference_loss_grad();
OpRow policy_loss();
OpRow policy_loss_grad();
OpRow class_loss();
OpRow class_loss_grad();
OpRow class_hits();
OpRow squared_error();
OpRow squared_error_grad();
OpRow field_errors();
OpRow field_errors_grad();
OpRow relative_error();
OpRow relative_error_grad();
OpRow first();
OpRow first_grad();
OpRow sum_squares();
OpRow sum_blocks();
OpRow update_scale();
OpRow adamw();
OpRow sgd();
OpRow adadelta();
OpRow adam_direction();
OpRow lars();
OpRow muon_momentum();
OpRow orthogonalize();
OpRow factored_sums();
OpRow factored_moments();
OpRow factored_direction();
OpRow unfactored_direction();
OpRow apply_direction();
OpRow moving_average();
OpRow from_bucket();
OpRow to_bucket();
OpRow loss_scale();
OpRow cache_write();
OpRow take();
OpRow cache_write_at();
OpRow attention_at();
OpRow rotary_at();
OpRow position_at();
OpRow take_rows();
OpRow join_columns();
OpRow split_columns();
OpRow stack();
OpRow unstack();
OpRow halo_pack();
OpRow halo_place();
OpRow halo_add();
OpRow mask();
OpRow logsumexp();
OpRow attention_join();
OpRow pixels();
OpRow convolution();
OpRow convolution_grad_input();
OpRow convolution_grad_weight();
OpRow max_pool();
OpRow max_pool_grad();
OpRow average_pool();
OpRow average_pool_grad();
OpRow batch_statistics();
OpRow batch_norm();
OpRow batch_norm_sums();
OpRow batch_norm_grad();
OpRow running_statistics();
OpRow batch_moments();
OpRow running_moments();
OpRow leaky_relu();
OpRow leaky_relu_grad();
OpRow transposed_convolution();
OpRow upsample();
OpRow upsample_grad();
OpRow adaptive_pool();
OpRow adaptive_pool_grad();
OpRow concatenate();
OpRow slice();
OpRow reshape();
OpRow drop_path();
OpRow channel_scale();
OpRow channel_scale_sums();
OpRow group_statistics();
OpRow group_norm();
OpRow group_norm_sums();
OpRow group_norm_grad();

// Shared by several rows.
Shape without(const Shape& shape, std::string_view dim);
// x [samples spatial... channels] -> [samples spatial... last], one position per window of the attributes. Throws
// InternalError if x is smaller than a window.
Shape windowed(const Shape& x, const Attributes& attributes, const tensor::Dim& last);
// Sets the attributes of an upsampling of x by factors of its spatial dims, in order.
void set_upsample(Attributes& attributes, std::string_view mode, const Shape& x,
                  const std::vector<std::pair<std::string, int64_t>>& factors);
OutTypes like_first(Types ins, const Attributes&);  // one output, with the type of the first input
Type scalar();                                      // [] fp64, a scalar of the run
double elements(Types types);                       // of the first type

// An elementwise y = f(x) with f(0) = 0, and its gradient f'(x) * dy.
OpRow unary(std::string_view kind, graph::GradRule grad, graph::FlopsRule flops);
OpRow unary_grad(std::string_view kind, std::string_view family, graph::FlopsRule flops);

template <int PerElement>
double per_element(Types, Types outs, const Attributes&) {
  return PerElement * elements(outs);
}

// The same, for the mean number of slots in use where the attribute "filled" is that share of all slots.
template <int PerElement>
double per_filled(Types, Types outs, const Attributes& attributes) {
  return PerElement * elements(outs) * (attributes.has("filled") ? attributes.number("filled") : 1.0);
}

}  // namespace kintsugi::ops
