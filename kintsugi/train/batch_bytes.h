// Bytes of the texts of each step's labels, counted where its batches are read.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/samples/share.h"
#include "kintsugi/train/text_bytes.h"

namespace kintsugi::train {

class BatchBytes {
 public:
  // Of the batches of which a rank reads a share. Ranks that read equal samples count them once. `all`: all ranks,
  // which must outlive it. Collective.
  BatchBytes(const std::string& tokenizer_json, const samples::Share& share, comm::Communicator& all);

  // Of a micro-batch of the step being read.
  void add(std::span<const int32_t> labels);
  // Ends the step being read.
  void end_step();
  // Takes the count of the oldest step that ended, `step` counted from 1: of the global batch, on all ranks.
  // Collective.
  int64_t take(int64_t step);

  // Null on ranks that count nothing, but for rank 0.
  TextBytes* text_bytes() const { return text_bytes_.get(); }

 private:
  comm::Communicator& all_;
  bool counts_;
  std::unique_ptr<TextBytes> text_bytes_;
  int64_t open_ = 0;
  std::deque<int64_t> ended_;
};

}  // namespace kintsugi::train
