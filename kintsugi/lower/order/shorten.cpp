#include "kintsugi/lower/order/shorten.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/order/schedule.h"

namespace kintsugi::lower {

using program::Body;
using program::Call;
using program::CallList;
using program::Program;

namespace {

class Shorter {
 public:
  explicit Shorter(Program& p) : p_(p), full_(p.list(program::Step::train)) {
    for (const Call& call : full_.calls) all_ = std::max(all_, call.micro_batch + 1);
  }

  CallList list(int64_t micro_batches) {
    base::require(micro_batches > 0 && micro_batches < all_, "shorten", "{} of {} micro-batches", micro_batches, all_);
    CallList made = {.step = program::Step::train,
                     .calls = {},
                     .micro_batches = micro_batches,
                     .slots = full_.slots,
                     .arena_bytes = full_.arena_bytes,
                     .lower_bound_bytes = full_.lower_bound_bytes};
    Overwritten overwritten;
    for (Call call : full_.calls) {
      if (call.micro_batch >= 0) {
        call.micro_batch -= all_ - micro_batches;
        if (call.micro_batch < 0) continue;
        if (call.micro_batch == 0) call.body = first(call.body, overwritten);
      }
      made.calls.push_back(call);
    }
    return made;
  }

 private:
  // The variant of a body for the first micro-batch, or the body if it accumulates nothing.
  int first(int of, Overwritten& overwritten) {
    Body body = p_.bodies[static_cast<size_t>(of)];
    if (body.role != program::Role::work || !overwrite_first(p_, body, overwritten)) return of;
    const auto [at, fresh] = firsts_.try_emplace(of, static_cast<int>(p_.bodies.size()));
    if (!fresh) return at->second;
    if (body.variant_of < 0) body.variant_of = of;
    body.name += ".begins";
    p_.bodies.push_back(std::move(body));
    return at->second;
  }

  Program& p_;
  const CallList full_;  // a copy, since lists are added
  int64_t all_ = 0;
  std::map<int, int> firsts_;
};

}  // namespace

void shorten(Program& p, std::span<const int64_t> micro_batches) {
  if (micro_batches.empty() || p.find(program::Step::train) == nullptr) return;
  Shorter shorter(p);
  for (const int64_t count : micro_batches) p.lists.push_back(shorter.list(count));
}

}  // namespace kintsugi::lower
