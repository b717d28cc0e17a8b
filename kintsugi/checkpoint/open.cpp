#include "kintsugi/checkpoint/open.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"

namespace kintsugi::checkpoint {
namespace {

namespace fs = std::filesystem;

// Ranks that do not share a file system would open checkpoints of the same name with different weights or tokenizers.
void require_same_checkpoint(const CheckpointReader& reader, comm::Communicator& all) {
  comm::require_same(all, "checkpoint", "checkpoint",
                     fmt::format("{}: checksum {}", reader.folder().string(), checksum_text(reader.checksum())));
}

// Reports why no checkpoint is complete on all ranks: they do not see the same folder.
void require_same_list(const fs::path& run_folder, comm::Communicator& all) {
  std::string steps;
  for (const SavedStep& saved : list(run_folder)) steps += fmt::format("{} {}", steps.empty() ? "" : ",", saved.step);
  comm::require_same(all, "checkpoint", "list of checkpoints",
                     fmt::format("{}: {}", run_folder.string(), steps.empty() ? "none" : "steps" + steps));
}

// A listing made while a run saves and prunes may show neither the removed nor the new step, so an empty one is
// retried.
std::vector<SavedStep> list_but(const fs::path& run_folder, const std::set<int64_t>& skipped) {
  for (int more = 3;; --more) {
    std::vector<SavedStep> saved = list(run_folder);
    std::erase_if(saved, [&](const SavedStep& s) { return skipped.contains(s.step); });
    if (!saved.empty() || more == 0) return saved;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

std::unique_ptr<CheckpointReader> open_newest_whole(const fs::path& run_folder, comm::Communicator& all) {
  // On rank 0 only.
  std::vector<SavedStep> saved;
  std::set<int64_t> skipped;
  bool listed = false;
  for (;;) {
    comm::together(all, [&] {
      if (all.rank() != 0 || listed) return;
      saved = list_but(run_folder, skipped);
      listed = true;
    });
    const int64_t step = comm::of_rank_0(all, saved.empty() ? -1 : saved.back().step);
    if (step < 0) {
      require_same_list(run_folder, all);
      return nullptr;
    }
    std::unique_ptr<CheckpointReader> reader;
    const auto failure = comm::failure_of(all, [&] {
      reader = std::make_unique<CheckpointReader>(step_folder(run_folder, step));
      reader->hold();
      reader->verify(all.rank(), all.size(), nullptr);
    });
    if (!failure) {
      require_same_checkpoint(*reader, all);
      reader->trust(nullptr);
      return reader;
    }
    if (all.rank() != 0) continue;
    std::error_code error;
    if (!fs::exists(step_folder(run_folder, step), error)) {
      listed = false;
      continue;
    }
    spdlog::warn("step {} is skipped: {}", step, *failure);
    skipped.insert(step);
    saved.pop_back();
  }
}

std::unique_ptr<CheckpointReader> open_checkpoint(const fs::path& path, comm::Communicator& all) {
  bool is_checkpoint = false;
  comm::together(all, [&] {
    std::error_code error;
    is_checkpoint = fs::exists(path / kIndexFile, error);
    if (!is_checkpoint && fs::is_regular_file(path, error))
      throw base::UserError("checkpoint", "{} is a file; a checkpoint or a run's folder is needed",
                            base::in_quotes(path.string()));
    if (!is_checkpoint && !fs::is_directory(path, error))
      throw base::UserError("checkpoint", "there is no folder {}; a checkpoint or a run's folder is needed",
                            base::in_quotes(path.string()));
  });
  std::unique_ptr<CheckpointReader> reader;
  if (comm::of_rank_0(all, is_checkpoint)) {
    comm::together(all, [&] { reader = std::make_unique<CheckpointReader>(path); });
    require_same_checkpoint(*reader, all);
  } else {
    reader = open_newest_whole(path, all);
  }
  if (!reader)
    throw comm::SharedError("checkpoint", "{} holds no whole checkpoint; a checkpoint or a run's folder is needed",
                            base::in_quotes(path.string()));
  return reader;
}

}  // namespace kintsugi::checkpoint
