// Runs code that may crash, hang or exhaust memory in a separate process, which is restarted after that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kintsugi::tests {

enum class Outcome { accepted, refused, finding };

struct Verdict {
  Outcome outcome = Outcome::accepted;
  bool by_command = false;
  std::string what = {};  // of a finding
};

struct Counts {
  uint64_t accepted = 0, refused = 0, by_command = 0, findings = 0;
};

using Judge = std::function<Verdict(uint64_t seed)>;

// Judges `count` seeds from `first` on. `start` creates the judge in the new process. `report` is called in this
// process for each finding: returned or thrown by the judge, a crash, more than 10 seconds of CPU time or two minutes
// for a seed, or a kill for its memory (4 GiB, unless a sanitizer needs more).
Counts supervise(uint64_t first, uint64_t count, const std::function<Judge()>& start,
                 const std::function<void(uint64_t seed, std::string_view what)>& report);

}  // namespace kintsugi::tests
