// Device kernels, one source for all compilers: see device/gpu.h. Each enqueues its work in the stream of the call.
// docs/operations.md defines what each computes.
#pragma once

#include "kintsugi/device/gpu.h"
#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::KINTSUGI_GPU {

using kernels::KernelCall;
using kernels::KernelShapes;

void accumulate(const KernelCall&);
void adamw(const KernelCall&);
void adaptive_pool(const KernelCall&);
void adaptive_pool_grad(const KernelCall&);
void add(const KernelCall&);
void attention(const KernelCall&);
void attention_at(const KernelCall&);
void attention_grad(const KernelCall&);
void attention_join(const KernelCall&);
void average_pool(const KernelCall&);
void average_pool_grad(const KernelCall&);
void batch_norm(const KernelCall&);
void batch_norm_grad(const KernelCall&);
void batch_norm_sums(const KernelCall&);
void batch_statistics(const KernelCall&);
void broadcast(const KernelCall&);
void cache_write(const KernelCall&);
void cache_write_at(const KernelCall&);
void cast(const KernelCall&);
void channel_scale(const KernelCall&);
void channel_scale_sums(const KernelCall&);
void class_hits(const KernelCall&);
void class_loss(const KernelCall&);
void class_loss_grad(const KernelCall&);
void concatenate(const KernelCall&);
void contract(const KernelCall&);
void cross_entropy(const KernelCall&);
void cross_entropy_grad(const KernelCall&);
void drop_path(const KernelCall&);
void dropout(const KernelCall&);
void embedding(const KernelCall&);
void embedding_grad(const KernelCall&);
void fill(const KernelCall&);
void first(const KernelCall&);
void first_grad(const KernelCall&);
void gated(const KernelCall&);
void gated_grad(const KernelCall&);
void gelu(const KernelCall&);
void gelu_grad(const KernelCall&);
void group_norm(const KernelCall&);
void group_norm_grad(const KernelCall&);
void group_norm_sums(const KernelCall&);
void group_statistics(const KernelCall&);
void halo_add(const KernelCall&);
void halo_pack(const KernelCall&);
void halo_place(const KernelCall&);
void head(const KernelCall&);
void head_grad(const KernelCall&);
void head_with_grad(const KernelCall&);
void join_columns(const KernelCall&);
void layer_norm(const KernelCall&);
void layer_norm_grad(const KernelCall&);
void leaky_relu(const KernelCall&);
void leaky_relu_grad(const KernelCall&);
void logsumexp(const KernelCall&);
void loss_scale(const KernelCall&);
void mask(const KernelCall&);
void max_pool(const KernelCall&);
void max_pool_grad(const KernelCall&);
void pixels(const KernelCall&);
void position(const KernelCall&);
void position_at(const KernelCall&);
void position_grad(const KernelCall&);
void relu(const KernelCall&);
void relu_grad(const KernelCall&);
void relu2(const KernelCall&);
void relu2_grad(const KernelCall&);
void rms_norm(const KernelCall&);
void rms_norm_grad(const KernelCall&);
void rotary(const KernelCall&);
void rotary_at(const KernelCall&);
void running_statistics(const KernelCall&);
void sample_scores(const KernelCall&);
void scale(const KernelCall&);
void sgd(const KernelCall&);
void silu(const KernelCall&);
void silu_grad(const KernelCall&);
void slice(const KernelCall&);
void split_columns(const KernelCall&);
void squared_error(const KernelCall&);
void squared_error_grad(const KernelCall&);
void stack(const KernelCall&);
void sum(const KernelCall&);
void sum_blocks(const KernelCall&);
void sum_squares(const KernelCall&);
void take(const KernelCall&);
void take_rows(const KernelCall&);
void tanh(const KernelCall&);
void tanh_grad(const KernelCall&);
void unstack(const KernelCall&);
void update_scale(const KernelCall&);
void upsample(const KernelCall&);
void upsample_grad(const KernelCall&);

bool adamw_together(std::span<const KernelCall>);
bool attention_together(std::span<const KernelCall>);
bool cache_write_together(std::span<const KernelCall>);
bool contract_together(std::span<const KernelCall>);
bool rotary_together(std::span<const KernelCall>);

int64_t attention_grad_workspace(const KernelShapes&);
int64_t attention_workspace(const KernelShapes&);
int64_t batch_statistics_workspace(const KernelShapes&);
int64_t channel_scale_sums_workspace(const KernelShapes&);
int64_t class_loss_workspace(const KernelShapes&);
int64_t contract_workspace(const KernelShapes&);
int64_t cross_entropy_workspace(const KernelShapes&);
int64_t embedding_grad_workspace(const KernelShapes&);
int64_t group_statistics_workspace(const KernelShapes&);
int64_t head_grad_workspace(const KernelShapes&);
int64_t head_with_grad_workspace(const KernelShapes&);
int64_t head_workspace(const KernelShapes&);
int64_t norm_grad_workspace(const KernelShapes&);
int64_t squared_error_workspace(const KernelShapes&);
int64_t sum_blocks_workspace(const KernelShapes&);
int64_t sum_workspace(const KernelShapes&);

}  // namespace kintsugi::KINTSUGI_GPU
