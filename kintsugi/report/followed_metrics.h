// Follows metrics.jsonl of a running run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "kintsugi/report/metrics_table.h"

namespace kintsugi::report {

// Reads what was appended since the last call, and starts over if the file was replaced: resuming a run truncates it.
class FollowedMetrics {
 public:
  explicit FollowedMetrics(std::filesystem::path path) : path_(std::move(path)) { begin_anew(); }

  // Returns whether there is anything new; false if the file does not exist. Throws UserError if it cannot be read.
  bool read();

  bool exists() const { return exists_; }  // as of the last read
  const MetricsTable& table() const { return reader_->table(); }

 private:
  void begin_anew();

  std::filesystem::path path_;
  std::unique_ptr<MetricsReader> reader_;
  uint64_t device_ = 0, inode_ = 0;
  int64_t offset_ = 0;  // of the next read
  bool exists_ = false;
};

}  // namespace kintsugi::report
