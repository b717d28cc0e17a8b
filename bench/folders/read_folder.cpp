// Reads all weights of a Hugging Face folder as init_from does, and prints the seconds: for the first touch of the
// memory, which costs what the system makes of it (a virtual machine may have to ask its host), and for the reading.
//
//   read_folder FOLDER DTYPE RANKS THREADS     each of RANKS ranks reads its part of each weight, as ranks of an axis
//                                              do, with THREADS threads
//   read_folder FOLDER plain RANKS THREADS     one thread reads the bytes of its files, as cat does, and does nothing
//                                              with them; in the same state of the memory, which changes how long a
//                                              read takes where the system has yet to find pages for its cache
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "kintsugi/base/read_only_file.h"
#include "kintsugi/checkpoint/read_parts.h"
#include "kintsugi/exchange/folder_reader.h"
#include "kintsugi/run/host_memory.h"

namespace {

using namespace kintsugi;

constexpr int64_t kPage = 4096;

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// In order, without inspecting the content.
void read_files(const std::filesystem::path& folder) {
  std::vector<std::byte> block(128 << 10);  // that of cat
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const base::ReadOnlyFile file(entry.path());
    for (uint64_t at = 0; at < file.size(); at += block.size())
      file.read_at(at, std::span(block).first(std::min<uint64_t>(block.size(), file.size() - at)));
  }
}

struct Share {
  std::vector<checkpoint::WantedPart> parts;
  std::vector<int64_t> begins;  // in memory
  int64_t bytes = 0;
};

Share share_of(const exchange::FolderReader& reader, tensor::DType dtype, int rank, int ranks) {
  Share share;

  for (const std::string& name : reader.names()) {
    checkpoint::Box box = checkpoint::whole_box(reader.type(name).shape);
    int64_t &first = box.start[0], &size = box.size[0];
    first = size * rank / ranks;
    size = size * (rank + 1) / ranks - first;
    const checkpoint::Range all = checkpoint::whole_range(box);
    share.begins.push_back(share.bytes);
    share.bytes += all.size() * size_of(dtype);
    share.parts.push_back({name, {std::move(box), all}, dtype, nullptr});
  }
  return share;
}

// The seconds of the first access.
double read_share(const exchange::FolderReader& reader, Share share, int threads, bool plainly) {
  run::Arena arena(share.bytes);
  for (size_t i = 0; i < share.parts.size(); ++i) share.parts[i].out = arena.data() + share.begins[i];
  base::ThreadTeam team(threads);
  const Clock::time_point begin = Clock::now();
  team.for_shares(share.bytes, kPage, [&](base::Range range, int) {
    for (int64_t at = range.begin; at < range.end; at += kPage) arena.data()[at] = std::byte{};
  });
  const double touch = seconds(begin, Clock::now());
  plainly ? read_files(reader.folder()) : checkpoint::read_parts(reader, share.parts, team);
  return touch;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: read_folder FOLDER (fp32 | bf16 | plain) RANKS THREADS\n");
    return 2;
  }
  const tensor::DType dtype = std::string_view(argv[2]) == "bf16" ? tensor::DType::bf16 : tensor::DType::f32;
  const int ranks = std::stoi(argv[3]), threads = std::stoi(argv[4]);
  const bool plainly = std::string_view(argv[2]) == "plain";
  const auto begin = Clock::now();
  const exchange::FolderReader reader(argv[1]);
  std::vector<double> touch(static_cast<size_t>(ranks));
  std::vector<std::jthread> team;
  for (int rank = 0; rank < ranks; ++rank)
    team.emplace_back([&, rank] {
      touch[static_cast<size_t>(rank)] = read_share(reader, share_of(reader, dtype, rank, ranks), threads, plainly);
    });
  team.clear();
  const double first = *std::ranges::max_element(touch);
  fmt::print("{:.2f} {:.2f}\n", first, seconds(begin, Clock::now()) - first);
}
