// What a run has measured: metrics.jsonl, of which each line is an object with a step and numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::report {

// The values of a key, at the steps that have it; NaN for one that is null, because it was not finite.
struct Measure {
  std::vector<double> steps, values;  // of one length; steps ascend

  int64_t num_not_finite() const;
};

// A text that the model wrote after a step, and the prompt before it.
struct WrittenText {
  double step = 0;
  std::string prompt, text;
};

struct MetricsTable {
  int64_t num_steps = 0;                                 // lines with a step
  int64_t first_step = 0, last_step = 0;                 // 0: none
  std::map<std::string, Measure, std::less<>> measures;  // of every key whose values are numbers
  std::vector<WrittenText> texts;                        // by step; those of a step in the order of the prompts
  std::vector<std::string> left_out;                     // what could not be used: "line 7 is incomplete"

  const Measure& measure(std::string_view key) const;  // one without values if there is none
};

// Reads a file that still grows, piece by piece.
class MetricsReader {
 public:
  MetricsReader();
  ~MetricsReader();

  // The next bytes of the file. A last line without its end waits for what follows.
  void add(std::string_view text);
  // The same for a last line, to which nothing follows.
  void finish();

  // All but `left_out`, which finish() fills in.
  const MetricsTable& table() const;
  // A step did not follow the one before it: lines that were read may have been replaced.
  bool went_back() const;

 private:
  class Lines;
  std::unique_ptr<Lines> lines_;
  std::string begun_;  // of a line
};

// Lines that are no objects with a step, and those whose step does not follow that of the line before, are left out.
// UserError if the file cannot be read.
MetricsTable read_metrics(const std::filesystem::path& path);
MetricsTable parse_metrics(std::string_view text);

}  // namespace kintsugi::report
