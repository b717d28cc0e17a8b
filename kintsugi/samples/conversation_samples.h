// Samples of whole conversations: several packed into a sample, each a document of its own, or one per sample.
//
//   tokens   a b c d | e f g | padding      labels: the next token where that is an answer, else kIgnored
//
// Padding is a document of its own, of tokens -1. A conversation of n ids takes n - 1 positions: its last id is only a
// label.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kintsugi/data/conversations.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/sample_order.h"

namespace kintsugi::samples {

// data::Conversations of more than `sequence` positions.
enum class TooLong { refuse, drop, cut };

struct ConversationOptions {
  int64_t sequence = 0;
  bool packed = true;
  TooLong too_long = TooLong::refuse;
  SampleOrder order = {};
};

class ConversationSamples : public FiniteSource {
 public:
  // Throws UserError, with counts, if conversations are too long and are to be refused, or if none remain.
  ConversationSamples(std::shared_ptr<const data::Conversations> conversations, ConversationOptions options);

  uint64_t num_samples() const override { return begins_.size() - 1; }
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

  size_t dropped() const { return dropped_; }  // conversations that are too long, or have no answer after they are cut
  size_t cut() const { return cut_; }

 private:
  std::shared_ptr<const data::Conversations> conversations_;
  ConversationOptions options_;
  std::vector<uint32_t> members_;  // conversations by sample
  std::vector<size_t> begins_ = {0};
  size_t dropped_ = 0, cut_ = 0;
  Parts parts_;
};

}  // namespace kintsugi::samples
