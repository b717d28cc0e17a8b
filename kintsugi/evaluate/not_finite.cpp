#include "kintsugi/evaluate/not_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/exchange/not_finite.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::evaluate {
namespace {

struct BadWeight {
  std::string text;     // empty: all weights of the rank are finite
  tensor::DType dtype;  // of weights
};

BadWeight bad_weight(const run::Executor& executor) {
  BadWeight found = {.text = {}, .dtype = tensor::DType::f32};
  const program::Program& p = executor.program();
  for (const program::StateInfo& s : p.states) {
    if (s.kind != program::StateKind::weight) continue;
    found.dtype = p.buffer(s.buffer).type.dtype;
    if (!tensor::is_floating(found.dtype)) continue;
    const auto size = static_cast<size_t>(tensor::size_of(found.dtype));
    int64_t bad = 0, count = 0;
    run::look_at_runs(executor, s, [&](const program::Run& run, const std::byte* data) {
      bad += exchange::count_not_finite({data, static_cast<size_t>(run.count) * size}, found.dtype);
      count += run.count;
    });
    if (bad == 0) continue;
    found.text = fmt::format("so {} {} of the {} of {}", bad == 1 ? "is" : "are", base::group_digits(bad),
                             base::counted(count, "element"), s.name);
    break;
  }
  return found;
}

}  // namespace

void fail_not_finite(std::string_view where, std::string_view what, const run::Executor& executor,
                     comm::Communicator* all) {
  BadWeight found = bad_weight(executor);
  if (all && all->size() > 1) {
    const int32_t mine = found.text.empty() ? 0 : 1;
    std::vector<int32_t> every(static_cast<size_t>(all->size()));
    all->wait(all->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
    const auto first = std::ranges::find(every, 1);
    if (first != every.end()) {
      const auto rank = static_cast<int>(first - every.begin());
      std::array<char, 512> text = {};
      if (all->rank() == rank) fmt::format("{} on rank {}", found.text, rank).copy(text.data(), text.size() - 1);
      all->wait(all->broadcast(std::as_writable_bytes(std::span(text)), rank));
      found.text = text.data();
    }
  }
  if (!found.text.empty()) throw base::UserError(where, "{} are NaN or infinity: {}", what, found.text);
  if (found.dtype == tensor::DType::f16)
    throw base::UserError(where,
                          "{} are NaN or infinity although all weights are finite: values exceed fp16, which ends at "
                          "65504; --dtype fp32 or bf16 does not",
                          what);
  throw base::UserError(where, "{} are NaN or infinity although all weights are finite: values exceed the range of {}",
                        what, name_of(found.dtype));
}

}  // namespace kintsugi::evaluate
