// Samples of pairs of answers: the chosen one and the rejected one, each with its prompt, as two documents.
//
//   tokens   p q c c | p q r r | padding     labels: the next token where that is an answer, else kIgnored
//   weights  0 1 1   | 0 -1 -1 | 0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kintsugi/data/preferences.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/conversation_samples.h"
#include "kintsugi/samples/sample_order.h"

namespace kintsugi::samples {

struct PreferenceOptions {
  int64_t sequence = 0;
  TooLong too_long = TooLong::refuse;  // refuse or drop
  SampleOrder order = {};
};

class PreferenceSamples : public FiniteSource {
 public:
  // Throws UserError, with counts, if pairs are too long and are to be refused, or if none remain.
  PreferenceSamples(std::shared_ptr<const data::Preferences> preferences, const PreferenceOptions& options);

  uint64_t num_samples() const override { return members_.size(); }
  const Parts& parts() const override { return parts_; }
  // Until the reference is set, each pair has a reference of 0.
  void fill(uint64_t first, const BatchView& batch) const override;
  // As fill, but in file order, whatever the order of the samples; positions beyond the last pair are padding.
  void fill_in_order(uint64_t first, const BatchView& batch) const;
  // The margins of the reference model, of the pairs in file order. Call before any thread fills batches.
  void set_reference(std::span<const double> margins);

  size_t dropped() const { return preferences_->pairs().size() - members_.size(); }

 private:
  void fill_row(uint64_t sample, const BatchView& view) const;

  std::shared_ptr<const data::Preferences> preferences_;
  PreferenceOptions options_;
  std::vector<uint32_t> members_;  // the pairs that fit
  std::vector<double> reference_;
  Parts parts_;
};

}  // namespace kintsugi::samples
