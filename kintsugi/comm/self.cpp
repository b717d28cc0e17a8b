#include <cstring>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {
namespace {

class Self : public CheckedCommunicator {
 public:
  std::string_view backend() const override { return "self"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void wait(Event) override {}

 protected:
  Event enqueue(const Operation& operation) override {
    if (operation.bytes != 0 && operation.in != operation.out)
      std::memcpy(operation.out, operation.in, operation.bytes);
    return {++made_};
  }

 private:
  uint64_t made_ = 0;
};

class SelfWorld : public World {
 public:
  std::string_view backend() const override { return "self"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Communicator> group(std::span<const int> ranks) override {
    check_group(ranks, 0, 1);
    return self_communicator();
  }
  void abort(const std::string&) override {}  // nobody else waits
};

}  // namespace

std::unique_ptr<World> self_world() {
  return std::make_unique<SelfWorld>();
}

std::unique_ptr<Communicator> self_communicator() {
  return std::make_unique<Self>();
}

}  // namespace kintsugi::comm
