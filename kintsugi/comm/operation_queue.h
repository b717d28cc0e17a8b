// The operations of a group of threads: operation n is in entry n % entries of a circular buffer. Every member posts
// its part. The last to post makes the operation ready; its bytes are then moved, chunk by chunk, by any members that
// wait or are idle, so that a rank that waits also moves what a rank that computes has posted. When every member has
// left an operation, its entry is free for a later one. All memory is allocated by the constructor.
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
  // True when all members have left the operation that had the entry of operation `n` before it.
  bool is_free(uint64_t n) const;
  // The part of `member`. True: it was the last, and all members must be notified.
  bool post(uint64_t n, int member, const Operation& operation);
  bool has_posted(uint64_t n, int member) const;
  State state(uint64_t n) const { return entry(n).state.load(std::memory_order_acquire); }
  // Whether there is a chunk that no member has taken.
  bool has_work(uint64_t n) const;
  // Takes one chunk and moves it, if there is one. True: that finished the operation, and all members must be notified.
  bool move_chunk(uint64_t n);
  // After state() is finished, once by each member. True: the entry is free now.
  bool leave(uint64_t n);
  // The members whose operations do not agree, if state() is mismatched: "rank 0 calls barrier, rank 2 ...".
  std::string mismatch(uint64_t n, const std::vector<int>& world_ranks) const;

 private:
  struct alignas(64) Entry {
    std::atomic<uint64_t> round{0};  // how many operations have had the entry
    std::atomic<int> posted{0}, left{0};
    std::atomic<State> state{State::open};
    std::atomic<uint64_t> next{0}, done{0};  // chunks
    uint64_t chunks = 0, chunks_of_unit = 0;
    size_t unit = 0;  // bytes that are cut into chunks
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
