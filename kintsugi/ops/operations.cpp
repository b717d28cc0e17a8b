#include "kintsugi/ops/lion.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

const graph::OpTable& operations() {
  static const graph::OpTable table = [] {
    std::vector<OpRow> rows = state_rows();
    for (const OpRow& row : free_rows()) rows.push_back(row);
    for (const OpRow& row : {add(),
                             scale(),
                             sum(),
                             cast(),
                             rename(),
                             contract(),
                             embedding(),
                             embedding_grad(),
                             position(),
                             position_grad(),
                             layer_norm(),
                             layer_norm_grad(),
                             rms_norm(),
                             rms_norm_grad(),
                             gelu(),
                             gelu_grad(),
                             silu(),
                             silu_grad(),
                             relu(),
                             relu_grad(),
                             relu2(),
                             relu2_grad(),
                             tanh(),
                             tanh_grad(),
                             gated(),
                             gated_grad(),
                             rotary(),
                             route(),
                             route_grad(),
                             balance_loss(),
                             balance_loss_grad(),
                             expert_load(),
                             expert_balance(),
                             balance_bias(),
                             assign_slots(),
                             dispatch(),
                             combine(),
                             weigh(),
                             grouped(),
                             attention(),
                             attention_grad(),
                             dropout(),
                             head(),
                             head_grad(),
                             head_with_grad(),
                             cross_entropy(),
                             cross_entropy_grad(),
                             sample_scores(),
                             class_loss(),
                             class_loss_grad(),
                             squared_error(),
                             squared_error_grad(),
                             first(),
                             first_grad(),
                             sum_squares(),
                             sum_blocks(),
                             update_scale(),
                             adamw(),
                             sgd(),
                             lion(),
                             loss_scale(),
                             cache_write(),
                             take(),
                             join_columns(),
                             split_columns(),
                             stack(),
                             unstack(),
                             halo_pack(),
                             halo_place(),
                             halo_add(),
                             mask(),
                             logsumexp(),
                             attention_join()})
      rows.push_back(row);
    return graph::OpTable(std::move(rows));
  }();
  return table;
}

}  // namespace kintsugi::ops
