#include "kintsugi/evaluate/not_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/state_pieces.h"
#include "kintsugi/exchange/not_finite.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::evaluate {
namespace {

struct BadWeight {
  std::string text;     // "2 of the 64 elements of head.table"; empty: all weights of the rank are finite
  tensor::DType dtype;  // of weights
};

// The first weight with a bad element, among those for which `selects` returns true.
BadWeight bad_weight(const run::Executor& executor,
                     const std::function<bool(const program::StateInfo&, tensor::DType)>& selects = {}) {
  BadWeight found = {.text = {}, .dtype = tensor::DType::f32};
  const program::Program& p = executor.program();
  for (const program::StateInfo& s : p.states) {
    if (s.kind != program::StateKind::weight) continue;
    found.dtype = p.buffer(s.buffer).type.dtype;
    if (!tensor::is_floating(found.dtype) || (selects && !selects(s, found.dtype))) continue;
    const auto size = static_cast<size_t>(tensor::size_of(found.dtype));
    int64_t bad = 0, count = 0;
    run::look_at_runs(executor, s, [&](const program::Run& run, const std::byte* data) {
      bad += exchange::count_not_finite({data, static_cast<size_t>(run.count) * size}, found.dtype);
      count += run.count;
    });
    if (bad == 0) continue;
    found.text = fmt::format("{} of the {} of {}", base::group_digits(bad), base::counted(count, "element"), s.name);
    break;
  }
  return found;
}

// The text of the first rank that has one, with its number; "" if none has.
std::string of_first_rank(const std::string& mine, comm::Communicator& all) {
  if (all.size() == 1) return mine;
  const int32_t has = mine.empty() ? 0 : 1;
  std::vector<int32_t> every(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&has, 1)), std::as_writable_bytes(std::span(every))));
  const auto first = std::ranges::find(every, 1);
  if (first == every.end()) return "";
  const auto rank = static_cast<int>(first - every.begin());
  std::array<char, 512> text = {};
  if (all.rank() == rank) fmt::format("{} on rank {}", mine, rank).copy(text.data(), text.size() - 1);
  all.wait(all.broadcast(std::as_writable_bytes(std::span(text)), rank));
  return text.data();
}

// Whether finite elements of the first type may become infinite in the second. Excludes fp32 in bf16, which differ only
// above 3.38e38.
bool may_overflow(tensor::DType stored, tensor::DType used) {
  if (used == tensor::DType::f16) return stored != tensor::DType::f16;
  return stored == tensor::DType::f64 && used != tensor::DType::f64;
}

}  // namespace

void require_finite_weights(const run::Executor& executor, const checkpoint::TensorSource& source,
                            comm::Communicator& all) {
  const BadWeight found = bad_weight(executor, [&](const program::StateInfo& s, tensor::DType used) {
    return s.saved && may_overflow(source.type(checkpoint::stored_name(s)).dtype, used);
  });
  const std::string text = of_first_rank(found.text, all);
  if (text.empty()) return;
  const bool narrow = found.dtype == tensor::DType::f16;
  throw base::UserError("model", "{} are NaN or infinity in {}, whose largest number is {}; use --dtype {}", text,
                        name_of(found.dtype), narrow ? "65504" : "3.4e38", narrow ? "bf16 or fp32" : "fp64");
}

void fail_not_finite(std::string_view where, std::string_view what, const run::Executor& executor,
                     comm::Communicator* all) {
  const BadWeight found = bad_weight(executor);
  const std::string text = all ? of_first_rank(found.text, *all) : found.text;
  if (!text.empty()) throw base::UserError(where, "{} are NaN or infinity, and so are {}", what, text);
  if (found.dtype == tensor::DType::f16)
    throw base::UserError(where,
                          "{} are NaN or infinity although all weights are finite: values exceed fp16, which ends at "
                          "65504; --dtype fp32 or bf16 does not",
                          what);
  throw base::UserError(where, "{} are NaN or infinity although all weights are finite: values exceed the range of {}",
                        what, name_of(found.dtype));
}

}  // namespace kintsugi::evaluate
