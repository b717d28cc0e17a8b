#include "app/program_of.h"

#include <fmt/format.h>

#include "app/progress.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {

std::vector<program::Program> programs_of(const config::Settings& settings, const lower::Dump& dump) {
  return programs_of(settings, simulate::softwares().front(), dump);
}

std::vector<program::Program> programs_of(const config::Settings& settings, const simulate::Software& software,
                                          const lower::Dump& dump) {
  Progress progress("compiling");
  const int64_t stages = settings.parallel.pipe;
  return compile::compile({.settings = settings,
                           .kernels = *kernels_of(settings, software),
                           .dump = [&](std::string_view pass, const program::Program& p) {
                             const bool all = stages == 1 || pass == "partition";
                             progress.tell(all ? fmt::format("{} is done", pass)
                                               : fmt::format("{}, stage {} of {}", pass, p.stage + 1, stages));
                             if (dump) dump(pass, p);
                           }});
}

std::unique_ptr<kernels::KernelSet> kernels_of(const config::Settings& settings, const simulate::Software& software) {
  std::unique_ptr<kernels::KernelSet> kernels = compile::kernels_of(settings);
  if (!software.joins_activations) return kernels::without_epilogues(std::move(kernels));
  return software.joins_sums ? std::move(kernels) : kernels::without_sums(std::move(kernels));
}

std::optional<compile::MemoryLimit> memory_limit_of(const config::Settings& s) {
  if (s.parallel.memory_per_rank.empty() && s.parallel.ranks > base::usable_cores()) return std::nullopt;
  return compile::memory_limit(s, train::machine_of(s));
}

}  // namespace kintsugi::app
