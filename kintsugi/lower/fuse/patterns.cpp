#include "kintsugi/lower/fuse/patterns.h"

#include <algorithm>

namespace kintsugi::lower {
namespace {

bool names(const std::vector<std::string_view>& kinds, std::string_view kind) {
  return kinds.empty() || std::ranges::find(kinds, kind) != kinds.end();
}

}  // namespace

bool Pattern::has_producer(std::string_view kind) const {
  return names(producers, kind);
}

bool Pattern::has_consumer(std::string_view kind) const {
  return names(consumers, kind);
}

std::span<const Pattern> patterns() {
  static const std::vector<Pattern> list = {
      {.rewrite = Rewrite::write, .producers = {}, .consumers = {"accumulate"}},
      {.rewrite = Rewrite::activation,
       .producers = {"contract"},
       .consumers = {"gelu", "silu", "relu", "relu2", "tanh"},
       .output = "x",
       .needs = Capability::epilogue},
      {.rewrite = Rewrite::activation,
       .producers = {"batch_norm"},
       .consumers = {"relu"},
       .needs = Capability::epilogue},
      {.rewrite = Rewrite::slope,
       .producers = {"contract"},
       .consumers = {"gelu_grad", "silu_grad", "relu_grad", "relu2_grad", "tanh_grad"},
       .operand = "x",
       .needs = Capability::epilogue},
      {.rewrite = Rewrite::bias, .producers = {"contract"}, .consumers = {"add"}, .operand = "bias"},
      {.rewrite = Rewrite::sum_in_place,
       .producers = {},
       .consumers = {"add"},
       .needs = Capability::accumulate,  // or the row of the operation: then within a layer
       .across_layers = true},
      {.rewrite = Rewrite::residual,
       .producers = {"contract", "batch_norm", "grouped"},
       .consumers = {"add"},
       .operand = "added",
       .needs = Capability::add},
      {.rewrite = Rewrite::row_sums,
       .producers = {"layer_norm_grad"},
       .consumers = {"sum"},
       .output = "sums",
       .needs = Capability::row_sums,
       .across_layers = true},
      {.rewrite = Rewrite::columns,
       .producers = {"attention_grad"},
       .consumers = {"contract", "sum"},
       .output = "dqkv",
       .replaced = {"dq", "dk", "dv"},
       .needs = Capability::columns,
       .on_device = true},
      {.rewrite = Rewrite::list,
       .producers = {"sum_squares"},
       .consumers = {"sum_squares"},
       .across_layers = true,
       .on_device = true},
      {.rewrite = Rewrite::launch,
       .producers = {},
       .consumers = {},
       .needs = Capability::follow,
       .across_layers = true,
       .on_device = true},
  };
  return list;
}

const Pattern* find_pattern(Rewrite rewrite, std::string_view producer) {
  for (const Pattern& pattern : patterns())
    if (pattern.rewrite == rewrite && pattern.has_producer(producer)) return &pattern;
  return nullptr;
}

bool is_capable(const kernels::Kernel& kernel, const Pattern& pattern, std::string_view also) {
  return !pattern.needs || kernel.can(*pattern.needs, also);
}

}  // namespace kintsugi::lower
