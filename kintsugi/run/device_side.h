// The device side of an executor: memory, stream, and staging of inputs and scalars. The host fills one of a few slots
// of pinned memory while the device works on earlier steps; it waits only for the step that used the same slot. If the
// device does not complete, the process exits with a message, since freeing its memory would hang too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kintsugi/base/watchdog.h"
#include "kintsugi/device/device.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/kernels/refuse_token.h"

namespace kintsugi::run {

class DeviceSide {
 public:
  static constexpr size_t kMostAsked = 4;
  static constexpr size_t kMostNumbers = 16;            // of a question
  static constexpr int64_t kSlots = 3;                  // of inputs, pinned
  static constexpr int64_t kBounce = int64_t{4} << 20;  // pinned, for copies of states
  // Bytes, pinned: answers, then reports of kernels.
  static constexpr int64_t kAnswers = kMostAsked * kMostNumbers * sizeof(double) + sizeof(kernels::RefusedTokens);

  // Allocates `bytes` on the device; the last `staged` of them are the staging area for the scalars and inputs of a
  // step. Each wait, and the destructor, are limited to `time_limit` plus a tenth, by when others that wait for a
  // device have reported more.
  DeviceSide(device::Device& device, int64_t bytes, int64_t staged, std::chrono::milliseconds time_limit);
  ~DeviceSide() { end(); }
  DeviceSide(const DeviceSide&) = delete;
  DeviceSide& operator=(const DeviceSide&) = delete;

  device::Device& device() { return device_; }
  device::Stream& stream() { return *stream_; }
  std::byte* memory() const { return memory_->data(); }
  int64_t bytes() const { return memory_->bytes(); }

  std::unique_ptr<device::Memory> pinned(int64_t bytes) { return device_.allocate_pinned(bytes); }

  // Advances to the next slot, after the device has read its contents.
  void next_slot();
  // The staging area.
  std::byte* staged_on_host() const { return slots_[slot_].memory->data(); }
  std::byte* staged_on_device() const { return memory_->data() + memory_->bytes() - staged_; }
  // Enqueues the copy of the slot, with these scalars, to the device.
  void send(const kernels::Numbers& numbers);
  const kernels::Numbers* numbers() const { return reinterpret_cast<const kernels::Numbers*>(staged_on_device()); }

  // Where kernels report tokens without a slot. A wait for the work that did throws UserError.
  kernels::RefusedTokens* refused() const {
    return reinterpret_cast<kernels::RefusedTokens*>(answers_->data() + kAnswers) - 1;
  }

  // Called periodically while the host waits for the device; it may throw.
  void set_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // Enqueues copies of scalars to the host, and returns. answer() waits for those of the oldest open request; at most
  // kMostAsked may be open.
  void ask(std::span<const std::byte* const> from);
  void answer(std::span<double> to);

  // Wait for everything that was enqueued.
  void read(const std::byte* from, std::span<std::byte> to);
  void read(std::span<const std::byte* const> from, std::span<double> to);  // scalars
  struct Copied {
    const std::byte* from;
    std::byte* to;  // pinned
    int64_t bytes;
  };
  void read(std::span<const Copied> copies);
  void write(std::byte* to, std::span<const std::byte> from);
  void synchronize();

  // A scope that may wait for the device or for a library, under the time limit.
  class Watched {
   public:
    explicit Watched(DeviceSide& side) : side_(side) { side_.watchdog_.start(); }
    ~Watched() { side_.watchdog_.rest(); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    DeviceSide& side_;
  };

  // Restarts the time limit: a launch may wait if many are in flight, and a library for other ranks. Valid until the
  // next wait has ended.
  void watch_anew() { watchdog_.start(); }
  // Starts the time limit for freeing what belongs to the device.
  void end() { watchdog_.start(); }

 private:
  struct Slot {
    std::unique_ptr<device::Memory> memory;  // pinned
    std::unique_ptr<device::Event> sent;
  };

  struct Question {
    std::unique_ptr<device::Event> answered;
    size_t numbers = 0;
  };
  Question& question(uint64_t number) { return questions_[number % questions_.size()]; }
  double* answer_of(uint64_t number) const {
    return reinterpret_cast<double*>(answers_->data()) + number % questions_.size() * kMostNumbers;
  }

  base::Watchdog watchdog_;  // outlives all other members
  device::Device& device_;
  const int64_t staged_;
  std::unique_ptr<device::Memory> memory_;
  std::unique_ptr<device::Memory> bounce_;  // pinned, for copies of states
  std::unique_ptr<device::Stream> stream_;
  std::vector<Slot> slots_;
  size_t slot_ = 0;
  std::unique_ptr<device::Memory> answers_;  // pinned
  std::vector<Question> questions_;
  uint64_t asked_ = 0, answered_ = 0;
  std::function<void()> meanwhile_;
};

}  // namespace kintsugi::run
