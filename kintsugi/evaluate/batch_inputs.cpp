#include "kintsugi/evaluate/batch_inputs.h"

namespace kintsugi::evaluate {

void set_inputs(const run::Executor::Inputs& inputs, const data::BatchView& batch, int64_t first,
                const data::RowSizes& sizes) {
  data::for_each_part([&](const auto& part) {
    if (!(batch.*part.view).empty()) inputs.set(part.name, {batch.*part.view, first, sizes.*part.size}, part.padding);
  });
}

}  // namespace kintsugi::evaluate
