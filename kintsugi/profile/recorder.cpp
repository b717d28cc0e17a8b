#include "kintsugi/profile/recorder.h"

#include "kintsugi/program/walk.h"

namespace kintsugi::profile {

Recorder::Recorder(const program::Program& p, program::Step step, bool by_launch)
    : times_{.step = step,
             .inputs = std::vector<Interval>(p.list(step).calls.size()),
             .instructions = std::vector<InstructionTimes>(program::num_instructions(p, p.list(step)))},
      by_launch_(by_launch) {}

}  // namespace kintsugi::profile
