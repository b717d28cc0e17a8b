// Asynchronous saving, collective over the ranks: begin() copies the states of a rank, to memory of the host or to a
// file on its node, and starts a thread that writes them to the run's folder; finish() joins the thread and publishes
// the checkpoint. Until then no new checkpoint is visible, and the earlier ones are unchanged.
#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "kintsugi/checkpoint/snapshot.h"
#include "kintsugi/checkpoint/writer.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::checkpoint {

// A folder on the node that is written first.
struct LocalFolder {
  std::filesystem::path path = {};  // "": none
  double bytes_per_second = 0;      // at most copied from there to the run's folder; 0: no limit
};

class BackgroundSave {
 public:
  // On a device, allocates the snapshot; else there must be a local folder. Throws UserError if the host cannot provide
  // the memory.
  explicit BackgroundSave(const run::Executor& executor, LocalFolder local = {});
  ~BackgroundSave();  // joins the thread; an unfinished save leaves no checkpoint
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  // Collective; no save may be in progress. The states may change once it returns. Errors as for save_states().
  void begin(comm::Communicator& all, const std::filesystem::path& run_folder, int64_t step, const Contents& contents);
  bool under_way() const { return writer_.has_value(); }  // the same on all ranks, until finish_alone()
  // Whether this rank has finished writing or has failed.
  bool written() const { return written_; }
  // This rank's part in the local folder, once it is complete; null: not yet, or there is no such folder.
  const LocalPart* staged() const { return staged_ ? &writer_->staged() : nullptr; }
  // Of the last save: how long begin() and the thread took.
  double stage_seconds() const { return stage_seconds_; }
  double drain_seconds() const { return drain_seconds_; }
  // Collective; returns the checkpoint's folder. Throws SharedErrors as save_states() does, after which no save is in
  // progress; throws another error if a rank does not call, after which only finish_alone() may be called.
  std::filesystem::path finish(comm::Communicator& all);
  // After an error, when other ranks may not call: rank 0 waits briefly for what they are writing. Returns the folder
  // if the checkpoint is complete; always nothing on other ranks.
  std::optional<std::filesystem::path> finish_alone() noexcept;

 private:
  void stage();
  void write();
  void wait();

  const run::Executor& executor_;
  const LocalFolder local_;
  std::optional<Snapshot> snapshot_;  // on a device
  std::optional<CheckpointWriter> writer_;
  Contents contents_;
  std::filesystem::path place_;
  std::thread thread_;
  std::atomic<bool> written_ = true, staged_ = false;
  std::exception_ptr error_;  // thrown by the thread
  double stage_seconds_ = 0, drain_seconds_ = 0;
};

}  // namespace kintsugi::checkpoint
