// dump_bits FILE [WORD]: the bits of three steps of every case of program_cases.h that is small enough to run: the loss
// and every gradient of each step, then every weight and optimizer state, one per line; for models that evaluate and
// generate, the loss of each rank, the tokens and the logits. WORD selects the cases whose names contain it. Two
// versions of the project compute the same bits if their files are equal.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <bit>
#include <cstdio>
#include <map>

#include "kintsugi/evaluate/generator.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/train/random_samples.h"
#include "tests/layout_checkpoint.h"
#include "tests/paths.h"
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
      run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { tests::draw_batch(s, step, m, batch); });
      fmt::print(file, "  step {} loss {:016x} {:.9g}\n", step, std::bit_cast<uint64_t>(run.loss()), run.loss());
      write(file, "gradient", run.states(program::StateKind::gradient));
    }
    write(file, "weight", run.states(program::StateKind::weight));
    write(file, "optimizer", run.states(program::StateKind::optimizer));
  } catch (const std::exception& e) {
    fmt::print(file, "  error: {}\n", e.what());
  }
}

uint64_t bits(double x) {
  return std::bit_cast<uint64_t>(x);
}

std::string evaluated(evaluate::CheckpointModel& m, int64_t batch) {
  const config::Settings& s = m.settings();
  const train::RandomSamples samples(s);
  const evaluate::Rows rows = {.samples = tests::kSamples,
                               .batch = evaluate::even_batch(batch, tests::kSamples, s.parallel.data)};
  const auto executor = m.load(models::build_evaluation(s, rows.batch, s.train.sequence));
  const run::LossSum loss = evaluate::mean_loss(*executor, samples, rows);
  return fmt::format("loss {:016x} {:.9g} of {}", bits(loss.sum), loss.mean(), loss.count);
}

// 20 tokens after a prompt of 9, and their logits on ranks that have them.
std::string written(evaluate::CheckpointModel& m, int64_t prompt) {
  const auto executor = m.load(models::build_generation(m.settings(), 1, prompt, 16));
  evaluate::Generator generator(*executor, &m.all());
  const std::vector<int32_t> text = {5, 61, 17, 2, 44, 8, 30, 9, 12};
  std::vector<int32_t> ids;
  std::vector<double> logits;
  generator.generate(text, {.temperature = 1.0, .top_k = 20, .seed = 4}, [&](int32_t id) {
    ids.push_back(id);
    logits.insert(logits.end(), generator.logits().begin(), generator.logits().end());
    return ids.size() < 20;
  });
  return fmt::format("tokens {} logits {} {}", fmt::join(ids, " "), logits.size(), hash(logits));
}

void write(std::FILE* file, const tests::ModelCase& c, const std::filesystem::path& checkpoint) {
  std::vector<std::string> ranks(16);
  tests::on_layout(checkpoint, c.layout, [&](evaluate::CheckpointModel& m) {
    ranks[static_cast<size_t>(m.all().rank())] = c.batch > 0 ? evaluated(m, c.batch) : written(m, c.prompt);
  });
  fmt::print(file, "{}\n", c.name);
  for (const std::string& text : ranks)
    if (!text.empty()) fmt::print(file, "  {}\n", text);
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
  for (const tests::TrainingCase& c : tests::training_cases(tests::source_folder())) {
    if (!c.small || (argc == 3 && c.name.find(argv[2]) == std::string::npos)) continue;
    write(file, c);
    ++cases;
  }
  const tests::TemporaryFolder folder;
  std::map<std::string, std::filesystem::path> checkpoints;
  for (const tests::ModelCase& c : tests::model_cases()) {
    if (argc == 3 && c.name.find(argv[2]) == std::string::npos) continue;
    std::filesystem::path& checkpoint = checkpoints[c.model];
    if (checkpoint.empty()) checkpoint = tests::save_checkpoint(c.model, folder.path());
    write(file, c, checkpoint);
    ++cases;
  }
  std::fclose(file);
  fmt::print("{} cases\n", cases);
  return 0;
}
