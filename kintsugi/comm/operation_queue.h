// The operations of a group of threads: operation n uses entry n % entries of a circular buffer. Every member posts its
// part. The last to post makes the operation ready; members that wait or are idle then move its bytes, chunk by chunk,
// so that a waiting rank also moves what a computing rank has posted. When every member has left an operation, its
// entry is free again. All memory is allocated by the constructor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

class OperationQueue {
 public:
  enum class State : uint8_t { open, ready, finished, mismatched };

  OperationQueue(int members, uint64_t entries);

  uint64_t entries() const { return num_entries_; }
  // True once all members have left the operation that used the entry of operation `n` before.
  bool is_free(uint64_t n) const;
  // Posts the part of `member`. Returns true if it was the last; all members must then be notified.
  bool post(uint64_t n, int member, const Operation& operation);
  bool has_posted(uint64_t n, int member) const;
  State state(uint64_t n) const { return entry(n).state.load(std::memory_order_acquire); }
  // Whether some chunk has not been claimed.
  bool has_work(uint64_t n) const;
  // Claims and moves one chunk, if there is one. Returns true if that finished the operation; all members must then be
  // notified.
  bool move_chunk(uint64_t n);
  // Call once per member after state() is finished. Returns true if the entry is now free.
  bool leave(uint64_t n);
  // If state() is mismatched: the members whose operations disagree, "rank 0 calls barrier, rank 2 ...".
  std::string mismatch(uint64_t n, const std::vector<int>& world_ranks) const;

 private:
  struct alignas(64) Entry {
    std::atomic<uint64_t> round{0};  // number of operations that have used the entry
    std::atomic<int> posted{0}, left{0};
    std::atomic<State> state{State::open};
    std::atomic<uint64_t> next{0}, done{0};  // chunks
    uint64_t chunks = 0, chunks_of_unit = 0;
    size_t unit = 0;  // bytes that are divided into chunks
    bool stream = false;
  };
  struct Post {
    std::atomic<bool> here{false};
    Operation operation;
  };

  const Entry& entry(uint64_t n) const { return entries_[n % num_entries_]; }
  Entry& entry(uint64_t n) { return entries_[n % num_entries_]; }
  size_t first(uint64_t n) const { return n % num_entries_ * members_; }
  void make_ready(uint64_t n);
  void move(uint64_t n, uint64_t chunk) const;

  const int members_;
  const uint64_t num_entries_;
  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<Post[]> posts_;      // [entry][member]
  std::vector<const std::byte*> ins_;  // [entry][member]
  std::vector<std::byte*> outs_;       // [entry][member]
};

}  // namespace kintsugi::comm
