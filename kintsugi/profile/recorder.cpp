#include "kintsugi/profile/recorder.h"

#include "kintsugi/program/walk.h"

namespace kintsugi::profile {

Recorder::Recorder(const program::Program& p, program::Step step)
    : step_(step), inputs_(p.list(step).calls.size()), instructions_(program::num_instructions(p, p.list(step))) {}

}  // namespace kintsugi::profile
