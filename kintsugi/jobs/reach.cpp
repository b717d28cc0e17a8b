#include "kintsugi/jobs/reach.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "kintsugi/jobs/blocked_signals.h"

namespace kintsugi::jobs {
namespace {

constexpr uint16_t kDiscard = 9;
constexpr std::chrono::milliseconds kAnswer{700}, kPause{700};
constexpr int kSilences = 3, kMostTries = 3, kMostSilences = 6;

}  // namespace

std::string address_of_this_machine() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  std::string address;
  for (const ifaddrs* i = all; i != nullptr && address.empty(); i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_UP) == 0 ||
        (i->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* const in = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (::inet_ntop(AF_INET, &in->sin_addr, text.data(), text.size()) != nullptr) address = text.data();
  }
  ::freeifaddrs(all);
  return address;
}

bool responds(const std::string& address, std::chrono::milliseconds limit) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(kDiscard);
  if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return false;
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) return false;
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return true;
  if (errno != EINPROGRESS) return errno == ECONNREFUSED;
  pollfd watched = {socket.number(), POLLOUT, 0};
  if (::poll(&watched, 1, static_cast<int>(limit.count())) <= 0) return false;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return false;
  return error == 0 || error == ECONNREFUSED;
}

void Reach::learn(const std::string& address) {
  if (address.empty()) return;
  Machine& m = machines_[address];
  if (m.responded || m.tries == kMostTries || silences_ > kMostSilences + responses_) return;
  ++m.tries;
  m.responded = responds_(address, kAnswer);
  ++(m.responded ? responses_ : silences_);
}

bool Reach::is_down(const std::string& address) {
  const auto found = machines_.find(address);
  if (found == machines_.end() || !found->second.responded) return false;
  Machine& m = found->second;
  if (Clock::now() - m.last >= kPause) {
    m.silent = responds_(address, kAnswer) ? 0 : m.silent + 1;
    m.last = Clock::now();
  }
  return m.silent >= kSilences;
}

void Reach::clear(const std::string& address) {
  if (const auto found = machines_.find(address); found != machines_.end()) found->second.silent = 0;
}

}  // namespace kintsugi::jobs
