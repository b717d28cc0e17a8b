#include "app/program_schedule.h"

#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::app {
namespace {

// Empty for work that does not belong to the pipeline.
std::optional<plan::Work> work_of(const program::Body& body) {
  if (body.role != program::Role::work) return std::nullopt;
  switch (body.work) {
    case program::Work::forward:
      return plan::Work::forward;
    case program::Work::backward:
      return plan::Work::backward;
    case program::Work::weight:
      return plan::Work::weight;
    case program::Work::reduce:
    case program::Work::update:
    case program::Work::evaluate:
    case program::Work::sample:
    case program::Work::tasks:
    case program::Work::prefill:
    case program::Work::prefill_quarter:
    case program::Work::score:
    case program::Work::decode:
    case program::Work::decode_half:
    case program::Work::decode_quarter:
    case program::Work::decode_one:
      return std::nullopt;
  }
  throw base::InternalError("app", "no work {}", static_cast<int>(body.work));
}

double& cost_of(plan::Costs& costs, plan::Work work) {
  switch (work) {
    case plan::Work::forward:
      return costs.forward;
    case plan::Work::backward:
      return costs.backward;
    case plan::Work::weight:
      return costs.weight;
  }
  throw base::InternalError("app", "no work {}", static_cast<int>(work));
}

}  // namespace

plan::Schedule schedule_of(const std::vector<program::Program>& stages, const config::Settings& settings) {
  std::vector<std::vector<plan::Task>> tasks;
  for (const program::Program& p : stages) {
    std::vector<plan::Task>& of_stage = tasks.emplace_back();
    for (const auto& [position, call, body] : program::walk(p, p.list(program::Step::train)))
      if (const auto work = work_of(body)) of_stage.push_back({*work, body.chunk, call.micro_batch});
  }
  plan::Schedule schedule = plan::schedule_of(settings.parallel.schedule, std::move(tasks));
  plan::check(schedule);
  return schedule;
}

std::vector<plan::Costs> costs_of(const plan::Schedule& schedule, const std::vector<program::Program>& stages,
                                  double unit) {
  std::vector<plan::Costs> costs(static_cast<size_t>(schedule.all_chunks()), {0, 0, 0});
  for (const program::Program& p : stages)
    for (const program::Body& body : p.bodies) {
      const auto work = work_of(body);
      if (!work || body.variant_of >= 0) continue;
      double& cost = cost_of(costs[static_cast<size_t>(body.chunk)], *work);
      for (const program::Instruction& i : body.instructions) cost += i.cost.flops / unit;
    }
  return costs;
}

}  // namespace kintsugi::app
