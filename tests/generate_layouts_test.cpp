// Generation on several ranks: every layout gives the greedy text of one rank, on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "kintsugi/evaluate/generator.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/random.h"
#include "tests/greedy.h"
#include "tests/layout_checkpoint.h"

namespace kintsugi::tests::generate_layouts_test {
namespace {

constexpr size_t kLength = 40;  // more than twice the 16 positions of the caches
constexpr evaluate::SampleOptions kGreedy = {.temperature = 0.0};

// Shorter than the prefill program of 6, several prefill chunks, and longer than the caches.
std::vector<int32_t> prompt_of(size_t length) {
  std::vector<int32_t> ids;
  for (uint64_t i = 0; i < length; ++i)
    ids.push_back(static_cast<int32_t>(kernels::random_word(kernels::random_key(5, "prompt"), length, i) % 65));
  return ids;
}

class GenerateLayouts : public testing::Test {
 protected:
  static void SetUpTestSuite() { folder_ = std::make_unique<TemporaryFolder>(); }
  static void TearDownTestSuite() {
    folder_.reset();
    checkpoints_.clear();
    texts_.clear();
  }

  static const fs::path& checkpoint(const std::string& model) {
    fs::path& path = checkpoints_[model];
    if (path.empty()) path = save_checkpoint(model, folder_->path());
    return path;
  }

  // The tokens on each rank, and the margins on ranks that have logits.
  static std::vector<Greedy> texts(const std::string& model, const std::string& layout, size_t prompt,
                                   const evaluate::SampleOptions& options = kGreedy) {
    std::vector<Greedy> all(16);
    int ranks = 0;
    on_layout(checkpoint(model), layout, [&](evaluate::CheckpointModel& m) {
      const auto executor = m.load(models::build_generation(m.settings(), 1, 6, 16));
      evaluate::Generator generator(*executor, &m.all());
      Greedy& text = all[static_cast<size_t>(m.all().rank())];
      if (m.leads()) ranks = m.all().size();
      generator.generate(prompt_of(prompt), options, [&](int32_t id) {
        text.ids.push_back(id);
        if (!generator.logits().empty()) text.leads.push_back(lead_of(generator.logits()));
        return text.ids.size() < kLength;
      });
    });
    all.resize(static_cast<size_t>(ranks));
    return all;
  }

  static const Greedy& one_rank(const std::string& model, size_t prompt) {
    Greedy& text = texts_[{model, prompt}];
    if (text.ids.empty()) text = texts(model, "", prompt)[0];
    return text;
  }

  static void expect_text_of_one_rank(const std::string& model, const std::string& layout) {
    for (const size_t prompt : {size_t{3}, size_t{13}, size_t{25}}) {
      const Greedy& want = one_rank(model, prompt);
      const std::vector<Greedy> got = texts(model, layout, prompt);
      for (size_t rank = 0; rank < got.size(); ++rank) {
        EXPECT_EQ(difference(want, got[rank].ids), "") << "rank " << rank << ", prompt of " << prompt;
        EXPECT_EQ(got[rank].ids, got[0].ids) << "rank " << rank;
      }
    }
  }

  static std::unique_ptr<TemporaryFolder> folder_;
  static std::map<std::string, fs::path> checkpoints_;
  static std::map<std::pair<std::string, size_t>, Greedy> texts_;
};

std::unique_ptr<TemporaryFolder> GenerateLayouts::folder_;
std::map<std::string, fs::path> GenerateLayouts::checkpoints_;
std::map<std::pair<std::string, size_t>, Greedy> GenerateLayouts::texts_;

struct Case {
  std::string model, layout;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << ": " << c.layout;
}

class GenerateLayout : public GenerateLayouts, public testing::WithParamInterface<Case> {};

}  // namespace

TEST_P(GenerateLayout, TheGreedyTextOfOneRank) {
  expect_text_of_one_rank(GetParam().model, GetParam().layout);
}

INSTANTIATE_TEST_SUITE_P(
    All, GenerateLayout,
    testing::Values(Case{"gpt", "data=2"}, Case{"gpt", "tensor=2"}, Case{"gpt", "tensor=4"},
                    Case{"gpt-odd", "tensor=2"}, Case{"gpt", "pipe=2"}, Case{"gpt", "pipe=4"},
                    Case{"gpt", "pipe=2 stages=1,3"}, Case{"gpt", "pipe=2 schedule=interleaved chunks=2"},
                    Case{"gpt", "pipe=2 tensor=2"}, Case{"gpt", "data=2 zero=3"}, Case{"gpt", "pipe=2 data=2 zero=3"},
                    Case{"llama", "data=2 zero=1"}, Case{"llama", "tensor=2"}, Case{"llama", "tensor=4"},
                    Case{"llama-odd", "tensor=2"}, Case{"llama", "pipe=4"}, Case{"llama", "pipe=2 tensor=2"},
                    Case{"llama", "pipe=2 data=2 zero=3"}, Case{"llama", "data=2 tensor=2 pipe=2 zero=3"}),
    [](const auto& info) {
      std::string name = info.param.model + "_" + info.param.layout;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

// On a device, steps are captured once and then launched: the text equals the CPU's, and the host enqueues no further
// kernels.
TEST_F(GenerateLayouts, OnADeviceStepsAreCapturedOnce) {
  static std::atomic<int> products;
  const struct NoLibrary {
    ~NoLibrary() { gpu_emulated::library_gemm = nullptr; }
  } afterwards;
  gpu_emulated::library_gemm = [](const gpu_emulated::Gemm&, device::Stream& stream) {
    products += stream.enqueues() ? 1 : 0;
    return false;
  };
  for (const auto& [model, layout] :
       {std::pair("gpt", "device=emulated"), std::pair("llama", "device=emulated"),
        std::pair("gpt", "device=emulated tensor=2"), std::pair("llama-odd", "device=emulated tensor=2"),
        std::pair("llama", "device=emulated pipe=2"), std::pair("mixtral", "device=emulated"),
        std::pair("deepseek_v3", "device=emulated"), std::pair("gpt_oss", "device=emulated")}) {
    for (const size_t prompt : {size_t{3}, size_t{25}}) {
      std::vector<int32_t> text;
      std::vector<int> enqueued;  // behind each token
      products = 0;
      on_layout(checkpoint(model), layout, [&](evaluate::CheckpointModel& m) {
        const auto executor = m.load(models::build_generation(m.settings(), 1, 6, 16));
        evaluate::Generator generator(*executor, &m.all());
        size_t count = 0;
        generator.generate(prompt_of(prompt), kGreedy, [&](int32_t id) {
          if (m.leads()) text.push_back(id), enqueued.push_back(products);
          return ++count < kLength;
        });
        EXPECT_TRUE(executor->captured(program::Step::decode));
      });
      EXPECT_EQ(difference(one_rank(model, prompt), text), "") << model << " " << layout << ", prompt of " << prompt;
      ASSERT_EQ(enqueued.size(), kLength);
      // The caches fill up twice and are refilled by `prefill`, which is captured by then.
      EXPECT_GT(enqueued[0], 0);
      EXPECT_EQ(enqueued[kLength / 2], enqueued[kLength - 1]) << model << " " << layout;
    }
  }
}

// The compared text is neither short nor a repetition of one token.
TEST_F(GenerateLayouts, TextsOfOneRankAreLongAndCertain) {
  for (const std::string model : {"gpt", "gpt-odd", "llama", "llama-odd"})
    for (const size_t prompt : {size_t{3}, size_t{13}, size_t{25}}) {
      const Greedy& text = one_rank(model, prompt);
      EXPECT_EQ(text.ids.size(), kLength);
      EXPECT_EQ(text.leads.size(), kLength);
      EXPECT_GE(certain(text), 30u) << model << ", prompt of " << prompt;
      EXPECT_GT(std::set<int32_t>(text.ids.begin(), text.ids.end()).size(), 3u) << model << ", prompt of " << prompt;
    }
}

// The logits, on ranks that have them: those with the head.
TEST_F(GenerateLayouts, LogitsAreOnTheStageOfTheHead) {
  const std::vector<int32_t> prompt = prompt_of(9);
  std::vector<float> want;
  on_layout(checkpoint("gpt"), "", [&](evaluate::CheckpointModel& m) {
    const auto executor = m.load(models::build_generation(m.settings(), 1, 6, 16));
    evaluate::Generator generator(*executor, &m.all());
    const std::span<const float> logits = generator.read(prompt);
    want.assign(logits.begin(), logits.end());
  });
  ASSERT_EQ(want.size(), 65u);
  std::vector<std::vector<float>> got(4);
  on_layout(checkpoint("gpt"), "pipe=2 tensor=2", [&](evaluate::CheckpointModel& m) {
    const auto executor = m.load(models::build_generation(m.settings(), 1, 6, 16));
    evaluate::Generator generator(*executor, &m.all());
    const std::span<const float> logits = generator.read(prompt);
    got[static_cast<size_t>(m.all().rank())].assign(logits.begin(), logits.end());
  });
  double top = 0;
  for (const float x : want) top = std::max(top, std::abs(static_cast<double>(x)));
  for (size_t rank = 0; rank < 4; ++rank) {
    ASSERT_EQ(got[rank].size(), rank < 2 ? 0u : 65u);
    for (size_t i = 0; i < got[rank].size(); ++i)
      EXPECT_NEAR(got[rank][i], want[i], 1e-5 * top) << rank << ", id " << i;
  }
}

// A sample is a function of logits, seed and number, so sampled texts are equal too.
TEST_F(GenerateLayouts, TextsThatAreDrawn) {
  const evaluate::SampleOptions options = {.temperature = 1.0, .top_k = 20, .seed = 4};
  const std::vector<Greedy> one = texts("llama", "", 13, options), two = texts("llama", "pipe=2 tensor=2", 13, options);
  ASSERT_EQ(two.size(), 4u);
  for (const Greedy& text : two) EXPECT_EQ(text.ids, one[0].ids);
  EXPECT_NE(one[0].ids, one_rank("llama", 13).ids);
}

// Prompts that differ in length by more than the prefill program, texts that end early while others continue, and texts
// longer than the caches: each equals the text of its prompt alone, on every rank.
TEST_F(GenerateLayouts, TextsTogetherAreThoseOfEachAlone) {
  const std::vector<size_t> prompts = {13, 3, 25, 3};
  const std::vector<size_t> lengths = {kLength, 4, kLength, kLength};
  std::vector<std::vector<int32_t>> ids;
  for (const size_t prompt : prompts) ids.push_back(prompt_of(prompt));
  for (const std::string model : {"gpt", "llama"})
    for (const std::string layout :
         {"", "tensor=2", "pipe=2", "pipe=2 tensor=2", "data=2", "data=4", "data=2 zero=3", "pipe=2 data=2"})
      on_layout(checkpoint(model), layout, [&](evaluate::CheckpointModel& m) {
        const auto executor = m.load(models::build_generation(m.settings(), 4, 6, 16));
        EXPECT_EQ(m.repeated(), std::vector<std::string>()) << layout;
        std::vector<std::vector<int32_t>> made(4);
        evaluate::Generator(*executor, &m.all()).generate(ids, kGreedy, [&](size_t text, int32_t id) {
          made[text].push_back(id);
          return made[text].size() < lengths[text];
        });
        for (size_t i = 0; i < 4; ++i) {
          EXPECT_EQ(made[i].size(), lengths[i]) << layout;
          const Greedy& alone = one_rank(model, prompts[i]);
          const Greedy want = {.ids = {alone.ids.begin(), alone.ids.begin() + static_cast<long>(lengths[i])},
                               .leads = {alone.leads.begin(), alone.leads.begin() + static_cast<long>(lengths[i])}};
          EXPECT_EQ(difference(want, made[i]), "") << model << ", " << layout << ", text " << i;
        }
      });
}

// A sampled text depends only on the seed and its index, not on other texts of the batch; the first equals that of its
// prompt alone.
TEST_F(GenerateLayouts, TextsThatAreDrawnTogether) {
  const evaluate::SampleOptions options = {.temperature = 1.0, .top_k = 20, .seed = 4};
  const auto drawn = [&](const std::vector<size_t>& prompts, const std::string& layout) {
    std::vector<std::vector<int32_t>> ids, made(prompts.size());
    for (const size_t prompt : prompts) ids.push_back(prompt_of(prompt));
    on_layout(checkpoint("llama"), layout, [&](evaluate::CheckpointModel& m) {
      const auto executor = m.load(models::build_generation(m.settings(), std::ssize(prompts), 6, 16));
      std::vector<size_t> lengths(prompts.size());
      evaluate::Generator(*executor, &m.all()).generate(ids, options, [&](size_t text, int32_t id) {
        if (m.leads()) made[text].push_back(id);
        return ++lengths[text] < kLength;
      });
    });
    return made;
  };
  const auto some = drawn({13, 3, 3}, "");
  EXPECT_EQ(some[0], texts("llama", "", 13, options)[0].ids);
  EXPECT_NE(some[1], some[2]);
  const auto others = drawn({25, 3, 13, 7}, "");
  EXPECT_EQ(others[1], some[1]);
  EXPECT_EQ(drawn({13, 3, 3}, "pipe=2 tensor=2"), some);
}

// A stop on any rank stops all.
TEST_F(GenerateLayouts, AnyRankEndsTheText) {
  for (const int stops : {0, 1, 3}) {
    std::vector<size_t> lengths(4);
    on_layout(checkpoint("gpt"), "pipe=2 data=2", [&](evaluate::CheckpointModel& m) {
      const auto executor = m.load(models::build_generation(m.settings(), 1, 6, 16));
      const int rank = m.all().rank();
      size_t& length = lengths[static_cast<size_t>(rank)];
      evaluate::Generator(*executor, &m.all()).generate(prompt_of(3), kGreedy, [&](int32_t) {
        return ++length < 5 || rank != stops;
      });
    });
    EXPECT_EQ(lengths, std::vector<size_t>(4, 5)) << "ended by rank " << stops;
  }
}

// An axis that splits nothing is detected and reported; one that only splits weights is used.
TEST_F(GenerateLayouts, AxesThatRepeatWork) {
  const std::map<std::string, std::vector<std::string>> wanted = {{"", {}},
                                                                  {"data=2", {"data"}},
                                                                  {"data=2 zero=2", {"data"}},
                                                                  {"data=2 zero=3", {}},
                                                                  {"tensor=2", {}},
                                                                  {"pipe=2 data=2", {"data"}},
                                                                  {"pipe=2", {}}};
  for (const auto& [layout, want] : wanted)
    on_layout(checkpoint("gpt"), layout, [&, want = want, layout = layout](evaluate::CheckpointModel& m) {
      m.load(models::build_generation(m.settings(), 1, 6, 16));
      EXPECT_EQ(m.repeated(), want) << layout;
    });
}

TEST_F(GenerateLayouts, SizesThatDoNotFitTheModel) {
  const auto load = [&](const std::string& layout) {
    return error_of([&] {
      on_layout(checkpoint("gpt"), layout,
                [](evaluate::CheckpointModel& m) { m.load(models::build_generation(m.settings(), 1, 6, 16)); });
    });
  };
  EXPECT_EQ(load("tensor=16"),
            "[plan] dim \"kv_heads\" of size 2, with \"group\" of size 2, is smaller than mesh axis \"tensor\" of size "
            "16; nearest kv_heads: 8; nearest tensor: 4");
  EXPECT_EQ(load("pipe=8"), "[stages] mesh axis \"pipe\" of size 8 asks for 8 parts of 4 layers; at most pipe = 4");
}

// Weights and caches have the requested dtype, regardless of the checkpoint's.
TEST_F(GenerateLayouts, StatesFollowTheDtype) {
  for (const std::string dtype : {"fp64", "fp32", "bf16", "fp16"})
    for (const std::string layout : {"", "tensor=2", "pipe=2"})
      on_layout(
          checkpoint("llama"), layout,
          [&](evaluate::CheckpointModel& m) {
            const auto executor = m.load(models::build_generation(m.settings(), 8, 16, 16));
            for (const program::StateInfo& s : executor->program().states)
              EXPECT_EQ(name_of(s.whole.dtype), dtype) << s.name;
          },
          dtype);
}

// With them, the total memory of a model dominated by weights: that of the program, with no further allocations.
TEST(GenerateInADtype, TakesItsMemory) {
  config::Settings s = small_model("llama", "fp32");
  s.model.layers = 12, s.model.embed = 256, s.model.ffn = 1024, s.model.vocab = 4096, s.model.context = 256;
  s.parallel.device = "cpu";
  const auto bytes = [&](const std::string& dtype) {
    const config::Settings now = evaluate::settings_now(s, {}, dtype);
    const auto graphs = models::build_generation(now, 1, 16, now.model.context);
    return static_cast<double>(
        compile::only_stage(
            compile::compile({.settings = now, .kernels = *compile::kernels_of(now), .graphs = &graphs, .threads = 1}))
            .bytes());
  };
  EXPECT_GT(bytes("fp32"), 10 << 20);
  EXPECT_NEAR(bytes("bf16") / bytes("fp32"), 0.5, 0.02);
  EXPECT_LT(bytes("fp16") / bytes("fp32"), 0.65);  // its products widen the largest weight
  EXPECT_NEAR(bytes("fp64") / bytes("fp32"), 2, 0.1);
  EXPECT_EQ(bytes(""), bytes("fp32"));
}

// Generation produces one token at a time: there is nothing to split.
TEST(GenerateOnRanks, TokensOfATextAreNotSplit) {
  const auto refused = [](const std::string& layout, const std::vector<std::string>& rules = {}) {
    config::Settings s;
    set_layout(s, layout);
    s.parallel.rules = rules;
    return error_of([&] { evaluate::require_whole_samples(plan::plan_from(s.parallel), s.parallel); });
  };
  const std::string why =
      " splits the tokens of a text, of which generation makes one at a time; leave it out, and split weights and "
      "caches by parallel.tensor or parallel.pipe";
  EXPECT_EQ(refused("context=2"), "[generate] parallel.context = 2" + why);
  EXPECT_EQ(refused("context=4 method=ring"), "[generate] parallel.context = 4" + why);
  EXPECT_EQ(refused("tensor=2 sequence_parallel"), "[generate] parallel.sequence_parallel" + why);
  EXPECT_EQ(refused("tensor=2", {"seq in add -> tensor, padded"}),
            "[generate] rule \"seq in add -> tensor, padded\"" + why);
  EXPECT_EQ(refused("tensor=2", {"embed in contract -> tensor"}), "no error");
  EXPECT_EQ(refused("data=2 tensor=2 pipe=2 zero=3"), "no error");
}

TEST(Greedy, AgreesUpToTheFirstTie) {
  const Greedy want = {.ids = {5, 6, 7, 8}, .leads = {1.0, 1e-4, 9.9e-5, 1.0}};
  EXPECT_EQ(certain(want), 2u);
  EXPECT_EQ(difference(want, std::vector<int32_t>{5, 6, 7, 8}), "");
  EXPECT_EQ(difference(want, std::vector<int32_t>{5, 6, 1, 2}), "");
  EXPECT_EQ(difference(want, std::vector<int32_t>{5, 6}), "");
  EXPECT_EQ(difference(want, std::vector<int32_t>{5}), "only 1 tokens");
  EXPECT_EQ(difference(want, std::vector<int32_t>{5, 7, 7, 8}), "token 1 is 7 instead of 6, which led by 0.0001");
  const std::vector<float> logits = {0.5f, 2.0f, -1.0f, 1.75f};
  EXPECT_EQ(lead_of(logits), 0.25);
  const std::vector<float> alike = {2.0f, 1.0f, 2.0f}, lost = {NAN, NAN};
  EXPECT_EQ(lead_of(alike), 0.0);
  EXPECT_EQ(certain({.ids = {0}, .leads = {lead_of(lost)}}), 0u);
}

}  // namespace kintsugi::tests::generate_layouts_test
