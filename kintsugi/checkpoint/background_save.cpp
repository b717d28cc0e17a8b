#include "kintsugi/checkpoint/background_save.h"

#include <chrono>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/start_thread.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/local_parts.h"
#include "kintsugi/checkpoint/state_pieces.h"
#include "kintsugi/comm/agree.h"

namespace kintsugi::checkpoint {

namespace {

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

BackgroundSave::BackgroundSave(const run::Executor& executor, LocalFolder local)
    : executor_(executor), local_(std::move(local)) {
  base::require(executor.on_device() || !local_.path.empty(), "checkpoint", "a save in the background needs a copy");
  if (executor.on_device()) snapshot_.emplace(executor);
}

BackgroundSave::~BackgroundSave() {
  wait();
}

void BackgroundSave::begin(comm::Communicator& all, const std::filesystem::path& run_folder, int64_t step,
                           const Contents& contents) {
  base::require(!under_way(), "checkpoint", "a save starts while another is in progress");
  require_ranks(executor_, all);
  const auto began = std::chrono::steady_clock::now();
  const auto begins = [&] {
    writer_.emplace(run_folder, step, all.rank(), all.size());
    if (!snapshot_) return add_states(*writer_, executor_);
    add_states(*writer_, executor_.program(), executor_.rank(),
               [this](program::BufferId state, int64_t begin, int64_t bytes, const Sink& sink) {
                 sink({snapshot_->data(state, begin), static_cast<size_t>(bytes)});
               });
  };
  error_ = nullptr;
  staged_ = false;
  contents_ = contents;
  place_ = step_folder(run_folder, step);
  try {
    comm::together(all, [&] {
      if (all.rank() == 0) begins();
      if (snapshot_) snapshot_->take();
    });
    comm::together(all, [&] {
      if (all.rank() != 0) begins();
      if (!snapshot_) stage();
      written_ = false;
      thread_ = base::start_thread([this] { write(); });
    });
  } catch (...) {
    wait();
    staged_ = false;
    writer_.reset();
    throw;
  }
  stage_seconds_ = seconds_since(began);
}

void BackgroundSave::stage() {
  writer_->stage(local_.path, contents_);
  staged_ = true;
}

void BackgroundSave::write() {
  const auto began = std::chrono::steady_clock::now();
  try {
    if (snapshot_ && !local_.path.empty()) stage();
    staged_ ? writer_->drain(local_.bytes_per_second) : writer_->write();
  } catch (...) {
    error_ = std::current_exception();
  }
  drain_seconds_ = seconds_since(began);
  written_ = true;
}

void BackgroundSave::wait() {
  if (thread_.joinable()) thread_.join();
  written_ = true;
}

std::filesystem::path BackgroundSave::finish(comm::Communicator& all) {
  wait();
  try {
    comm::together(all, [&] {
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    });
    comm::together(all, [&] {
      if (all.rank() == 0) writer_->finish(contents_);
    });
    writer_->remove_staged();
  } catch (
      const comm::SharedError&) {  // from the save itself; if another rank did not call, only finish_alone() is left
    staged_ = false;
    writer_.reset();
    throw;
  }
  staged_ = false;
  writer_.reset();
  return place_;
}

std::optional<std::filesystem::path> BackgroundSave::finish_alone() noexcept {
  if (!under_way()) return std::nullopt;
  wait();
  const bool leads = executor_.rank() == 0;
  bool whole = leads && !error_;
  std::optional<std::filesystem::path> finished;
  try {
    for (int tries = 0; whole && !writer_->all_have_written(); ++tries) {
      whole = tries < 20;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (whole) {
      writer_->finish(contents_);
      writer_->remove_staged();
      finished = place_;
    }
  } catch (...) {  // the error that ended the run takes precedence
  }
  staged_ = false;
  writer_.reset();
  return finished;
}

}  // namespace kintsugi::checkpoint
