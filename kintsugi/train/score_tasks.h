// Evaluation tasks during training, with the weights between two steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/train/metrics.h"

namespace kintsugi::train {

struct Rank;

// [evaluate] tasks with their documents as token ids.
class OpenTasks {
 public:
  // Reads the documents from [evaluate] tasks_folder: of each task from the subfolder of its name if there is one.
  // Texts get the tokens that `evaluate --task` gives them, at most train.sequence. Throws UserError for data in
  // another format, and without a tokenizer.
  OpenTasks(const config::Settings& settings, const std::string& tokenizer_json);
  ~OpenTasks();
  OpenTasks(const OpenTasks&) = delete;

  int64_t num_requests() const;
  std::vector<std::string> notes() const;  // on requests that lost their beginning
  std::string digest() const;              // equal on ranks that read the same

  // Runs the list `tasks`. Calls goes_on(requests done, all) before each batch, which must agree on all ranks; returns
  // nothing at the first false. Collective; the result is the same on every rank.
  std::optional<std::vector<TaskScore>> score(Rank& rank, const std::function<bool(int64_t, int64_t)>& goes_on) const;

 private:
  struct One;
  std::vector<One> tasks_;
  int64_t sequence_ = 0;
};

// Null without tasks.
std::shared_ptr<const OpenTasks> open_tasks(const config::Settings& settings, const std::string& tokenizer_json);

}  // namespace kintsugi::train
