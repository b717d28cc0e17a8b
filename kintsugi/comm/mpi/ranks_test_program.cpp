// One rank of a test over MPI: comm_rank CASE, with a time limit in seconds. Prints "rank R: ..." and exits with 1 on
// failure.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/mpi_world.h"

namespace kintsugi::comm {
namespace {

using Case = std::string(World&);

std::unique_ptr<Communicator> everyone(World& world) {
  return world.group(cases::all_ranks(world.size()));
}

// The cases used for threads, plus sizes that span several segments.
std::string table(World& world) {
  const auto comm = everyone(world);
  std::string wrong;
  for (const auto dtype : cases::kDTypes) {
    for (const auto reduction : cases::kReductions) {
      for (const size_t part : {0, 1'003}) wrong += cases::reductions(*comm, part, dtype, reduction);
    }
  }
  wrong += cases::reductions(*comm, 3'000'017 / comm->size(), tensor::DType::f32, Reduction::sum);
  for (const size_t bytes : {0, 1, 13, 3'000'011}) wrong += cases::movements(*comm, bytes);
  for (const size_t bytes : {0, 3, 200'000}) wrong += cases::messages(*comm, 5, bytes);
  wrong += cases::messages(*comm, 20, 10) + cases::at_random(*comm, 5, 10);
  wrong += cases::exchanges(*comm) + cases::many_sends(*comm) + cases::group_options(world);
  std::vector<int> backwards(world.size());
  for (int r = 0; r < world.size(); ++r) backwards[r] = world.size() - 1 - r;
  wrong += cases::movements(*world.group(backwards), 100);
  if (world.size() % 2 == 0) wrong += cases::two_axes(world, 5);
  return wrong;
}

// Far more live groups than MPI has communicators: channels of two ranks, whose messages must not be mixed up.
std::string channels(World& world) {
  constexpr int kChannels = 3'000;
  if (world.rank() > 1) return "";
  const int peer = 1 - world.rank();
  std::string wrong;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Communicator>> all;
    const GroupOptions options = {.collectives = 1, .messages = 2};
    for (int i = 0; i < kChannels; ++i) all.push_back(world.group(std::array{0, 1}, options));
    if (world.rank() == round) all.erase(all.begin(), all.begin() + 7);  // the other rank still has them
    const auto later = world.group(std::array{0, 1});
    if (world.rank() != round) all.erase(all.begin(), all.begin() + 7);
    // One message each way per channel, all channels in flight; the ranks use opposite orders.
    if (world.rank() == 1) std::reverse(all.begin(), all.end());
    std::vector<int> sent(all.size()), received(all.size(), -1);
    std::vector<Event> events;
    for (size_t i = 0; i < all.size(); ++i) {
      sent[i] = static_cast<int>(world.rank() == 1 ? all.size() - 1 - i : i);
      const auto bytes = [](int& x) { return std::as_writable_bytes(std::span(&x, 1)); };
      const std::array messages = {Message::to(peer, bytes(sent[i])), Message::from(peer, bytes(received[i]))};
      events.push_back(all[i]->exchange(messages));
    }
    for (size_t i = all.size(); i > 0; --i) all[i - 1]->wait(events[i - 1]);
    if (received != sent) wrong += fmt::format("messages of round {} were mixed up; ", round);
    wrong += cases::exchanges(*later) + cases::reductions(*all[sent[5]], 100, tensor::DType::f32, Reduction::sum);
  }
  return wrong;
}

// The last rank executes `instead`; all others wait for it.
std::string without_last(World& world, const std::function<void()>& instead) {
  const auto comm = everyone(world);
  std::vector<std::byte> x(4096);
  comm->wait(comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum));
  if (world.rank() == world.size() - 1) instead();
  comm->wait(comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum));
  return "done, which cannot be";
}

std::string absent(World& world) {
  return without_last(world, [] { std::this_thread::sleep_for(std::chrono::seconds(60)); });
}
std::string stopped(World& world) {
  return without_last(world, [] { raise(SIGSTOP); });
}
std::string ends(World& world) {
  return without_last(world, [] { throw base::UserError("data", "the file is gone"); });
}

// Rank 1 waits for rank 2, and rank 0 for rank 1.
std::string elsewhere_message(World& world) {
  const auto comm = everyone(world);
  std::vector<std::byte> x(12);
  if (world.rank() == 0) comm->wait(comm->send(x, 1));
  if (world.rank() == 1) comm->wait(comm->receive(x, 2));
  std::this_thread::sleep_for(std::chrono::seconds(60));
  return "done, which cannot be";
}

// In the middle of a collective that the others have started, larger than what can be in transit.
std::string killed(World& world) {
  const auto comm = everyone(world);
  std::vector<std::byte> x(64 << 20);
  const Event event = comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum);
  comm->progress();
  if (world.rank() == world.size() - 1) raise(SIGKILL);
  comm->wait(event);
  return "done, which cannot be";
}

std::string stuck(World& world) {
  const auto comm = everyone(world);
  std::vector<std::byte> x(64 << 20);
  const Event event = comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum);
  if (world.rank() == world.size() - 1) raise(SIGSTOP);
  comm->wait(event);
  return "done, which cannot be";
}

// The process id of the last rank, on all ranks.
pid_t last_process(Communicator& comm) {
  const pid_t mine = getpid();
  std::vector<pid_t> all(comm.size());
  comm.wait(comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  return all.back();
}

// The last rank is stopped before a collective, and resumes after another rank has given up.
std::string late(World& world) {
  const auto comm = everyone(world);
  const pid_t last = last_process(*comm);
  std::vector<std::byte> x(4096);
  if (world.rank() == world.size() - 1) raise(SIGSTOP);
  try {
    comm->wait(comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum));
  } catch (const Timeout&) {
    if (world.rank() == 0) kill(last, SIGCONT);
    throw;
  }
  return "done, which cannot be";
}

// The same while it waits; rank 1 is the rank that does not arrive.
std::string suspended(World& world) {
  const auto comm = everyone(world);
  const pid_t last = last_process(*comm);
  std::vector<std::byte> x(4096);
  if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  std::thread stops;
  if (world.rank() == world.size() - 1) {
    stops = std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      kill(getpid(), SIGSTOP);
    });
  }
  try {
    comm->wait(comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum));
  } catch (const Timeout&) {
    if (world.rank() == 0) kill(last, SIGCONT);
    if (stops.joinable()) stops.join();
    throw;
  }
  return "done, which cannot be";
}

// Rank 0 has sent what rank 1 has not received yet, and continues: another group then reuses its row of the progress
// table.
std::string rows(World& world) {
  std::vector<std::byte> x(64), y(64);
  {
    const auto comm = everyone(world);
    const Event event = comm->broadcast(x, 0);
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    comm->wait(event);
  }
  std::unique_ptr<Communicator> two;
  if (world.rank() != 1) {
    two = world.group(std::array{0, 2});
    for (int i = 0; i < 3; ++i) two->wait(two->all_reduce(x, y, tensor::DType::f32, Reduction::sum));
  }
  const auto comm = everyone(world);
  comm->wait(comm->barrier());
  return "";
}

// An error that ends the world before anyone has reported it.
std::string unsaid(World& world) {
  return without_last(world, [] { throw 5; });
}

std::string message(World& world) {
  const auto comm = everyone(world);
  std::vector<std::byte> x(12);
  if (world.rank() == 0) comm->wait(comm->send(x, 1));
  if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  comm->wait(comm->barrier());
  return "done, which cannot be";
}

// Rank 1 receives from rank 0, which sends, and from rank 2, which does not.
std::string exchange(World& world) {
  const auto comm = everyone(world);
  std::vector<std::byte> x(12), y(12);
  if (world.rank() == 0) comm->wait(comm->exchange(std::array{Message::to(1, x)}));
  if (world.rank() == 1) comm->wait(comm->exchange(std::array{Message::from(0, x), Message::from(2, y)}));
  if (world.rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(60));
  comm->wait(comm->barrier());
  return "done, which cannot be";
}

std::string mismatch(World& world) {
  const auto comm = everyone(world);
  std::vector<std::byte> x(16);
  comm->wait(world.rank() == 1 ? comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum)
                               : comm->all_reduce(x, x, tensor::DType::f64, Reduction::max));
  return "done, which cannot be";
}

std::string length(World& world) {
  const auto comm = everyone(world);
  std::vector<std::byte> x(16);
  if (world.rank() == 0) comm->wait(comm->send(std::span(x).first(5), 1));
  if (world.rank() == 1) comm->wait(comm->receive(x, 0));
  comm->wait(comm->barrier());
  return "done, which cannot be";
}

std::string groups(World& world) {
  const std::vector<int> all = cases::all_ranks(world.size());
  world.group(world.rank() == 0 ? std::span(all).first(2) : std::span(all));
  return "done, which cannot be";
}

std::string nobody(World& world) {
  if (world.rank() == world.size() - 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  everyone(world);
  return "done, which cannot be";
}

const std::map<std::string, Case*> kCases = {
    {"table", table},
    {"channels", channels},
    {"absent", absent},
    {"elsewhere", absent},
    {"elsewhere_message", elsewhere_message},
    {"stopped", stopped},
    {"ends", ends},
    {"killed", killed},
    {"stuck", stuck},
    {"late", late},
    {"suspended", suspended},
    {"rows", rows},
    {"unsaid", unsaid},
    {"message", message},
    {"exchange", exchange},
    {"mismatch", mismatch},
    {"length", length},
    {"groups", groups},
    {"nobody", nobody},
};

void say(int rank, const std::string& text) {
  fmt::print("rank {}: {}\n", rank, text);
  std::fflush(stdout);
}

int run(const std::string& name, double seconds) {
  const std::chrono::milliseconds limit(static_cast<int64_t>(1000 * seconds));
  const bool elsewhere = name.starts_with("elsewhere");
  const auto world = mpi_world({.time_limit = limit, .folder = elsewhere ? "." : "", .share_memory = !elsewhere});
  try {
    const std::string wrong = kCases.at(name)(*world);
    say(world->rank(), wrong.empty() ? "right" : wrong);
    return wrong.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    say(world->rank(), error.what());
    world->abort(error.what());
  }
  return 1;
}

}  // namespace
}  // namespace kintsugi::comm

int main(int argc, char** argv) {
  try {
    return kintsugi::comm::run(argv[1], argc > 2 ? std::atof(argv[2]) : 60);
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 1;
  } catch (int code) {
    return code;
  }
}
