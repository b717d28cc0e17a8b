#include "kintsugi/program/staging.h"

#include "kintsugi/program/walk.h"

namespace kintsugi::program {

Staging staging(const Program& p, const CallList& list) {
  Staging s = {.inputs = {}, .bytes = kStagedNumbers};
  const std::vector<std::vector<BufferId>> inputs = first_inputs(p, list);
  for (size_t call = 0; call < inputs.size(); ++call)
    for (const BufferId buffer : inputs[call]) {
      s.inputs.push_back({call, buffer, s.bytes});
      s.bytes += p.aligned(p.buffer(buffer).bytes());
    }
  return s;
}

}  // namespace kintsugi::program
