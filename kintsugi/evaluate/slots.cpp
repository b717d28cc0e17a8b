#include "kintsugi/evaluate/slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/evaluate/not_finite.h"
#include "kintsugi/models/step.h"

namespace kintsugi::evaluate {
namespace {

using program::Step;

// Sizes known from the program of one stage; other stages have other parts.
struct SlotSizes {
  int64_t capacity = 0, slots = 0, chunk = 0;
  int64_t logits = 0;  // 1: it has them
};

SlotSizes slot_sizes(const run::Executor& executor) {
  SlotSizes sizes;
  for (const program::StateInfo& s : executor.program().states)
    if (s.kind == program::StateKind::cache)
      sizes.capacity = s.whole.shape.size("key_seq"), sizes.slots = s.whole.shape.size("text");
  for (const program::Buffer& b : executor.program().buffers)
    if (!b.input.empty() && b.whole.has("batch")) sizes.chunk = std::max(sizes.chunk, b.whole.size("batch"));
  sizes.logits = executor.has_output(Step::decode, "logits") ? 1 : 0;
  return sizes;
}

size_t common_beginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// A text continues only if it does on all ranks.
void end_on_any(comm::Communicator* all, std::vector<int32_t>& goes_on) {
  if (!all || goes_on.empty()) return;
  const std::vector<int32_t> mine = goes_on;
  all->wait(all->all_reduce(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(goes_on)),
                            tensor::DType::i32, comm::Reduction::min));
}

}  // namespace

Slots::Slots(run::Executor& executor, comm::Communicator* all) : executor_(executor), all_(all) {
  std::vector<SlotSizes> every = {slot_sizes(executor)};
  if (all_) {
    const SlotSizes mine = every[0];
    every.resize(static_cast<size_t>(all_->size()));
    all_->wait(all_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  }
  int64_t slots = 0, chunk = 0;
  for (const SlotSizes& s : every) {
    capacity_ = std::max(capacity_, s.capacity);
    slots = std::max(slots, s.slots);
    chunk = std::max(chunk, s.chunk);
  }
  const auto found = std::ranges::find(every, 1, &SlotSizes::logits);
  base::require(found != every.end() && slots > 0 && chunk >= slots, "slots", "{} slots for {} rows", slots, chunk);
  from_ = static_cast<int>(found - every.begin());
  slots_.resize(static_cast<size_t>(slots));
  chunk_ = static_cast<size_t>(chunk);
  const models::ServingRows few = models::serving_rows(slots, chunk);
  for (const auto& [step, rows] :
       {std::pair(Step::decode_one, few.decode_one), std::pair(Step::decode_quarter, few.decode_quarter),
        std::pair(Step::decode_half, few.decode_half), std::pair(Step::decode, slots),
        std::pair(Step::prefill_quarter, few.prefill_quarter), std::pair(Step::prefill, chunk)})
    if (rows > 0) lists_.push_back({step, static_cast<size_t>(rows)});
}

const Slots::Slot& Slots::at(int64_t slot) const {
  base::require(slot >= 0 && slot < size(), "slots", "slot {} of {}", slot, size());
  return slots_[static_cast<size_t>(slot)];
}

int64_t Slots::num_active() const {
  return std::ranges::count(slots_, true, &Slot::active);
}

std::optional<int64_t> Slots::free_slot(std::span<const int32_t> prompt) const {
  std::vector<int64_t> free;
  for (int64_t i = 0; i < size(); ++i)
    if (!at(i).active) free.push_back(i);
  if (free.empty()) return std::nullopt;
  return best_of(free, prompt);
}

int64_t Slots::best_of(std::span<const int64_t> slots, std::span<const int32_t> prompt) const {
  const auto key = [&](int64_t i) {
    const Slot& s = at(i);
    const size_t held = s.first == 0 ? common_beginning(s.cached, prompt) : 0;
    return std::pair(SIZE_MAX - held, s.order);
  };
  return *std::ranges::min_element(slots, {}, key);
}

void Slots::begin(int64_t slot, SlotText text) {
  base::require(!at(slot).active && !text.prompt.empty(), "slots", "slot {} is in use, or its prompt is empty", slot);
  base::require(text.draws || (text.score_prompt && text.score_from < text.prompt.size()), "slots",
                "nothing of the prompt is scored, and no token is drawn");
  Slot& s = slots_[static_cast<size_t>(slot)];
  // The token before the first scored one, or the last, produces logits.
  const size_t most = (text.score_prompt ? std::max<size_t>(text.score_from, 1) : text.prompt.size()) - 1,
               held = s.first == 0 ? std::min(common_beginning(s.cached, text.prompt), most) : 0;
  s.cached.resize(held);
  reused_ += static_cast<int64_t>(held);
  s.active = true;
  s.ids = text.prompt;
  if (!text.draws) s.ids.pop_back();
  s.first = std::ssize(s.ids) > capacity_ ? s.ids.size() - static_cast<size_t>(capacity_) : 0;
  if (s.first > 0) s.cached.clear();
  s.text = std::move(text);
  s.order = ++order_;
}

void Slots::end(int64_t slot) {
  base::require(at(slot).active, "slots", "slot {} is not in use", slot);
  Slot& s = slots_[static_cast<size_t>(slot)];
  s.active = false;
  s.order = ++order_;
}

// Takes the next token of each text in generation, then as much of the prompts as fits, oldest first, so that other
// texts continue while a long prompt is read.
std::vector<Slots::Part> Slots::choose_parts() {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size(); ++i)
    if (at(i).active) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](int64_t i) {
    return std::pair(at(i).pending() > 1, at(i).pending() > 1 ? at(i).order : uint64_t{0});
  });
  std::vector<Part> parts;
  size_t row = 0;
  for (const int64_t i : order) {
    Slot& s = slots_[static_cast<size_t>(i)];
    if (std::ssize(s.cached) == capacity_) {
      s.first = s.ids.size() - static_cast<size_t>(std::max<int64_t>(1, capacity_ / 2));
      s.cached.clear();
    }
    const size_t count = std::min(s.pending(), chunk_ - row);
    if (count == 0) continue;
    parts.push_back({.slot = i,
                     .row = row,
                     .count = count,
                     .from = s.first + s.cached.size(),
                     .draws = s.text.draws && count == s.pending()});
    row += count;
  }
  return parts;
}

void Slots::run(Step step, size_t rows, std::span<const Part> parts) {
  tokens_.assign(rows, 0), text_.assign(rows, -1), at_.assign(rows, -1);
  rows_.clear();
  for (const Part& p : parts) {
    const Slot& s = at(p.slot);
    for (size_t i = 0; i < p.count; ++i) {
      tokens_[p.row + i] = s.ids[p.from + i];
      text_[p.row + i] = static_cast<int32_t>(p.slot);
      at_[p.row + i] = static_cast<int32_t>(p.from + i - s.first);
    }
    if (p.draws) rows_.push_back(static_cast<int32_t>(p.row + p.count - 1));
  }
  rows_.resize(std::min(slots_.size(), rows), -1);
  kernels::Numbers numbers;
  executor_.run(step, numbers, [&](const run::Executor::Inputs& inputs) {
    if (inputs.has("tokens")) inputs.set("tokens", {tokens_, 0, 1}, 0);
    if (inputs.has("text")) inputs.set("text", {text_, 0, 1}, -1);
    if (inputs.has("at")) inputs.set("at", {at_, 0, 1}, -1);
    if (inputs.has("rows")) inputs.set("rows", {rows_, 0, std::ssize(rows_)}, -1);
  });
}

std::vector<Slots::Found> Slots::step() {
  const std::vector<Part> parts = choose_parts();
  base::require(!parts.empty(), "slots", "no slot is in use");
  const size_t used = parts.back().row + parts.back().count;
  const bool scores = std::ranges::any_of(parts, [&](const Part& p) {
    const Slot& s = at(p.slot);
    return s.scores(std::max(p.from + 1, s.text.score_from)) && p.from + p.count >= s.text.score_from;
  });
  const RowsOfList list = scores ? RowsOfList{Step::score, chunk_}
                                 : *std::ranges::find_if(lists_, [&](const auto& l) { return l.rows >= used; });
  const Step step = list.step;
  run(step, list.rows, parts);
  std::vector<Found> found = find_tokens(step, parts);
  for (const Part& p : parts) {
    Slot& s = slots_[static_cast<size_t>(p.slot)];
    const auto begin = s.ids.begin() + static_cast<std::ptrdiff_t>(p.from);
    s.cached.insert(s.cached.end(), begin, begin + static_cast<std::ptrdiff_t>(p.count));
  }
  for (const Found& f : found) {
    Slot& s = slots_[static_cast<size_t>(f.slot)];
    if (f.token.id == kNotFinite)
      s.cached.clear();  // so are its keys and values
    else if (!f.of_prompt)
      s.ids.push_back(f.token.id);
  }
  return found;
}

void Slots::fail_not_finite(int64_t slot) const {
  evaluate::fail_not_finite("generate", fmt::format("the logits after {} tokens of a text", at(slot).ids.size()),
                            executor_, all_);
}

// Row `row` of the last pass, [vocab], on a rank with the logits.
std::vector<float> Slots::logits_row(const tensor::View& out, size_t row) {
  const auto vocab = static_cast<size_t>(out.shape().size("vocab"));
  std::vector<float> logits(vocab);
  tensor::dispatch(out.dtype(), [&]<typename T>(T) {
    std::ranges::transform(out.as<T>().subspan(row * vocab, vocab), logits.begin(),
                           [](T x) { return static_cast<float>(x); });
  });
  return logits;
}

// The tokens found by a pass, on every rank: the rank with the logits samples and scores.
std::vector<Slots::Found> Slots::find_tokens(Step step, std::span<const Part> parts) {
  struct Wanted {
    const Slot* slot;
    size_t row;       // of the logits
    int32_t id = -1;  // -1: sampled
    int64_t top = -1;
  };
  std::vector<Found> found;
  std::vector<Wanted> wanted;
  size_t drawn = 0;
  for (const Part& p : parts) {
    const Slot& s = at(p.slot);
    const auto add = [&](size_t row, int32_t id, int64_t top) {
      found.push_back({.slot = p.slot, .of_prompt = id >= 0, .token = {.id = id}});
      wanted.push_back({&s, row, id, top});
    };
    for (size_t i = 0; i < p.count; ++i)
      if (s.scores(p.from + i + 1)) add(p.row + i, s.text.prompt[p.from + i + 1], std::max<int64_t>(s.text.top, 0));
    if (p.draws) add(step == Step::score ? p.row + p.count - 1 : drawn, -1, s.text.top);
    drawn += p.draws ? 1 : 0;
  }
  size_t packed_size = 0;
  for (const Wanted& w : wanted) packed_size += w.top < 0 ? 1 : 2 + 2 * static_cast<size_t>(w.top);
  std::vector<double> packed(packed_size);
  if (!all_ || all_->rank() == from_) {
    const tensor::View out = executor_.output(step, "logits");  // [row vocab], or [batch seq vocab]
    double* to = packed.data();
    for (const Wanted& w : wanted) {
      const std::vector<float> logits = logits_row(out, w.row);
      const SampleOptions& how = w.slot->text.sample;
      const size_t ids = how.vocab > 0 ? std::min(static_cast<size_t>(how.vocab), logits.size()) : logits.size();
      const kernels::host::Logits drawn = {logits.data(), static_cast<int64_t>(ids), tensor::DType::f32};
      const bool finite = w.id < 0 || std::ranges::all_of(logits, [](float x) { return std::isfinite(x); });
      const int32_t id = !finite ? kNotFinite
                         : w.id >= 0
                             ? w.id
                             : sample_next(drawn, how, w.slot->ids, w.slot->text.prompt.size(), w.slot->text.stream);
      *to++ = id;
      if (w.top < 0) continue;
      if (id == kNotFinite) {
        to += 1 + 2 * w.top;
        continue;
      }
      const TokenScore score = score_token(logits, id, w.top);
      *to++ = *score.log_probability;
      for (size_t t = 0; t < static_cast<size_t>(w.top); ++t) {  // fewer if there are fewer ids
        *to++ = t < score.top.size() ? score.top[t].id : -1;
        *to++ = t < score.top.size() ? score.top[t].log_probability : 0;
      }
    }
  }
  if (all_ && !packed.empty()) all_->wait(all_->broadcast(std::as_writable_bytes(std::span(packed)), from_));
  const double* from = packed.data();
  for (size_t i = 0; i < wanted.size(); ++i) {
    TokenScore& token = found[i].token;
    token.id = static_cast<int32_t>(*from++);
    if (wanted[i].top < 0) continue;
    token.log_probability = *from++;
    for (int64_t t = 0; t < wanted[i].top; ++t, from += 2)
      if (from[0] >= 0) token.top.push_back({static_cast<int32_t>(from[0]), from[1]});
  }
  return found;
}

void continue_in_slots(Slots& slots, comm::Communicator* all, std::span<const std::vector<int32_t>> prompts,
                       const SampleOptions& options, const std::function<bool(size_t, int32_t)>& next) {
  std::vector<size_t> text_of(static_cast<size_t>(slots.size()));
  for (size_t begun = 0; begun < prompts.size() || slots.num_active() > 0;) {
    while (begun < prompts.size()) {
      const std::optional<int64_t> slot = slots.free_slot(prompts[begun]);
      if (!slot) break;
      slots.begin(*slot, {.prompt = prompts[begun], .sample = options, .stream = begun});
      text_of[static_cast<size_t>(*slot)] = begun++;
    }
    const std::vector<Slots::Found> found = slots.step();
    std::vector<int32_t> goes_on;
    for (const Slots::Found& f : found)
      if (f.token.id == kNotFinite) slots.fail_not_finite(f.slot);
    for (const Slots::Found& f : found)
      goes_on.push_back(next(text_of[static_cast<size_t>(f.slot)], f.token.id) ? 1 : 0);
    end_on_any(all, goes_on);
    for (size_t i = 0; i < found.size(); ++i)
      if (goes_on[i] == 0) slots.end(found[i].slot);
  }
}

}  // namespace kintsugi::evaluate
