// What a layout costs: the step of 2 ranks of one core each beside half the step of one rank of one core, of a GPT of
// 100 million parameters, in turns in one run.
//
//   layout_step [--tokens 8192] [--rounds 3] [--micro-batch 16] [--layers 12] ["data=2" "data=2 zero=3" ...]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "kintsugi/train/layout_run.h"
#include "tests/layouts.h"

namespace {

using namespace kintsugi;
using Clock = std::chrono::steady_clock;

config::Settings model(int64_t tokens, int64_t samples, int64_t layers) {
  config::Settings s;
  s.model.layers = layers;
  s.model.embed = 768;
  s.model.heads = 12;
  s.model.kv_heads = 12;
  s.model.ffn = 3072;
  s.model.vocab = 20000;
  s.model.context = 256;
  s.train.sequence = 256;
  s.train.micro_batch = samples;
  s.train.global_batch = tokens / s.train.sequence;
  s.parallel.threads = 1;
  return s;
}

struct Candidate {
  std::string name;
  config::Settings settings;
  std::unique_ptr<train::LayoutRun> run;
  std::vector<double> seconds;

  double step() {
    const auto start = Clock::now();
    run->step(static_cast<int64_t>(seconds.size()), 1e-4,
              [&](int64_t m, samples::BatchMemory& b) { tests::draw_batch(settings, 0, m, b); });
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

}  // namespace

int main(int argc, char** argv) {
  int64_t tokens = 8192, rounds = 3, samples = 16, layers = 12;
  std::vector<std::string> layouts;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--tokens" && i + 1 < argc) {
      tokens = std::atoll(argv[++i]);
    } else if (word == "--rounds" && i + 1 < argc) {
      rounds = std::atoll(argv[++i]);
    } else if (word == "--micro-batch" && i + 1 < argc) {
      samples = std::atoll(argv[++i]);
    } else if (word == "--layers" && i + 1 < argc) {
      layers = std::atoll(argv[++i]);
    } else {
      layouts.push_back(word);
    }
  }
  if (layouts.empty()) layouts = {"data=2", "data=2 zero=1", "data=2 zero=3", "tensor=2", "tensor=2 sequence_parallel"};
  layouts.insert(layouts.begin(), "one rank");
  // All in memory and interleaved: each round runs a step of every candidate.
  std::vector<Candidate> all;
  for (const std::string& l : layouts) {
    Candidate c = {l, model(tokens, samples, layers), nullptr, {}};
    if (l != "one rank") tests::set_layout(c.settings, l);
    all.push_back(std::move(c));
  }
  for (int64_t round = 0; round < rounds; ++round)
    for (Candidate& c : all) {
      c.run = std::make_unique<train::LayoutRun>(c.settings);
      c.step();  // pages are touched, caches of the library filled
      c.seconds.push_back(c.step());
      c.run.reset();
      fmt::print("round {}: {:32} {:8.3f} s\n", round, c.name, c.seconds.back());
      std::fflush(stdout);
    }
  const double half = all[0].median() / 2;
  fmt::print("\n{:32} {:>10} {:>24}\n", "layout", "seconds", "of half of one rank's");
  for (const Candidate& c : all) fmt::print("{:32} {:10.3f} {:24.3f}\n", c.name, c.median(), c.median() / half);
}
