#include <cstring>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {
namespace {

constexpr Backend kSelf = {.name = "self", .ranks = RankKind::single, .adds_in_rank_order = true};

class Self : public CheckedCommunicator {
 public:
  const Backend& backend() const override { return kSelf; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void wait(Event) override {}

 protected:
  Event enqueue(std::span<const Operation> operations) override {
    for (const Operation& o : operations) {
      if (o.bytes != 0 && o.in != o.out) std::memcpy(o.out, o.in, o.bytes);
      ++made_;
    }
    return {made_};
  }

 private:
  uint64_t made_ = 0;
};

class SelfWorld : public World {
 public:
  const Backend& backend() const override { return kSelf; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Communicator> group(std::span<const int> ranks, const GroupOptions&) override {
    check_group(ranks, 0, 1);
    return self_communicator();
  }
  void abort(const std::string&) override {}  // no other rank waits
};

}  // namespace

std::unique_ptr<World> self_world() {
  return std::make_unique<SelfWorld>();
}

std::unique_ptr<Communicator> self_communicator() {
  return std::make_unique<Self>();
}

}  // namespace kintsugi::comm
