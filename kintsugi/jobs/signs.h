// Signs of life: small files in RUN/.launch that the launcher and the ranks of a run rewrite every second, by which
// each notices that the other has ended or stopped, also on other nodes. `launcher` is the launcher's, `rank_N` that of
// rank N.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/jobs/reach.h"

namespace kintsugi::jobs {

inline constexpr const char* kSignsFolder = ".launch";
inline constexpr const char* kLauncherSign = "launcher";
std::string rank_sign(int rank);  // "rank_2"

// Rewrites a sign until destruction, which removes it.
class SignWriter {
 public:
  struct Options {
    std::filesystem::path path;
    std::string host;                      // of this process
    std::string address = {};              // of its machine, for Reach
    std::filesystem::path watched = {};    // a sign of another process; "": none
    std::chrono::milliseconds limit = {};  // after which an unchanged `watched` is lost
    int64_t attempt = 0;                   // of this rank
    Reach::Responds responds = jobs::responds;
    // Called by the thread. slow: the file system did not respond for this long. lost: once; before the limit, if the
    // machine of the writer of `watched` is down. ended: once, if that writer ended this attempt.
    std::function<void(double seconds)> slow = {};
    std::function<void(double seconds)> lost = {};
    std::function<void()> ended = {};
  };
  explicit SignWriter(Options options);
  ~SignWriter();
  SignWriter(const SignWriter&) = delete;
  SignWriter& operator=(const SignWriter&) = delete;

  // Tells those who watch this sign that an attempt has failed. Schedulers leave the ranks that wait for a lost one
  // half a minute after asking them to end.
  void end_attempt(int64_t attempt);

 private:
  void run();

  const Options options_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool end_ = false;
  int64_t ended_attempt_ = 0;
  std::thread thread_;
};

// Reads the signs of ranks.
class SignWatch {
 public:
  SignWatch(std::filesystem::path folder, std::chrono::milliseconds limit, Reach::Responds responds = jobs::responds)
      : folder_(std::move(folder)), limit_(limit), reach_(std::move(responds)) {}

  // Call about every second. Returns the line about ranks whose sign has not changed for the limit: "no sign of life
  // from rank 2 on n3 for 60 s", "... from any rank on n3 for 60 s (ranks 2 3)"; "" if there is none. Time in which
  // this process itself was held up, as by the file system, does not count. A node that has responded before and is
  // down now is reported after a few seconds, "..., and the node does not respond", unless most nodes are silent.
  std::string look();
  // The node of a rank that has given a sign; "" if it has not.
  std::string node_of(int rank) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Sign {
    std::string host, address, text;
    Clock::time_point changed;
  };
  struct Node {
    std::string address;
    std::vector<int> ranks;
    Clock::time_point changed = {};  // the last sign of any of its ranks
  };

  std::string look_for_down_node(Clock::time_point now);

  const std::filesystem::path folder_;
  const std::chrono::milliseconds limit_;
  std::map<int, Sign> signs_;
  std::map<int, std::string> nodes_;  // of all ranks so far
  Reach reach_;
  Clock::time_point looked_ = Clock::now();
};

// Removes signs that an earlier attempt left.
void remove_signs(const std::filesystem::path& folder);

}  // namespace kintsugi::jobs
