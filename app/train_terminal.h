// What the user sees of a run while it trains.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/progress.h"
#include "app/terminal.h"
#include "kintsugi/train/observer.h"

namespace kintsugi::app {

// A line that follows the steps, with what is kept of them above it. While a step, a batch of a validation or a
// checkpoint takes long, a thread updates the line with the time; functions may be called by any thread.
class TrainTerminal : public train::Observer {
 public:
  // `unit`: what the speed counts, "tokens". `line`, `starting`: of the lines for steps and for the start.
  explicit TrainTerminal(std::string_view unit);
  TrainTerminal(std::string_view unit, ProgressOptions line, ProgressOptions starting);
  ~TrainTerminal() override;  // finish()
  TrainTerminal(const TrainTerminal&) = delete;
  TrainTerminal& operator=(const TrainTerminal&) = delete;

  void note(const std::string& line) override;
  void preparing(std::string_view what) override;
  void begins(std::string_view what) override;
  void validating(int64_t done, int64_t samples) override;
  void scoring(int64_t done, int64_t requests) override;
  void sampling(int64_t done, int64_t tokens) override;
  void step(const train::Metrics& m, int64_t steps) override;
  void finish();

 private:
  int columns() const;
  void start();
  void begin(std::string_view what);
  void between_steps(std::string_view what, int64_t done, int64_t all, std::string_view unit);
  void tick();
  void show_long(double now, double asked);
  std::string under_way(double seconds);

  std::string unit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Progress> starting_;
  ProgressLine progress_;
  Rate rate_, between_;          // of steps with all that comes with them, and of what is done between two
  std::vector<LinePart> parts_;  // last shown
  std::string now_;              // what is done since `since_`; empty: nothing that takes long
  double since_ = 0;
  bool long_ = false;   // a line said how long
  bool stays_ = false;  // the line of the last step
  bool told_ = false, ended_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::app
