#include "kintsugi/tensor/state.h"

#include "kintsugi/base/error.h"

namespace kintsugi::tensor {

std::string_view name_of(StateKind kind) {
  switch (kind) {
    case StateKind::weight:
      return "weight";
    case StateKind::gradient:
      return "gradient";
    case StateKind::level:
      return "level";
    case StateKind::optimizer:
      return "optimizer";
    case StateKind::statistic:
      return "statistic";
    case StateKind::cache:
      return "cache";
  }
  throw base::InternalError("state", "no kind of state {}", static_cast<int>(kind));
}

}  // namespace kintsugi::tensor
