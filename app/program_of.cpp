#include "app/program_of.h"

#include "kintsugi/train/build_program.h"
#include "kintsugi/train/corpus.h"

namespace kintsugi::app {

void fill_vocab(config::Resolved& resolved) {
  if (resolved.settings.model.vocab == 0) train::open_corpus(resolved);
}

std::vector<program::Program> programs_of(const config::Settings& settings, const lower::Dump& dump) {
  return train::build_programs(settings, *train::kernels_of(settings), dump);
}

}  // namespace kintsugi::app
