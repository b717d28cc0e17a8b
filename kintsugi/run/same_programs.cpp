#include "kintsugi/run/same_programs.h"

#include <fmt/ranges.h>

#include "kintsugi/base/processor.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/kernels/host/peak.h"
#include "kintsugi/program/print.h"

namespace kintsugi::run {

void require_same_programs(comm::Communicator& all, std::string_view where, std::span<const program::Program> stages) {
  comm::require_same(all, where, "processor", fmt::format("{}", fmt::join(base::this_processor().units, " ")));
  comm::require_same(all, where, "unit for bf16", std::string(kernels::host::bf16_unit_name()));
  std::string text;
  for (const program::Program& p : stages) text += program::print(p);
  comm::require_same(all, where, "program", text);
}

}  // namespace kintsugi::run
