// Runs what may crash, hang or take all memory in a process of its own, which is started again after that.
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

// Judges `count` seeds from `first` on. `start` makes the judge, in the new process. `report` is called in this one for
// each finding: what the judge found, what it threw, or that it crashed, took more than 10 seconds of processor time or
// two minutes for a seed, or was killed for its memory (4 GiB, where no sanitizer needs more).
Counts supervise(uint64_t first, uint64_t count, const std::function<Judge()>& start,
                 const std::function<void(uint64_t seed, std::string_view what)>& report);

}  // namespace kintsugi::tests
