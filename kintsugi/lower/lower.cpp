#include "kintsugi/lower/lower.h"

#include "kintsugi/lower/fuse.h"
#include "kintsugi/lower/memory.h"
#include "kintsugi/lower/overlap.h"
#include "kintsugi/lower/partition.h"
#include "kintsugi/lower/schedule.h"
#include "kintsugi/lower/workspace.h"
#include "kintsugi/program/verify.h"
#include "kintsugi/program/verify_ranks.h"

namespace kintsugi::lower {

program::Program lower(const Source& source, const Target& target, const Dump& dump) {
  program::Program p;
  const auto pass = [&](std::string_view name, auto&& function, auto&&... arguments) {
    function(p, arguments...);
    if (dump) dump(name, p);
  };
  pass("partition", partition, source, target.plan);
  pass("prefetch", prefetch);
  pass("fuse", fuse);
  pass("workspace", [&](program::Program& q) { add_workspaces(q, target.kernels, target.threads); });
  pass("schedule", schedule, source.micro_batches);
  pass("overlap", overlap);
  pass("memory", plan_memory);
  program::verify(p);
  program::verify_ranks(p);
  return p;
}

}  // namespace kintsugi::lower
