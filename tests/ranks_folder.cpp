#include "tests/ranks_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace kintsugi::tests {
namespace {

// metrics.jsonl, a line for each step.
std::vector<nlohmann::json> metrics(const fs::path& run) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

RanksFolder::RanksFolder() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "Line " + std::to_string(i * i % 97) + " of a text that a model can learn.\n";
  std::ofstream(folder / "text.txt") << text;
  std::ofstream(folder / "run.toml")
      << "[model]\nlayers = 2\nembed = 32\nheads = 4\ndropout = 0.1\n"
         "[data]\ntrain = \"corpus/train\"\nvalidation = \"corpus/validation\"\n"
         "[train]\nsteps = 12\nglobal_batch = 8\nsequence = 16\ndecay_steps = 100\nwarmup_steps = 2\n"
         "evaluate_every = 5\nevaluate_batches = 2\n"
         "[parallel]\nthreads = 1\n[checkpoint]\nevery = 10\nkeep = 9\n";
  EXPECT_EQ(run_kintsugi(folder.path(), "prepare text.txt --tokenizer bytes --output corpus").code, 0);
}

std::string RanksFolder::arguments(const std::string& run, const std::string& layout, const std::string& sets) {
  std::string all = "train run.toml --set train.folder=" + run + " " + sets;
  std::istringstream words(layout);
  for (std::string word; words >> word;) all += " parallel." + word;
  return all;
}

int64_t RanksFolder::steps(const std::string& run) const {
  std::ifstream in(folder / run / "metrics.jsonl");
  return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
}

std::string RanksFolder::difference(const std::string& one, const std::string& other, double tolerance) const {
  const auto a = metrics(folder / one), b = metrics(folder / other);
  if (a.size() != b.size()) return fmt::format("{} and {} steps", a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (const char* key : {"step", "tokens", "learning_rate", "loss", "validation_loss", "gradient_norm"}) {
      if (a[i].contains(key) != b[i].contains(key)) return fmt::format("step {}: {} in one alone", i + 1, key);
      if (!a[i].contains(key)) continue;
      const double x = a[i][key].get<double>(), y = b[i][key].get<double>();
      if (!(std::abs(x - y) <= tolerance * std::abs(x))) return fmt::format("step {}: {} {}, {}", i + 1, key, x, y);
    }
  return a.empty() ? "no steps" : "";
}

std::string RanksFolder::complaint(const std::string& err) {
  std::string kept;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    const bool told = line.starts_with("error: ") || line.starts_with("warning: ");
    if (told && line.find(": they take turns, ") == std::string::npos) kept += line + "\n";
  }
  return kept;
}

}  // namespace kintsugi::tests
