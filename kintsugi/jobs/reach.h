// Whether another machine still responds on the network: evidence that a node whose ranks are silent is down, and that
// they are not merely slow.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace kintsugi::jobs {

// The first IPv4 address of this machine that is not its loopback; "" if there is none.
std::string address_of_this_machine();

// Whether a machine accepts or refuses a TCP connection (to the discard port) within the time; either requires that it
// runs. False for "" or anything that is not an IPv4 address.
bool responds(const std::string& address, std::chrono::milliseconds limit);

// Remembers which machines have responded: silence proves nothing of one that never did, for example because of a
// firewall. A machine is down if it responded once and has not in three calls of is_down() in a row, some time apart.
class Reach {
 public:
  using Responds = std::function<bool(const std::string& address, std::chrono::milliseconds limit)>;
  explicit Reach(Responds responds = jobs::responds) : responds_(std::move(responds)) {}

  // Call occasionally for machines that are up. Gives up if most do not respond: each takes time.
  void learn(const std::string& address);
  bool is_down(const std::string& address);
  // Call when the machine gives a sign of life again.
  void clear(const std::string& address);

 private:
  using Clock = std::chrono::steady_clock;
  struct Machine {
    bool responded = false;
    int tries = 0;
    int silent = 0;  // calls in a row
    Clock::time_point last = {};
  };

  Responds responds_;
  std::map<std::string, Machine> machines_;  // by address
  int responses_ = 0, silences_ = 0;         // to learn()
};

}  // namespace kintsugi::jobs
