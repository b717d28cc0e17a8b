// all_reduce of threads against the memory of the machine: all_reduce [ranks] [MiB] [times].
//
// An all-reduce of S bytes among N ranks cannot but read each rank's input once and write each rank's output once:
// 2 N S bytes. What copying moves is counted the same way: each of N threads copies S bytes, reads S and writes S.
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "kintsugi/comm/communicator.h"

namespace {

using kintsugi::comm::Communicator;
using kintsugi::comm::Reduction;
using kintsugi::tensor::DType;
using Clock = std::chrono::steady_clock;

// The least and the median of seconds that f took.
struct Times {
  double least, median;
};

Times times_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {seconds.front(), seconds[seconds.size() / 2]};
}

template <typename F>
void time(std::barrier<>& together, int rank, std::vector<double>& seconds, F&& f) {
  for (double& s : seconds) {
    together.arrive_and_wait();
    const auto start = Clock::now();
    f();
    together.arrive_and_wait();
    if (rank == 0) s = std::chrono::duration<double>(Clock::now() - start).count();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const size_t mib = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 64;
  const int times = argc > 3 ? std::atoi(argv[3]) : 15;
  const size_t bytes = mib << 20;
  auto worlds = kintsugi::comm::thread_worlds(ranks);
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  std::barrier together(ranks);
  std::vector<double> copy(times), in_place(times), apart(times);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto comm = worlds[rank]->group(members);
      std::vector<float> a(bytes / 4, 1.5f), b(bytes / 4, 2.5f);
      const auto x = std::as_writable_bytes(std::span(a)), y = std::as_writable_bytes(std::span(b));
      std::vector<double> nobody(times);
      const auto mine = [&](std::vector<double>& s) -> std::vector<double>& { return rank == 0 ? s : nobody; };
      time(together, rank, mine(copy), [&] { std::memcpy(y.data(), x.data(), bytes); });
      time(together, rank, mine(in_place), [&] { comm->wait(comm->all_reduce(x, x, DType::f32, Reduction::mean)); });
      time(together, rank, mine(apart), [&] { comm->wait(comm->all_reduce(x, y, DType::f32, Reduction::mean)); });
    });
  }
  for (auto& thread : threads) thread.join();
  const double moved = 2.0 * ranks * static_cast<double>(bytes);
  const auto line = [&](const char* name, const std::vector<double>& seconds) {
    const Times t = times_of(seconds), c = times_of(copy);
    fmt::print("{:<22} {:7.2f} ms  {:6.2f} GB/s  {:.2f} of copy (median {:.2f})\n", name, t.least * 1e3,
               moved / t.least * 1e-9, c.least / t.least, c.median / t.median);
  };
  fmt::print("fp32, {} MiB on {} ranks; GB/s = 2 x ranks x bytes / time\n", mib, ranks);
  line("copy", copy);
  line("all_reduce in place", in_place);
  line("all_reduce", apart);
}
