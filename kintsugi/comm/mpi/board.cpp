#include "kintsugi/comm/mpi/board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "kintsugi/base/error.h"

namespace kintsugi::comm {
namespace {

constexpr size_t kHead = 4096;

uint64_t pack(const Call& call) {
  return static_cast<uint64_t>(call.kind) | static_cast<uint64_t>(call.dtype) << 8 |
         static_cast<uint64_t>(call.reduction) << 16 | static_cast<uint64_t>(call.root + 1) << 32;
}

Call unpack(uint64_t bytes, uint64_t rest) {
  Call call;
  call.kind = static_cast<Kind>(rest & 0xFF);
  call.dtype = static_cast<tensor::DType>(rest >> 8 & 0xFF);
  call.reduction = static_cast<Reduction>(rest >> 16 & 0xFF);
  call.root = static_cast<int>(rest >> 32) - 1;
  call.bytes = bytes;
  return call;
}

}  // namespace

// Zeros of a new file are a board on which nobody has written.
Board::Board(const std::string& path, bool create, int seats, int world_size) : world_size_(world_size), taken_(kRows) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(Head) <= kHead);
  row_bytes_ = (sizeof(Row) + 2 * sizeof(uint64_t) * world_size_ + 63) / 64 * 64;
  bytes_ = kHead + row_bytes_ * kRows * seats;
  const int file = open(path.c_str(), create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
  const bool sized = file >= 0 && (!create || ftruncate(file, static_cast<off_t>(bytes_)) == 0);
  void* memory = sized ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int error = errno;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    throw base::UserError("comm", "{}: the ranks of this node cannot share memory: {}", path, std::strerror(error));
  }
  memory_ = static_cast<std::byte*>(memory);
}

Board::~Board() {
  munmap(memory_, bytes_);
}

Board::Row& Board::row(int seat, int row) const {
  return *reinterpret_cast<Row*>(memory_ + kHead + (static_cast<size_t>(seat) * kRows + row) * row_bytes_);
}

int Board::take_row(int seat) {
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  base::require(free != taken_.end(), "comm", "more than {} communicators", kRows);
  *free = true;
  const int index = static_cast<int>(free - taken_.begin());
  Row& r = row(seat, index);
  r.collectives.store(0);
  for (int i = 0; i < 2 * world_size_; ++i) r.messages[i].store(0);
  return index;
}

void Board::give_row(int, int row) {
  taken_[row] = false;
}

void Board::publish(int seat, int row_index, const Call& call) {
  Row& r = row(seat, row_index);
  const uint64_t n = r.collectives.load(std::memory_order_relaxed);
  look(seat, row_index);
  r.calls[n % kCalls].bytes.store(call.bytes, std::memory_order_relaxed);
  r.calls[n % kCalls].rest.store(pack(call), std::memory_order_relaxed);
  r.collectives.store(n + 1, std::memory_order_seq_cst);  // before it looks at the calls of others
}

void Board::publish_message(int seat, int row_index, int other, bool send) {
  look(seat, row_index);
  row(seat, row_index).messages[2 * other + send].fetch_add(1, std::memory_order_release);
}

uint64_t Board::collectives(int seat, int row_index) const {
  return row(seat, row_index).collectives.load(std::memory_order_acquire);
}

uint64_t Board::messages(int seat, int row_index, int other, bool send) const {
  return row(seat, row_index).messages[2 * other + send].load(std::memory_order_acquire);
}

std::string Board::text(int seat) const {
  std::string text;
  for (int index = 0; index < kRows; ++index) {
    if (!taken_[index]) continue;
    text += fmt::format("collectives {} {}\n", index, collectives(seat, index));
    for (int other = 0; other < world_size_; ++other) {
      for (const bool send : {false, true}) {
        const uint64_t count = messages(seat, index, other, send);
        if (count != 0) text += fmt::format("messages {} {} {} {}\n", index, other, send ? 1 : 0, count);
      }
    }
  }
  return text;
}

void Board::look(int seat, int row_index) {
  row(seat, row_index)
      .looked.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

double Board::seconds_since_look(int seat, int row_index) const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t then = row(seat, row_index).looked.load(std::memory_order_relaxed);
  return std::chrono::duration<double>(now - std::chrono::steady_clock::duration(then)).count();
}

bool Board::call(int seat, int row_index, uint64_t n, Call& call) const {
  const Row& r = row(seat, row_index);
  const auto there = [&] {
    const uint64_t count = r.collectives.load(std::memory_order_acquire);
    return count > n && count - n < kCalls;
  };
  if (!there()) return false;
  const uint64_t bytes = r.calls[n % kCalls].bytes.load(std::memory_order_acquire);
  const uint64_t rest = r.calls[n % kCalls].rest.load(std::memory_order_acquire);
  if (!there()) return false;  // it was written over meanwhile
  call = unpack(bytes, rest);
  return true;
}

void Board::end(const std::string& why, bool out_of_time) {
  Head& head = *reinterpret_cast<Head*>(memory_);
  uint32_t expected = 0;
  if (!head.ended.compare_exchange_strong(expected, 1)) return;
  const size_t length = std::min<size_t>(why.size(), kText - 1);
  std::memcpy(head.text, why.data(), length);
  head.text[length] = '\0';
  head.ended.store(out_of_time ? 3 : 2, std::memory_order_release);
}

bool Board::ended() const {
  return reinterpret_cast<const Head*>(memory_)->ended.load(std::memory_order_acquire) >= 2;
}

bool Board::out_of_time() const {
  return reinterpret_cast<const Head*>(memory_)->ended.load(std::memory_order_acquire) == 3;
}

std::string Board::why() const {
  return reinterpret_cast<const Head*>(memory_)->text;
}

}  // namespace kintsugi::comm
