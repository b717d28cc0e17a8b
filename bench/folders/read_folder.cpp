// Reads all weights of a Hugging Face folder as init_from does, and prints the seconds: for the first touch of the
// memory, which costs what the system makes of it (a virtual machine may have to ask its host), and for the reading.
//
//   read_folder FOLDER DTYPE RANKS THREADS     each of RANKS ranks reads its part of each weight, as ranks of an axis
//                                              do, with THREADS threads
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "kintsugi/checkpoint/read_parts.h"
#include "kintsugi/exchange/folder_reader.h"
#include "kintsugi/run/executor.h"

namespace {

using namespace kintsugi;

constexpr int64_t kPage = 4096;

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// The seconds of the first touch.
double read_share(const exchange::FolderReader& reader, tensor::DType dtype, int rank, int ranks, int threads) {
  std::vector<checkpoint::WantedPart> parts;
  std::vector<int64_t> begins;
  int64_t bytes = 0;
  for (const std::string& name : reader.names()) {
    checkpoint::Box box = checkpoint::whole_box(reader.type(name).shape);
    int64_t &first = box.start[0], &size = box.size[0];
    first = size * rank / ranks;
    size = size * (rank + 1) / ranks - first;
    const checkpoint::Range all = checkpoint::whole_range(box);
    begins.push_back(bytes);
    bytes += all.size() * size_of(dtype);
    parts.push_back({name, {std::move(box), all}, dtype, nullptr});
  }
  run::Arena arena(bytes);
  for (size_t i = 0; i < parts.size(); ++i) parts[i].out = arena.data() + begins[i];
  base::ThreadTeam team(threads);
  const Clock::time_point begin = Clock::now();
  team.for_shares(bytes, kPage, [&](base::Range range, int) {
    for (int64_t at = range.begin; at < range.end; at += kPage) arena.data()[at] = std::byte{};
  });
  const double touch = seconds(begin, Clock::now());
  checkpoint::read_parts(reader, parts, team);
  return touch;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: read_folder FOLDER (fp32 | bf16) RANKS THREADS\n");
    return 2;
  }
  const tensor::DType dtype = std::string_view(argv[2]) == "bf16" ? tensor::DType::bf16 : tensor::DType::f32;
  const int ranks = std::stoi(argv[3]), threads = std::stoi(argv[4]);
  const auto begin = Clock::now();
  const exchange::FolderReader reader(argv[1]);
  std::vector<double> touch(static_cast<size_t>(ranks));
  std::vector<std::jthread> team;
  for (int rank = 0; rank < ranks; ++rank)
    team.emplace_back(
        [&, rank] { touch[static_cast<size_t>(rank)] = read_share(reader, dtype, rank, ranks, threads); });
  team.clear();
  const double first = *std::ranges::max_element(touch);
  fmt::print("{:.2f} {:.2f}\n", first, seconds(begin, Clock::now()) - first);
}
