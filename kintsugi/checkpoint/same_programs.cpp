#include "kintsugi/checkpoint/same_programs.h"

#include <fmt/ranges.h>

#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/same.h"
#include "kintsugi/program/print.h"

namespace kintsugi::checkpoint {

void require_same_programs(comm::Communicator& all, std::string_view where, std::span<const program::Program> stages) {
  require_same(all, where, "processor", fmt::format("{}", fmt::join(base::this_processor().units, " ")));
  std::string text;
  for (const program::Program& p : stages) text += program::print(p);
  require_same(all, where, "program", text);
}

}  // namespace kintsugi::checkpoint
