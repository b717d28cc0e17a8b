#include "kintsugi/simulate/kernel_kind.h"

#include <string_view>
#include <unordered_map>

namespace kintsugi::simulate {

KernelKind kind_of(const program::Instruction& i) {
  static const std::unordered_map<std::string_view, KernelKind> kKinds = {
      {"contract", KernelKind::contract},
      {"grouped", KernelKind::grouped},
      {"attention", KernelKind::attention},
      {"attention_grad", KernelKind::attention_grad},
      {"head", KernelKind::head},
      {"head_grad", KernelKind::head_grad},
      {"head_with_grad", KernelKind::head_with_grad},
      {"layer_norm", KernelKind::norm},
      {"rms_norm", KernelKind::norm},
      {"layer_norm_grad", KernelKind::norm_grad},
      {"rms_norm_grad", KernelKind::norm_grad},
      {"rotary", KernelKind::rotary},
      {"rotary_grad", KernelKind::rotary},
      {"dropout", KernelKind::dropout},
      {"add", KernelKind::add},
      {"stack", KernelKind::stack},
      {"unstack", KernelKind::unstack},
      {"adamw", KernelKind::adamw},
  };
  if (i.kind != program::Kind::compute) return KernelKind::other;
  const auto found = kKinds.find(i.kernel);
  return found == kKinds.end() ? KernelKind::other : found->second;
}

}  // namespace kintsugi::simulate
