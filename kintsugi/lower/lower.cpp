#include "kintsugi/lower/lower.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>

#include "kintsugi/base/error.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/lower/fuse/fuse.h"
#include "kintsugi/lower/fuse/group_launches.h"
#include "kintsugi/lower/fuse/join_columns.h"
#include "kintsugi/lower/fuse/join_head.h"
#include "kintsugi/lower/fuse/join_lists.h"
#include "kintsugi/lower/memory/memory.h"
#include "kintsugi/lower/memory/move_gradients.h"
#include "kintsugi/lower/memory/workspace.h"
#include "kintsugi/lower/order/offload.h"
#include "kintsugi/lower/order/overlap.h"
#include "kintsugi/lower/order/place_waits.h"
#include "kintsugi/lower/order/route.h"
#include "kintsugi/lower/order/schedule.h"
#include "kintsugi/lower/order/shorten.h"
#include "kintsugi/lower/order/split_backward.h"
#include "kintsugi/lower/order/split_interior.h"
#include "kintsugi/lower/partition/partition.h"
#include "kintsugi/lower/partition/split.h"
#include "kintsugi/program/verify.h"
#include "kintsugi/program/verify_ranks.h"

namespace kintsugi::lower {

const graph::OpTable& Source::operations() const {
  for (const graph::Graph* g : {micro, update})
    if (g) return g->table();
  for (const Pass& pass : passes)
    if (pass.graph) return pass.graph->table();
  throw base::InternalError("lower", "no graph");
}

namespace {

// Plans the largest stage first; no better placement is sought for the others. It is usually the last, which has the
// head, or the first.
void place_the_largest(std::vector<program::Program>& stages, const graph::OpTable& operations) {
  int64_t largest = 0;
  std::ranges::rotate(stages, stages.end() - 1);
  for (program::Program& p : stages) {
    plan_memory(p, operations, largest);
    largest = std::max(largest, p.bytes());
  }
  std::ranges::rotate(stages, stages.begin() + 1);
}

// Runs a function on each stage, on up to four threads: stages are independent. Rethrows the exception of the first
// failing stage.
template <typename F>
void for_each_stage(std::vector<program::Program>& stages, F&& function) {
  const size_t workers = std::min({stages.size(), static_cast<size_t>(base::usable_cores()), size_t{4}});
  std::vector<std::exception_ptr> errors(stages.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t s = next++; s < stages.size(); s = next++) {
      try {
        function(stages[s]);
      } catch (...) {
        errors[s] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (size_t i = 1; i < workers; ++i) threads.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads: those that run do the work
    }
    work();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace

std::vector<program::Program> lower(const Source& source, const Target& target, const Dump& dump) {
  const plan::Plan& plan = target.plan;
  const plan::Schedule tasks = plan::make_schedule(plan.schedule, plan.stages(), plan.chunks, source.micro_batches);
  program::Program all;
  all.on_device = target.kernels.on_device();
  all.sums_in_rank_order = target.sums_in_rank_order;
  std::optional<graph::Graph> micro;
  Source parts = source;
  if (source.micro) {
    micro = join_head(*source.micro, plan);
    if (tasks.split) micro = split_backward(*micro);
    parts.micro = &*micro;
  }
  partition(all, parts, plan);
  if (dump) dump("partition", all);
  std::vector<program::Program> stages = split_by_stage(std::move(all), plan.stages());
  const auto pass = [&](std::string_view name, auto&& function, auto&&... arguments) {
    for (program::Program& p : stages) {
      function(p, arguments...);
      if (dump) dump(name, p);
    }
  };
  const graph::OpTable& operations = source.operations();
  pass("prefetch", prefetch, operations);
  pass("fuse", [&](program::Program& p) { fuse(p, operations, target.kernels); });
  pass("join_columns", join_columns, operations, target.kernels);
  pass("split_interior", [&](program::Program& p) { split_interior(p, target.kernels); });
  if (target.extent >= Extent::placed)
    pass("workspace", [&](program::Program& p) { add_workspaces(p, operations, target.kernels, target.threads); });
  pass("schedule", schedule, tasks);
  pass("overlap", overlap);
  pass("offload", offload, operations, target.offload);
  pass("move_gradients", move_gradients, operations);
  pass("join_lists", join_lists, operations);
  if (target.extent == Extent::placed) {
    place_the_largest(stages, operations);
  } else if (target.extent == Extent::verified) {
    for_each_stage(stages, [&](program::Program& p) { plan_memory(p, operations, 0); });
    pass("memory", [](const program::Program&) {});
  }
  if (target.extent == Extent::verified) pass("shorten", shorten, source.shorter);
  pass("group_launches", group_launches, target.kernels);
  if (target.extent < Extent::verified) return stages;
  pass("route", route, target.route);
  pass("place_waits", place_waits);
  for_each_stage(stages, [](const program::Program& p) { program::verify(p); });
  program::verify_ranks(stages);
  return stages;
}

}  // namespace kintsugi::lower
