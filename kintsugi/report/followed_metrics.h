// metrics.jsonl of a run that is under way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "kintsugi/report/metrics_table.h"

namespace kintsugi::report {

// Reads what is new each time, and begins anew where the file has become another: a run that is resumed cuts it.
class FollowedMetrics {
 public:
  explicit FollowedMetrics(std::filesystem::path path) : path_(std::move(path)) { begin_anew(); }

  // Whether there is something new. False as well where there is no file. UserError if it cannot be read.
  bool read();

  bool exists() const { return exists_; }  // when it was read last
  const MetricsTable& table() const { return reader_->table(); }

 private:
  void begin_anew();

  std::filesystem::path path_;
  std::unique_ptr<MetricsReader> reader_;
  uint64_t device_ = 0, inode_ = 0;
  int64_t offset_ = 0;  // of what is read next
  bool exists_ = false;
};

}  // namespace kintsugi::report
