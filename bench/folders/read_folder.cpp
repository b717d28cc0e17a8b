// Reads all weights of a Hugging Face folder as init_from does, and prints the seconds.
//
//   read_folder FOLDER DTYPE RANKS     each of RANKS threads reads its part of each weight, as ranks of an axis do
#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <vector>

#include "kintsugi/exchange/folder_reader.h"

namespace {

using namespace kintsugi;

void read_part(const exchange::FolderReader& reader, tensor::DType dtype, int rank, int ranks) {
  std::vector<std::byte> out;
  for (const std::string& name : reader.names()) {
    checkpoint::Box box = checkpoint::whole_box(reader.type(name).shape);
    int64_t &first = box.start[0], &size = box.size[0];
    first = size * rank / ranks;
    size = size * (rank + 1) / ranks - first;
    const auto bytes = static_cast<size_t>(box.elements() * size_of(dtype));
    out.resize(std::max(out.size(), bytes));
    reader.read({.name = name, .box = box, .flat = {}}, dtype, std::span(out).first(bytes));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: read_folder FOLDER (fp32 | bf16) RANKS\n");
    return 2;
  }
  const tensor::DType dtype = std::string_view(argv[2]) == "bf16" ? tensor::DType::bf16 : tensor::DType::f32;
  const int ranks = std::stoi(argv[3]);
  const auto begin = std::chrono::steady_clock::now();
  const exchange::FolderReader reader(argv[1]);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { read_part(reader, dtype, rank, ranks); });
  threads.clear();
  fmt::print("{:.2f}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}
