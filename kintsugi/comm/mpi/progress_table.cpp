#include "kintsugi/comm/mpi/progress_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::comm {
namespace {

constexpr size_t kPage = 4096;
constexpr std::chrono::seconds kToWrite{5};  // bound on writing a reason, by a rank that the system may have stopped

uint64_t pack(const Operation& operation) {
  return static_cast<uint64_t>(operation.kind) | static_cast<uint64_t>(operation.dtype) << 8 |
         static_cast<uint64_t>(operation.reduction) << 16 | static_cast<uint64_t>(operation.root + 1) << 32;
}

Operation unpack(uint64_t bytes, uint64_t rest) {
  Operation operation;
  operation.kind = static_cast<Kind>(rest & 0xFF);
  operation.dtype = static_cast<tensor::DType>(rest >> 8 & 0xFF);
  operation.reduction = static_cast<Reduction>(rest >> 16 & 0xFF);
  operation.root = static_cast<int>(rest >> 32) - 1;
  operation.bytes = bytes;
  return operation;
}

}  // namespace

// A new file is all zeros: nothing has been published.
ProgressTable::ProgressTable(const Place& place)
    : local_rank_(place.local_rank),
      local_size_(place.local_size),
      world_size_(place.world_size),
      row_bytes_((sizeof(Row) + 2 * sizeof(uint64_t) * place.world_size + 63) / 64 * 64),
      kept_begin_((kPage + row_bytes_ * kRows * place.local_size + kPage - 1) / kPage * kPage),
      bytes_(kept_begin_ + sizeof(Kept) * kKept * kRows * place.local_size),
      taken_(kRows) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(Head) <= kPage);
  const int file = open(place.path.c_str(), place.create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
  const bool sized = file >= 0 && (!place.create || ftruncate(file, static_cast<off_t>(bytes_)) == 0);
  void* memory = sized ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int error = errno;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    throw base::UserError("comm", "{}: the ranks of this node cannot share memory: {}", place.path,
                          std::strerror(error));
  }
  memory_ = static_cast<std::byte*>(memory);
}

ProgressTable::~ProgressTable() {
  munmap(memory_, bytes_);
}

ProgressTable::Row& ProgressTable::row(int local_rank, int row) const {
  return *reinterpret_cast<Row*>(memory_ + kPage + index(local_rank, row) * row_bytes_);
}

ProgressTable::Kept& ProgressTable::kept(int local_rank, int row, uint64_t n) const {
  return *reinterpret_cast<Kept*>(memory_ + kept_begin_ + (index(local_rank, row) * kKept + n % kKept) * sizeof(Kept));
}

int ProgressTable::take_row() {
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  if (free == taken_.end())
    throw base::UserError("comm", "more than {} concurrent groups of a rank; fewer chunks need fewer", kRows);
  *free = true;
  const int index = static_cast<int>(free - taken_.begin());
  if (index == unused_) {
    ++unused_;
    return index;
  }
  Row& r = row(local_rank_, index);
  r.generation.fetch_add(1);
  r.collectives.store(0);
  for (int i = 0; i < 2 * world_size_; ++i) r.messages[i].store(0);
  r.generation.fetch_add(1);
  return index;
}

void ProgressTable::give_row(int row) {
  taken_[row] = false;
}

void ProgressTable::publish(int row_index, const Operation& operation) {
  Row& r = row(local_rank_, row_index);
  const uint64_t n = r.collectives.load(std::memory_order_relaxed);
  mark_poll(row_index);
  Kept& k = kept(local_rank_, row_index, n);
  k.bytes.store(operation.bytes, std::memory_order_relaxed);
  k.rest.store(pack(operation), std::memory_order_relaxed);
  r.collectives.store(n + 1, std::memory_order_seq_cst);  // before reading those of others
}

void ProgressTable::publish_message(int row_index, int other, bool send) {
  mark_poll(row_index);
  row(local_rank_, row_index).messages[2 * other + send].fetch_add(1, std::memory_order_release);
}

void ProgressTable::mark_poll(int row_index) {
  row(local_rank_, row_index)
      .polled.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

std::string ProgressTable::text() const {
  std::string text;
  for (int index = 0; index < kRows; ++index) {
    if (!taken_[index]) continue;
    text += fmt::format("collectives {} {}\n", index, collectives(local_rank_, index));
    for (int other = 0; other < world_size_; ++other) {
      for (const bool send : {false, true}) {
        const uint64_t count = messages(local_rank_, index, other, send);
        if (count != 0) text += fmt::format("messages {} {} {} {}\n", index, other, send ? 1 : 0, count);
      }
    }
  }
  return text;
}

uint64_t ProgressTable::collectives(int local_rank, int row_index) const {
  return row(local_rank, row_index).collectives.load(std::memory_order_acquire);
}

uint64_t ProgressTable::messages(int local_rank, int row_index, int other, bool send) const {
  return row(local_rank, row_index).messages[2 * other + send].load(std::memory_order_acquire);
}

double ProgressTable::seconds_since_poll(int local_rank, int row_index) const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t then = row(local_rank, row_index).polled.load(std::memory_order_relaxed);
  return std::chrono::duration<double>(now - std::chrono::steady_clock::duration(then)).count();
}

bool ProgressTable::is_of(int local_rank, int row_index, uint32_t generation) const {
  return row(local_rank, row_index).generation.load(std::memory_order_acquire) == generation;
}

bool ProgressTable::collective(int local_rank, int row_index, uint32_t generation, uint64_t n,
                               Operation& operation) const {
  const Row& r = row(local_rank, row_index);
  const auto there = [&] {
    const uint64_t count = r.collectives.load(std::memory_order_acquire);
    return count > n && count - n < kKept && is_of(local_rank, row_index, generation);
  };
  if (!there()) return false;
  const Kept& k = kept(local_rank, row_index, n);
  const uint64_t bytes = k.bytes.load(std::memory_order_acquire);
  const uint64_t rest = k.rest.load(std::memory_order_acquire);
  if (!there()) return false;  // overwritten meanwhile
  operation = unpack(bytes, rest);
  return true;
}

void ProgressTable::end(const std::string& why, bool out_of_time) {
  Head& head = *reinterpret_cast<Head*>(memory_);
  uint32_t expected = 0;
  if (!head.ended.compare_exchange_strong(expected, 1)) {
    // Another rank came first, and may have been stopped by the system before it wrote its text.
    const auto give_up = std::chrono::steady_clock::now() + kToWrite;
    while (!ended() && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  const std::string text = base::without_middle(why, kText - 1);
  std::memcpy(head.text, text.c_str(), text.size() + 1);
  head.ended.store(out_of_time ? 3 : 2, std::memory_order_release);
}

bool ProgressTable::ended() const {
  return reinterpret_cast<const Head*>(memory_)->ended.load(std::memory_order_acquire) >= 2;
}

bool ProgressTable::out_of_time() const {
  return reinterpret_cast<const Head*>(memory_)->ended.load(std::memory_order_acquire) == 3;
}

void ProgressTable::report() {
  if (!std::exchange(reported_, true)) reinterpret_cast<Head*>(memory_)->reported.fetch_add(1);
}

bool ProgressTable::all_reported() const {
  return reinterpret_cast<const Head*>(memory_)->reported.load() >= static_cast<uint32_t>(local_size_);
}

std::string ProgressTable::why() const {
  return reinterpret_cast<const Head*>(memory_)->text;
}

}  // namespace kintsugi::comm
