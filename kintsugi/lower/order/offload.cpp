#include "kintsugi/lower/order/offload.h"

#include "kintsugi/lower/order/copies.h"
#include "kintsugi/lower/order/offload_parts.h"

namespace kintsugi::lower {

void offload(program::Program& p, const graph::OpTable& operations, const Offload& what) {
  int events = first_free_event(p);
  if (what.activations) offload_activations(p, events);
  if (what.optimizer) offload_optimizer(p, operations, events);
}

}  // namespace kintsugi::lower
