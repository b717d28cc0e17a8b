// Samples that are rows of a table: the first columns are features, the last ones targets or a class.
#pragma once

#include <memory>

#include "kintsugi/data/number_table.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/sample_order.h"

namespace kintsugi::samples {

struct NumberOptions {
  int64_t features = 0;
  int64_t targets = 0;  // 0: the last column is a class
  SampleOrder order;
};

class NumberSamples : public FiniteSource {
 public:
  // The table has features + targets columns, or features and the class.
  NumberSamples(std::shared_ptr<const data::NumberTable> table, NumberOptions options);

  uint64_t num_samples() const override { return static_cast<uint64_t>(table_->rows()); }
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  std::shared_ptr<const data::NumberTable> table_;
  NumberOptions options_;
  Parts parts_;
};

}  // namespace kintsugi::samples
