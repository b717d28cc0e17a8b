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

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

template <typename F>
double seconds_of(std::barrier<>& together, F&& f) {
  together.arrive_and_wait();
  const auto start = Clock::now();
  f();
  together.arrive_and_wait();
  return std::chrono::duration<double>(Clock::now() - start).count();
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
      for (int i = 0; i < times; ++i) {  // side by side, so that a noisy moment meets all of them
        const double c = seconds_of(together, [&] { std::memcpy(y.data(), x.data(), bytes); });
        const double p = seconds_of(together, [&] { comm->wait(comm->all_reduce(x, x, DType::f32, Reduction::mean)); });
        const double q = seconds_of(together, [&] { comm->wait(comm->all_reduce(x, y, DType::f32, Reduction::mean)); });
        if (rank == 0) copy[i] = c, in_place[i] = p, apart[i] = q;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const double moved = 2.0 * ranks * static_cast<double>(bytes);
  const auto line = [&](const char* name, const std::vector<double>& seconds) {
    std::vector<double> ratios(seconds.size());
    for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = copy[i] / seconds[i];
    fmt::print("{:<20} {:7.2f} ms {:6.2f} GB/s (best {:6.2f})  {:.2f} of copy\n", name, median(seconds) * 1e3,
               moved / median(seconds) * 1e-9, moved / *std::min_element(seconds.begin(), seconds.end()) * 1e-9,
               median(ratios));
  };
  fmt::print("fp32, {} MiB on {} ranks; GB/s = 2 x ranks x bytes / time; medians of {}\n", mib, ranks, times);
  line("copy", copy);
  line("all_reduce in place", in_place);
  line("all_reduce", apart);
}
