// Saving while the run goes on, by all ranks together: begin() copies what a rank saves to the host and starts a thread
// that writes it; finish() waits for the thread, and puts the checkpoint into its place. In between there is no new
// checkpoint, and the earlier ones are unchanged.
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

class BackgroundSave {
 public:
  // Takes the memory of the snapshot. UserError if the host does not give that much.
  explicit BackgroundSave(const run::Executor& executor) : executor_(executor), snapshot_(executor) {}
  ~BackgroundSave();  // waits for the thread; what was not finished is no checkpoint
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  // All ranks together, with no save under way. The states may change when it returns. Errors as those of save_states.
  void begin(comm::Communicator& all, const std::filesystem::path& run_folder, int64_t step, const Contents& contents);
  bool under_way() const { return writer_.has_value(); }  // the same on all ranks, until finish_alone()
  // This rank has nothing left to write, or could not.
  bool written() const { return written_; }
  // All ranks together: the checkpoint's folder. A SharedError as those of save_states, after which no save is under
  // way; another error if a rank does not come: finish_alone() is left.
  std::filesystem::path finish(comm::Communicator& all);
  // After an error, when other ranks may not come: rank 0 waits a little for what they write. The folder, if the
  // checkpoint is whole; on the other ranks there is none.
  std::optional<std::filesystem::path> finish_alone() noexcept;

 private:
  void write();
  void wait();

  const run::Executor& executor_;
  Snapshot snapshot_;
  std::optional<CheckpointWriter> writer_;
  Contents contents_;
  std::filesystem::path place_;
  std::thread thread_;
  std::atomic<bool> written_ = true;
  std::exception_ptr error_;  // of the thread
};

}  // namespace kintsugi::checkpoint
