// The list of reference kernels.
#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels {
namespace {

constexpr Kernel kKernels[] = {
    {"accumulate", reference::accumulate},
    {"adamw", reference::adamw},
    {"add", reference::add},
    {"attention", reference::attention},
    {"attention_grad", reference::attention_grad},
    {"attention_join", reference::attention_join},
    {"broadcast", reference::broadcast},
    {"cache_write", reference::cache_write},
    {"cast", reference::cast},
    {"contract", reference::contract},
    {"cross_entropy", reference::cross_entropy},
    {"cross_entropy_grad", reference::cross_entropy_grad},
    {"dropout", reference::dropout},
    {"embedding", reference::embedding},
    {"embedding_grad", reference::embedding_grad},
    {"fill", reference::fill},
    {"gated", reference::gated},
    {"gated_grad", reference::gated_grad},
    {"gelu", reference::gelu},
    {"gelu_grad", reference::gelu_grad},
    {"head", reference::head},
    {"head_grad", reference::head_grad},
    {"head_with_grad", reference::head_with_grad},
    {"layer_norm", reference::layer_norm},
    {"layer_norm_grad", reference::layer_norm_grad},
    {"logsumexp", reference::logsumexp},
    {"loss_scale", reference::loss_scale},
    {"mask", reference::mask},
    {"position", reference::position},
    {"position_grad", reference::position_grad},
    {"relu", reference::relu},
    {"relu_grad", reference::relu_grad},
    {"rms_norm", reference::rms_norm},
    {"rms_norm_grad", reference::rms_norm_grad},
    {"rotary", reference::rotary},
    {"scale", reference::scale},
    {"sgd", reference::sgd},
    {"silu", reference::silu},
    {"silu_grad", reference::silu_grad},
    {"stack", reference::stack},
    {"sum", reference::sum},
    {"sum_squares", reference::sum_squares},
    {"take", reference::take},
    {"unstack", reference::unstack},
    {"sum_blocks", reference::sum_blocks},
    {"update_scale", reference::update_scale},
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

std::unique_ptr<KernelSet> reference_kernels() {
  return std::make_unique<ReferenceKernels>();
}

}  // namespace kintsugi::kernels
