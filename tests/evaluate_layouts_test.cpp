// Evaluation on several ranks: every layout gives the mean loss and the count of one rank, on every rank.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kintsugi/data/token_writer.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/evaluate/scorer.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/samples/evaluation_sampler.h"
#include "tests/layout_checkpoint.h"

namespace kintsugi::tests::evaluate_layouts_test {
namespace {

constexpr int32_t kVocab = 65;
constexpr int64_t kTokens = 150;  // 19 samples of 8, the last of them short

// Returns the number of predicted tokens: those that follow another token of their document.
int64_t write_tokens(const fs::path& path) {
  int64_t predicted = 0;
  bool first = true;
  data::TokenWriter writer(path, {.vocab_size = 65, .tokenizer = "t"});
  for (uint64_t i = 0; i < kTokens; ++i) {
    const uint32_t word = kernels::random_word(kernels::random_key(3, "tokens"), 0, i);
    const auto token = static_cast<int32_t>(word % 65);
    writer.append(std::span(&token, 1));
    predicted += first ? 0 : 1;
    first = word % 17 == 0;
    if (first) writer.end_document();
  }
  writer.finish();
  writer.publish();
  return predicted;
}

class EvaluateLayouts : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    predicted_ = write_tokens(*folder_ / "tokens");
    for (const std::string model : {"gpt", "gpt-odd", "llama"})
      checkpoints_[model] = save_checkpoint(model, folder_->path());
  }
  static void TearDownTestSuite() {
    folder_.reset();
    checkpoints_.clear();
    losses_.clear();
  }

  static std::vector<run::LossSum> losses(const std::string& model, const std::string& layout, int64_t batch) {
    std::vector<run::LossSum> all(16);
    int ranks = 0;
    on_layout(checkpoints_.at(model), layout, [&](evaluate::CheckpointModel& m) {
      const auto file = std::make_shared<const data::TokenFile>((*folder_ / "tokens").string());
      const samples::EvaluationSampler source(file, {.sequence = 8, .reset_at_document = true, .vocab_size = 65});
      const auto samples = static_cast<int64_t>(source.num_samples());
      const evaluate::Rows rows = {.samples = samples,
                                   .batch = evaluate::even_batch(batch, samples, m.settings().parallel.data)};
      const auto executor = m.load(models::build_evaluation(m.settings(), rows.batch, 8));
      EXPECT_EQ(m.repeated(), std::vector<std::string>()) << layout;
      if (m.leads()) ranks = m.all().size();
      all[static_cast<size_t>(m.all().rank())] = evaluate::mean_loss(*executor, source, rows);
    });
    all.resize(static_cast<size_t>(ranks));
    return all;
  }

  // The scores on each rank: of texts of various lengths, and of one prefix followed by each token of the vocabulary.
  static std::vector<std::vector<evaluate::Score>> scores(const std::string& model, const std::string& layout) {
    std::vector<std::vector<int32_t>> texts;
    std::vector<int64_t> scored;
    for (uint64_t i = 0; i < 9; ++i) {
      for (uint64_t j = 0; j < 1 + std::max<uint64_t>(i, 1); ++j) {
        if (j == 0) texts.emplace_back();
        texts.back().push_back(
            static_cast<int32_t>(kernels::random_word(kernels::random_key(4, "texts"), i, j) % kVocab));
      }
      scored.push_back(static_cast<int64_t>(1 + i / 2));
    }
    for (int32_t last = 0; last < kVocab; ++last) {
      texts.push_back({3, 1, 4, 1, 5, last});
      scored.push_back(1);
    }
    std::vector<std::vector<evaluate::Score>> all(16);
    int ranks = 0;
    on_layout(checkpoints_.at(model), layout, [&](evaluate::CheckpointModel& m) {
      const int64_t batch = evaluate::even_batch(4, std::ssize(texts), m.settings().parallel.data);
      const auto executor = m.load(models::build_scoring(m.settings(), batch, 8));
      EXPECT_EQ(m.repeated(), std::vector<std::string>()) << layout;
      evaluate::Scorer scorer(*executor, m.all());
      EXPECT_EQ(scorer.sequence(), 8);
      if (m.leads()) ranks = m.all().size();
      std::vector<evaluate::Score>& mine = all[static_cast<size_t>(m.all().rank())];
      for (size_t first = 0; first < texts.size(); first += static_cast<size_t>(batch)) {
        std::vector<evaluate::ScoredText> some;
        for (size_t i = first; i < std::min(texts.size(), first + static_cast<size_t>(batch)); ++i)
          some.push_back({texts[i], scored[i]});
        const std::vector<evaluate::Score> found = scorer.score(some);
        mine.insert(mine.end(), found.begin(), found.end());
      }
    });
    all.resize(static_cast<size_t>(ranks));
    return all;
  }

  static const run::LossSum& one_rank(const std::string& model) {
    run::LossSum& loss = losses_[model];
    if (loss.count == 0) loss = losses(model, "", 4)[0];
    return loss;
  }

  static std::unique_ptr<TemporaryFolder> folder_;
  static int64_t predicted_;
  static std::map<std::string, fs::path> checkpoints_;
  static std::map<std::string, run::LossSum> losses_;
};

std::unique_ptr<TemporaryFolder> EvaluateLayouts::folder_;
int64_t EvaluateLayouts::predicted_ = 0;
std::map<std::string, fs::path> EvaluateLayouts::checkpoints_;
std::map<std::string, run::LossSum> EvaluateLayouts::losses_;

struct Case {
  std::string model, layout;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << ": " << c.layout;
}

class EvaluateLayout : public EvaluateLayouts, public testing::WithParamInterface<Case> {};

}  // namespace

TEST_P(EvaluateLayout, TheLossOfOneRank) {
  const auto& [model, layout] = GetParam();
  const run::LossSum& want = one_rank(model);
  EXPECT_EQ(want.count, static_cast<double>(predicted_));
  for (const int64_t batch : {int64_t{4}, int64_t{3}, int64_t{50}})
    for (const run::LossSum& got : losses(model, layout, batch)) {
      EXPECT_EQ(got.count, want.count) << "batch of " << batch;
      EXPECT_NEAR(got.mean(), want.mean(), 1e-6 * want.mean()) << "batch of " << batch;
    }
}

TEST_P(EvaluateLayout, TheScoresOfOneRank) {
  const auto& [model, layout] = GetParam();
  const std::vector<evaluate::Score> want = scores(model, "")[0];
  double probability = 0;
  int64_t greedy = 0;
  for (size_t i = want.size() - kVocab; i < want.size(); ++i) {
    probability += std::exp(want[i].log_likelihood);
    greedy += want[i].greedy ? 1 : 0;
  }
  EXPECT_NEAR(probability, 1, 1e-5);
  EXPECT_EQ(greedy, 1);
  for (const std::vector<evaluate::Score>& got : scores(model, layout)) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].log_likelihood, want[i].log_likelihood, 1e-5 * (1 + std::abs(want[i].log_likelihood))) << i;
      EXPECT_EQ(got[i].count, i < 9 ? static_cast<int64_t>(1 + i / 2) : 1) << i;
      EXPECT_EQ(got[i].greedy, want[i].greedy) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EvaluateLayout,
                         testing::Values(Case{"gpt", "data=2"}, Case{"gpt", "data=4"}, Case{"gpt", "data=2 zero=3"},
                                         Case{"gpt", "tensor=2"}, Case{"gpt-odd", "tensor=2"}, Case{"gpt", "tensor=4"},
                                         Case{"gpt", "tensor=2 sequence_parallel"}, Case{"gpt", "context=2"},
                                         Case{"llama", "context=2 method=ring"},
                                         Case{"llama", "context=2 method=ulysses"}, Case{"gpt", "pipe=2"},
                                         Case{"llama", "pipe=4"}, Case{"gpt", "pipe=2 schedule=interleaved chunks=2"},
                                         Case{"llama", "pipe=2 tensor=2"}, Case{"gpt", "pipe=2 data=2 zero=3"},
                                         Case{"llama", "pipe=2 context=2"},
                                         Case{"llama", "pipe=2 data=2 tensor=2 zero=3 sequence_parallel"}),
                         [](const auto& info) {
                           std::string name = info.param.model + "_" + info.param.layout;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST_F(EvaluateLayouts, SizesThatDoNotFitTheModel) {
  EXPECT_EQ(error_of([&] { losses("gpt", "context=16", 4); }),
            "[plan] dim \"seq\" of size 8 is smaller than mesh axis \"context\" of size 16; nearest seq: 16; nearest "
            "context: 8");
}

TEST(EvenBatch, IsSharedByRanksEvenly) {
  EXPECT_EQ(evaluate::even_batch(8, 100, 1), 8);
  EXPECT_EQ(evaluate::even_batch(8, 5, 1), 5);
  EXPECT_EQ(evaluate::even_batch(8, 5, 4), 8);
  EXPECT_EQ(evaluate::even_batch(1, 100, 3), 3);
}

TEST(ReadLayout, IsOneRankWhereNothingIsSaid) {
  const config::Resolved layout = evaluate::read_layout("generate", {}, 6);
  EXPECT_EQ(layout.settings.parallel.ranks, 1);
  EXPECT_EQ(layout.settings.parallel.threads, 6);
}

TEST(ReadLayout, TakesKeysOfParallelAlone) {
  const auto read = [](std::vector<std::string> sets) { return evaluate::read_layout("generate", sets, 6); };
  const config::Parallel p = read({"parallel.tensor=2", "parallel.pipe=3"}).settings.parallel;
  EXPECT_EQ(p.ranks, 6);
  EXPECT_EQ(p.threads, 1);
  EXPECT_EQ(read({"parallel.ranks=4"}).settings.parallel.data, 4);
  EXPECT_EQ(read({"parallel.zero=3"}).warnings,
            std::vector<std::string>{"--set: parallel.zero = 3 has no effect with parallel.data = 1 (default)"});
  EXPECT_EQ(read({"parallel.tensor=2", "parallel.recompute=full"}).warnings,
            std::vector<std::string>{"--set: parallel.recompute = \"full\" has no effect where nothing is trained"});
  EXPECT_EQ(error_of([&] { read({"train.seed=3"}); }),
            "[generate] --set train.seed=3: only keys of [parallel] are set here; [train] is that of the checkpoint");
  EXPECT_EQ(error_of([&] { read({"parallel.tensor=0"}); }),
            "[config] --set: parallel.tensor = 0 is out of range; it must be an integer from 1 to 1,000,000");
  EXPECT_EQ(error_of([&] { read({"paralel.tensor=2"}); }),
            "[config] --set: unknown section [paralel]; did you mean [parallel]?");
  EXPECT_EQ(error_of([&] {
              read({"parallel.ranks=3", "parallel.tensor=2"});
            }),
            "[config] --set: parallel.ranks = 3 is not data 1 x tensor 2 x context 1 = 2; leave ranks out");
}

}  // namespace kintsugi::tests::evaluate_layouts_test
