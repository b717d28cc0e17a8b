// The measurements of a run: metrics.jsonl, each line of which is an object with a step and numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::report {

// The values of a key at the steps that have it; NaN for null, which stands for a non-finite value.
struct Measure {
  std::vector<double> steps, values;  // equal length; steps ascending

  int64_t num_not_finite() const;
};

// A text that the model generated after a step, and its prompt.
struct WrittenText {
  double step = 0;
  std::string prompt, text;
};

// Measures of the list "expert_tokens": of the experts with the most and the fewest tokens, relative to the mean.
inline constexpr std::string_view kMostLoaded = "expert_tokens.most", kLeastLoaded = "expert_tokens.least";

struct MetricsTable {
  int64_t num_steps = 0;                                 // lines with a step
  int64_t first_step = 0, last_step = 0;                 // 0: none
  std::map<std::string, Measure, std::less<>> measures;  // of every key with numeric values
  std::vector<WrittenText> texts;                        // by step, then in the order of the prompts
  std::vector<double> expert_tokens;                     // of each expert in the last step that lists them
  std::vector<std::string> left_out;                     // what was unusable: "line 7 is incomplete"

  const Measure& measure(std::string_view key) const;  // without values if there is none
};

// Incrementally reads a growing file.
class MetricsReader {
 public:
  MetricsReader();
  ~MetricsReader();

  // Adds the next bytes of the file. An unterminated last line waits for the rest.
  void add(std::string_view text);
  // Adds the last line if it is unterminated.
  void finish();

  // Complete except for `left_out`, which finish() fills in.
  const MetricsTable& table() const;
  // Whether a step did not follow the one before it: lines read earlier may have been replaced.
  bool went_back() const;

 private:
  class Lines;
  std::unique_ptr<Lines> lines_;
  std::string begun_;  // of an incomplete line
};

// Skips lines that are not objects with a step and those whose step does not follow that of the previous line. Throws
// UserError if the file cannot be read.
MetricsTable read_metrics(const std::filesystem::path& path);
MetricsTable parse_metrics(std::string_view text);

}  // namespace kintsugi::report
