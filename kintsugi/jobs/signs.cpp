#include "kintsugi/jobs/signs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include "kintsugi/base/start_thread.h"

namespace kintsugi::jobs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kPeriod = 1000ms;
constexpr auto kSilent = 3000ms;  // after which a machine is asked whether it responds
constexpr auto kAsking = 50ms;    // of a look, to learn which machines respond
constexpr auto kHeldUp = 5000ms;  // beyond what scheduling and loaded disks explain
constexpr std::string_view kRank = "rank_";

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

// In place and of constant length, so that a reader sees an old sign or a new one. Opened each time: clients of network
// file systems read what was closed. Errors are passed over: the run notices them where it matters.
void write_sign(const fs::path& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(file, text.data(), text.size(), 0);
  ::close(file);
}

std::string read_sign(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  std::array<char, 512> text{};
  const ssize_t n = ::read(file, text.data(), text.size());
  ::close(file);
  return n > 0 ? std::string(text.data(), static_cast<size_t>(n)) : "";
}

// "COUNT HOST ADDRESS ATTEMPT\n", of which the last three may be missing or empty.
std::string field_in(const std::string& sign, int index) {
  size_t begin = 0;
  for (int i = 0; i < index; ++i) {
    begin = sign.find(' ', begin);
    if (begin++ == std::string::npos) return "";
  }
  return sign.substr(begin, sign.find_first_of(" \n", begin) - begin);
}

std::string host_in(const std::string& sign) {
  return field_in(sign, 1);
}

std::string address_in(const std::string& sign) {
  return field_in(sign, 2);
}

int64_t attempt_in(const std::string& sign) {
  const std::string text = field_in(sign, 3);
  int64_t attempt = 0;
  std::from_chars(text.data(), text.data() + text.size(), attempt);
  return attempt;
}

// "(rank 2)", "(ranks 2 3)"
std::string list_of(const std::vector<int>& ranks) {
  return fmt::format("(rank{} {})", ranks.size() == 1 ? "" : "s", fmt::join(ranks, " "));
}

}  // namespace

std::string rank_sign(int rank) {
  return fmt::format("{}{}", kRank, rank);
}

SignWriter::SignWriter(Options options) : options_(std::move(options)) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);  // its thread takes no signals
  thread_ = base::start_thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SignWriter::~SignWriter() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ends_.notify_all();
  thread_.join();
  ::unlink(options_.path.c_str());
}

void SignWriter::end_attempt(int64_t attempt) {
  {
    const std::lock_guard lock(mutex_);
    ended_attempt_ = attempt;
  }
  ends_.notify_all();
}

void SignWriter::run() {
  using Clock = std::chrono::steady_clock;
  std::string seen;
  Reach reach(options_.responds);
  Clock::time_point changed = Clock::now();
  bool lost = false, ended = false;
  std::unique_lock lock(mutex_);
  for (uint64_t count = 0; !end_; ++count) {
    const int64_t attempt = ended_attempt_;
    lock.unlock();
    const auto began = Clock::now();
    write_sign(options_.path, fmt::format("{:012} {} {} {:012}\n", count, options_.host, options_.address, attempt));
    std::string now = options_.watched.empty() ? "" : read_sign(options_.watched);
    const auto took = Clock::now() - began;
    if (took > kHeldUp) {
      if (options_.slow) options_.slow(seconds(took));
      changed += took;
    }
    if (!ended && options_.attempt > 0 && attempt_in(now) == options_.attempt) {
      ended = true;
      if (options_.ended) options_.ended();
    }
    if (now != seen && !now.empty()) {
      seen = std::move(now);
      changed = Clock::now();
      reach.learn(address_in(seen));
      reach.clear(address_in(seen));
    } else if (const auto silent = Clock::now() - changed;
               !options_.watched.empty() && !lost &&
               (silent > options_.limit || (silent > kSilent && reach.is_down(address_in(seen))))) {
      lost = true;
      if (options_.lost) options_.lost(seconds(Clock::now() - changed));
    }
    lock.lock();
    const auto next = Clock::now() + kPeriod;
    ends_.wait_until(lock, next, [&] { return end_ || ended_attempt_ != attempt; });
    // A process that was stopped has not seen the others meanwhile.
    if (const auto late = Clock::now() - next; late > kHeldUp) changed += late;
  }
}

std::string SignWatch::look() {
  std::set<int> there;
  std::error_code error;
  for (fs::directory_iterator i(folder_, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    int rank = 0;
    const char* const last = name.data() + name.size();
    if (!name.starts_with(kRank) || std::from_chars(name.data() + kRank.size(), last, rank).ptr != last) continue;
    std::string text = read_sign(i->path());
    if (text.find(' ') == std::string::npos) continue;
    there.insert(rank);
    Sign& sign = signs_[rank];
    if (text == sign.text) continue;
    nodes_[rank] = sign.host = host_in(text);
    sign.address = address_in(text);
    sign.text = std::move(text);
    sign.changed = Clock::now();
  }
  std::erase_if(signs_, [&](const auto& s) { return !there.contains(s.first); });  // ended by itself
  const auto now = Clock::now();
  if (now - looked_ > kHeldUp)
    for (auto& [rank, sign] : signs_) sign.changed = std::min(now, sign.changed + (now - looked_));
  looked_ = now;
  std::map<std::string, std::vector<int>> quiet;
  std::map<std::string, size_t> all;
  double longest = 0;
  for (const auto& [rank, sign] : signs_) {
    ++all[sign.host];
    if (now - sign.changed <= limit_) continue;
    quiet[sign.host].push_back(rank);
    longest = std::max(longest, seconds(now - sign.changed));
  }
  if (quiet.empty()) return look_for_down_node(now);
  const auto& [host, ranks] = *quiet.begin();
  if (ranks.size() == all[host])
    return fmt::format("no sign of life from any rank on {} for {:.0f} s {}", host, longest, list_of(ranks));
  return fmt::format("no sign of life from rank {} on {} for {:.0f} s", fmt::join(ranks, ","), host, longest);
}

std::string SignWatch::look_for_down_node(Clock::time_point now) {
  std::map<std::string, Node> nodes;
  for (const auto& [rank, sign] : signs_) {
    Node& node = nodes[sign.host];
    node.address = sign.address;
    node.ranks.push_back(rank);
    node.changed = std::max(node.changed, sign.changed);
  }
  const auto is_silent = [&](const Node& node) { return now - node.changed > kSilent; };
  size_t silent = 0;
  for (const auto& [host, node] : nodes) {
    if (is_silent(node)) {
      ++silent;
      continue;
    }
    reach_.clear(node.address);
    if (Clock::now() - now < kAsking) reach_.learn(node.address);
  }
  if (2 * silent > nodes.size()) return "";  // more likely the file system, or this machine's network
  for (const auto& [host, node] : nodes)
    if (is_silent(node) && Clock::now() - now < kPeriod && reach_.is_down(node.address))
      return fmt::format("no sign of life from any rank on {} for {:.0f} s {}, and the node does not respond", host,
                         seconds(now - node.changed), list_of(node.ranks));
  return "";
}

std::string SignWatch::node_of(int rank) const {
  const auto found = nodes_.find(rank);
  return found == nodes_.end() ? "" : found->second;
}

void remove_signs(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> old;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (i->path().filename().string().starts_with(kRank)) old.push_back(i->path());
  for (const fs::path& path : old) ::unlink(path.c_str());
}

}  // namespace kintsugi::jobs
