#include "kintsugi/lower/order/route.h"

#include "kintsugi/program/staging.h"

namespace kintsugi::lower {

void route(program::Program& p, const Route& how) {
  if (!p.on_device) return;
  p.exchange = how.exchange;
  for (program::CallList& list : p.lists) {
    list.order.inputs = program::staging(p, list).inputs;
    list.order.joined = true;
    list.order.captured = how.captured && how.exchange == program::Exchange::in_streams;
  }
}

}  // namespace kintsugi::lower
