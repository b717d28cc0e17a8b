#include "kintsugi/run/device_side.h"

#include <algorithm>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/program/staging.h"

namespace kintsugi::run {

static_assert(sizeof(kernels::Numbers) <= program::kStagedNumbers);

DeviceSide::DeviceSide(device::Device& device, int64_t bytes, int64_t staged, std::chrono::milliseconds time_limit)
    : watchdog_(
          "device", launch::this_process().rank, "what the device was given",
          " (parallel.timeout_seconds and a tenth); a step that takes longer needs more, else Xid lines of `dmesg` "
          "say whether it is the card",
          time_limit + time_limit / 10),
      device_(device),
      staged_(staged),
      memory_(device.allocate(bytes)),
      bounce_(device.allocate_pinned(kBounce)),
      stream_(device.stream()),
      slots_(kSlots),
      answers_(device.allocate_pinned(kAnswers)),
      questions_(kMostAsked) {
  for (Question& q : questions_) q.answered = device.event();
  for (Slot& slot : slots_) slot = {device_.allocate_pinned(staged), device_.event()};
  *refused() = {};
  watchdog_.rest();
}

void DeviceSide::next_slot() {
  slot_ = (slot_ + 1) % slots_.size();
  {
    const Watched wait(*this);
    slots_[slot_].sent->wait();
  }
  const Slot& slot = slots_[slot_];
  const std::span<const std::byte> written(slot.memory->data(), static_cast<size_t>(slot.memory->bytes()));
  device_.announce({.what = "the host's inputs of a step", .reads = {}, .writes = {&written, 1}});
}

void DeviceSide::send(const kernels::Numbers& numbers) {
  Slot& slot = slots_[slot_];
  std::memcpy(slot.memory->data(), &numbers, sizeof(numbers));
  stream_->copy(staged_on_device(), slot.memory->data(), staged_);
  stream_->record(*slot.sent);
}

void DeviceSide::ask(std::span<const std::byte* const> from) {
  base::require(asked_ - answered_ < kMostAsked && from.size() <= kMostNumbers, "run",
                "{} scalars are requested while {} requests are open", from.size(), asked_ - answered_);
  for (size_t i = 0; i < from.size(); ++i) stream_->copy(answer_of(asked_) + i, from[i], sizeof(double));
  Question& q = question(asked_++);
  q.numbers = from.size();
  stream_->record(*q.answered);
}

void DeviceSide::answer(std::span<double> to) {
  base::require(answered_ < asked_ && to.size() == question(answered_).numbers, "run", "no request is open");
  {
    const Watched wait(*this);
    question(answered_).answered->wait(meanwhile_);
  }
  kernels::require_slots(*refused());
  const std::span<const std::byte> read = std::as_bytes(std::span(answer_of(answered_), to.size()));
  device_.announce({.what = "the host's look at numbers of a step", .reads = {&read, 1}, .writes = {}});
  std::copy_n(answer_of(answered_), to.size(), to.begin());
  ++answered_;
}

void DeviceSide::read(const std::byte* from, std::span<std::byte> to) {
  for (size_t at = 0; at < to.size(); at += kBounce) {
    const size_t bytes = std::min(to.size() - at, static_cast<size_t>(kBounce));
    stream_->copy(bounce_->data(), from + at, static_cast<int64_t>(bytes));
    synchronize();
    std::memcpy(to.data() + at, bounce_->data(), bytes);
  }
}

void DeviceSide::read(std::span<const std::byte* const> from, std::span<double> to) {
  for (size_t i = 0; i < from.size(); ++i) stream_->copy(bounce_->data() + i * sizeof(double), from[i], sizeof(double));
  synchronize();
  std::memcpy(to.data(), bounce_->data(), to.size_bytes());
}

void DeviceSide::read(std::span<const Copied> copies) {
  for (const Copied& c : copies) stream_->copy(c.to, c.from, c.bytes);
  synchronize();
}

void DeviceSide::write(std::byte* to, std::span<const std::byte> from) {
  for (size_t at = 0; at < from.size(); at += kBounce) {
    const size_t bytes = std::min(from.size() - at, static_cast<size_t>(kBounce));
    std::memcpy(bounce_->data(), from.data() + at, bytes);
    stream_->copy(to + at, bounce_->data(), static_cast<int64_t>(bytes));
    synchronize();
  }
}

void DeviceSide::synchronize() {
  {
    const Watched wait(*this);
    stream_->synchronize(meanwhile_);
  }
  kernels::require_slots(*refused());
}

}  // namespace kintsugi::run
