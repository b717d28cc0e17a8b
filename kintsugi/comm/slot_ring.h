// Where the threads of a group meet: the n-th operation of the group is slot n % kSlots, in which every member posts
// its Call. The last one to post makes the operation ready; its bytes are then moved, chunk by chunk, by whichever
// members have nothing better to do, so that a rank that waits moves also what a rank that computes has posted. A slot
// is free again when every member has left it. All memory is taken by the constructor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/comm/call.h"

namespace kintsugi::comm {

class SlotRing {
 public:
  enum class State : uint8_t { open, ready, finished, mismatched };

  SlotRing(int members, uint64_t slots);

  // False until every member has left the operation that had the slot before.
  bool is_free(uint64_t operation) const;
  // The part of `member`. True: all have posted now, and all members are to be told.
  bool post(uint64_t operation, int member, const Call& call);
  bool has_posted(uint64_t operation, int member) const;
  State state(uint64_t operation) const { return slot(operation).state.load(std::memory_order_acquire); }
  // Is there a chunk that nobody has taken?
  bool has_work(uint64_t operation) const;
  // Takes one chunk and moves it, if there is one. True: the operation is finished by this, and all members are to be
  // told.
  bool work(uint64_t operation);
  // After state() is finished, once by each member. True: the slot is free now.
  bool leave(uint64_t operation);
  // The members whose calls do not agree, where state() is mismatched: "rank 0 calls barrier, rank 2 ...".
  std::string mismatch(uint64_t operation, const std::vector<int>& world_ranks) const;

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> round{0};
    std::atomic<int> posted{0}, left{0};
    std::atomic<State> state{State::open};
    std::atomic<uint64_t> next{0}, done{0};  // chunks
    uint64_t chunks = 0, chunks_of_unit = 0;
    size_t unit = 0;  // bytes that are cut into chunks
    bool stream = false;
  };
  struct Post {
    std::atomic<bool> here{false};
    Call call;
  };

  const Slot& slot(uint64_t operation) const { return slots_[operation % num_slots_]; }
  Slot& slot(uint64_t operation) { return slots_[operation % num_slots_]; }
  size_t first(uint64_t operation) const { return operation % num_slots_ * members_; }
  void make_ready(uint64_t operation);
  void move(uint64_t operation, uint64_t chunk) const;

  const int members_;
  const uint64_t num_slots_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<Post[]> posts_;      // [slot][member]
  std::vector<const std::byte*> ins_;  // [slot][member]
  std::vector<std::byte*> outs_;       // [slot][member]
};

}  // namespace kintsugi::comm
