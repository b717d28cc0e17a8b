// CPU kernels of images: convolution, pooling, norms, resampling.
#pragma once

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

void pixels(const KernelCall& call);
bool pixels_take(const Operands& o);

void convolution(const KernelCall& call);
void convolution_grad_input(const KernelCall& call);
void convolution_grad_weight(const KernelCall& call);
bool convolution_takes(const Operands& o);
int64_t convolution_workspace(const KernelShapes& shapes);
int64_t convolution_grad_input_workspace(const KernelShapes& shapes);
int64_t convolution_grad_weight_workspace(const KernelShapes& shapes);
void convolution_fp64(const KernelCall& call);
void convolution_fp64_grad_input(const KernelCall& call);
void convolution_fp64_grad_weight(const KernelCall& call);
bool convolution_fp64_takes(const Operands& o);

void max_pool(const KernelCall& call);
void max_pool_grad(const KernelCall& call);
void average_pool(const KernelCall& call);
void average_pool_grad(const KernelCall& call);
bool pool_takes(const Operands& o);
int64_t pool_grad_workspace(const KernelShapes& shapes);

void batch_statistics(const KernelCall& call);
int64_t batch_statistics_workspace(const KernelShapes& shapes);
void batch_norm(const KernelCall& call);
void batch_norm_sums(const KernelCall& call);
void batch_norm_grad(const KernelCall& call);
bool batch_norm_takes(const Operands& o);
bool batch_statistics_takes(const Operands& o);
int64_t batch_norm_workspace(const KernelShapes& shapes);
int64_t batch_norm_sums_workspace(const KernelShapes& shapes);

void transposed_convolution(const KernelCall& call);
int64_t transposed_convolution_workspace(const KernelShapes& shapes);

void leaky_relu(const KernelCall& call);
void leaky_relu_grad(const KernelCall& call);

void upsample(const KernelCall& call);
void upsample_grad(const KernelCall& call);
void adaptive_pool(const KernelCall& call);
void adaptive_pool_grad(const KernelCall& call);
bool resample_takes(const Operands& o);
int64_t resample_workspace(const KernelShapes& shapes);

void drop_path(const KernelCall& call);
void channel_scale(const KernelCall& call);
int64_t channel_scale_workspace(const KernelShapes& shapes);  // also of drop_path
void channel_scale_sums(const KernelCall& call);
int64_t channel_scale_sums_workspace(const KernelShapes& shapes);

void group_statistics(const KernelCall& call);
void group_norm(const KernelCall& call);
void group_norm_sums(const KernelCall& call);
void group_norm_grad(const KernelCall& call);
bool group_norm_takes(const Operands& o);
int64_t group_norm_workspace(const KernelShapes& shapes);

}  // namespace kintsugi::kernels::cpu
