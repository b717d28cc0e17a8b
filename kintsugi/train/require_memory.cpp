#include "kintsugi/train/require_memory.h"

#include <algorithm>
#include <span>
#include <string>

#include "kintsugi/comm/agree.h"

namespace kintsugi::train {

void require_memory(const config::Settings& s, const std::vector<program::Program>& stages,
                    const compile::Machine& machine, comm::Communicator& all,
                    const std::function<void(std::string_view)>& now) {
  // Machines may differ: report the rank that exceeds its limit by the most, the first of several.
  const auto limit = compile::memory_limit(s, machine);
  const int stage = stages[0].mesh.stage_of(all.rank());
  const int64_t mine = limit ? stages[static_cast<size_t>(stage)].bytes() - limit->bytes : 0;
  std::vector<int64_t> every(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  const auto worst = std::max_element(every.begin(), every.end());
  if (*worst <= 0) return;
  const int from = static_cast<int>(worst - every.begin());
  if (now) now("not enough memory; searching for changes that fit");
  std::string text;
  if (from == all.rank()) text = one_line(*compile::excess(s, stages, machine, stage));
  std::vector<int64_t> size = {static_cast<int64_t>(text.size())};
  all.wait(all.broadcast(std::as_writable_bytes(std::span(size)), from));
  text.resize(static_cast<size_t>(size[0]));
  all.wait(all.broadcast(std::as_writable_bytes(std::span(text)), from));
  throw comm::SharedError("memory", "{}", text);
}

}  // namespace kintsugi::train
