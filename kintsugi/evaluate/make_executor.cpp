#include "kintsugi/evaluate/make_executor.h"

#include "kintsugi/comm/device_groups.h"
#include "kintsugi/lower/order/place_waits.h"
#include "kintsugi/lower/order/route.h"

namespace kintsugi::evaluate {

std::unique_ptr<run::Executor> make_executor(program::Program program, const kernels::KernelSet& kernels,
                                             base::ThreadTeam& team, run::Place place) {
  if (kernels.device() != nullptr && place.world != nullptr && place.world->size() > 1) {
    place.exchange = comm::exchange_of(*place.world, *kernels.device(), program.mesh.stages() > 1);
    const bool by_host = place.exchange.way == comm::DeviceWay::by_host;
    lower::route(program, {.exchange = by_host ? program::Exchange::through_host : program::Exchange::in_streams,
                           .captured = place.exchange.captured});
    lower::place_waits(program);
    program::verify_order(program);
  }
  return std::make_unique<run::Executor>(std::move(program), kernels, team, place);
}

}  // namespace kintsugi::evaluate
