// dump_bits FILE [WORD]: the bits of three steps of every case of program_cases.h that is small enough to be run, with
// fp32 and other dtypes, in reference and cpu kernels: of each step the loss and every gradient, then every weight and
// the optimizer's state, a line each. Of cases whose name holds WORD alone, where it is given. Two versions of the
// project train to the same bits where their files are the same.
#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstdio>

#include "tests/layouts.h"
#include "tests/program_cases.h"

namespace {

using namespace kintsugi;

std::string hash(const std::vector<double>& x) {
  return fmt::format("{:016x}", XXH3_64bits(x.data(), x.size() * sizeof(double)));
}

void write(std::FILE* file, const std::string& what, const tests::Numbers& all) {
  for (const auto& [name, x] : all) fmt::print(file, "  {} \"{}\" {} {}\n", what, name, x.size(), hash(x));
}

void write(std::FILE* file, const tests::TrainingCase& c) {
  fmt::print(file, "{}\n", c.name);
  try {
    config::Settings s = c.settings;
    s.parallel.offload_folder.clear();
    train::LayoutRun run(s, c.plan);
    for (int64_t step = 0; step < 3; ++step) {
      run.step(step, 1e-2, [&](int64_t m, train::WholeBatch& batch) { tests::draw_batch(s, step, m, batch); });
      fmt::print(file, "  step {} loss {:016x} {:.9g}\n", step, std::bit_cast<uint64_t>(run.loss()), run.loss());
      write(file, "gradient", run.states("gradient"));
    }
    write(file, "weight", run.states("weight"));
    write(file, "optimizer", run.states("optimizer"));
  } catch (const std::exception& e) {
    fmt::print(file, "  error: {}\n", e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: dump_bits FILE [WORD]\n");
    return 2;
  }
  std::FILE* file = std::fopen(argv[1], "w");
  if (!file) {
    fmt::print(stderr, "cannot write {}\n", argv[1]);
    return 1;
  }
  size_t cases = 0;
  for (const tests::TrainingCase& c : tests::training_cases(KINTSUGI_SOURCE)) {
    if (!c.small || (argc == 3 && c.name.find(argv[2]) == std::string::npos)) continue;
    write(file, c);
    ++cases;
  }
  std::fclose(file);
  fmt::print("{} cases\n", cases);
  return 0;
}
