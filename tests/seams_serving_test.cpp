// Rows of a batch with separate positions: texts in slots that start and end at any pass equal those of each prompt
// alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/evaluate/slots.h"
#include "tests/layout_checkpoint.h"

namespace kintsugi::tests::seams_serving_test {
namespace {

using Ids = std::vector<int32_t>;

constexpr int64_t kSlots = 3, kRows = 7;

// Weights large enough to separate the logits.
void grow_weights(run::Executor& executor) {
  executor.initialize(3);
  for (const program::StateInfo& info : executor.program().states)
    if (info.kind == program::StateKind::weight && info.init.kind == tensor::Init::Kind::normal) {
      std::vector<double> x = values(executor.state(info.name));
      for (double& e : x) e *= 8;
      put(executor.state(info.name), x);
    }
}

std::vector<Ids> some_prompts(const config::Settings& s) {
  std::mt19937 random(7);
  std::vector<Ids> prompts;
  for (const size_t length : {5, 1, 11, 3, 8, 2, 14, 1}) {
    Ids ids(length);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(s.model.vocab));
    prompts.push_back(ids);
  }
  return prompts;
}

// Text i has 1 + 3 i % 11 tokens: some are longer than the caches.
int64_t length_of(size_t text) {
  return 1 + static_cast<int64_t>(3 * text % 11);
}

struct Case {
  std::string family, dtype, kernels;
};

struct Texts {
  explicit Texts(const Case& c) : s(small_model(c.family, c.dtype)) {
    s.parallel.device = c.kernels;
    kernels = compile::kernels_of(s);
    prompts = some_prompts(s);
  }

  std::unique_ptr<run::Executor> load(const models::Graphs& graphs) {
    auto executor = std::make_unique<run::Executor>(
        compile::only_stage(
            compile::compile({.settings = s, .kernels = *kernels, .graphs = &graphs, .threads = team.size()})),
        *kernels, team);
    grow_weights(*executor);
    return executor;
  }

  // With the call lists that use one position for the whole batch.
  std::vector<Ids> alone(const evaluate::SampleOptions& how) {
    const auto executor = load(models::build_generation(s, 1, 6, s.model.context));
    evaluate::Generator generator(*executor);
    std::vector<Ids> made(prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i)
      generator.generate(prompts[i], how, [&](int32_t id) {
        made[i].push_back(id);
        return std::ssize(made[i]) < length_of(i);
      });
    return made;
  }

  std::vector<Ids> in_slots(const evaluate::SampleOptions& how, int64_t num_slots = kSlots, int64_t rows = kRows) {
    const auto executor = load(models::build_serving(s, num_slots, rows, s.model.context));
    evaluate::Slots slots(*executor);
    std::vector<Ids> made(prompts.size());
    evaluate::continue_in_slots(slots, nullptr, prompts, how, [&](size_t text, int32_t id) {
      made[text].push_back(id);
      return std::ssize(made[text]) < length_of(text);
    });
    return made;
  }

  config::Settings s;
  std::unique_ptr<kernels::KernelSet> kernels;
  base::ThreadTeam team{2};
  std::vector<Ids> prompts;
};

TEST(Serving, TextsInSlotsAreThoseOfTheirPromptsAlone) {
  for (const Case& c : std::vector<Case>{{"gpt", "fp64", "reference"},
                                         {"llama", "fp64", "reference"},
                                         {"mixtral", "fp64", "reference"},
                                         {"gpt", "fp32", "cpu"},
                                         {"llama", "fp32", "cpu"},
                                         {"gemma3", "fp32", "cpu"}}) {
    SCOPED_TRACE(c.family + " " + c.dtype);
    Texts t(c);
    EXPECT_EQ(t.in_slots({.temperature = 0}), t.alone({.temperature = 0}));
  }
}

// With eight slots and 40 rows a pass runs the list with the fewest rows that hold its tokens.
TEST(Serving, PassesOfFewTokensRunListsOfFewRows) {
  const models::ServingRows few = models::serving_rows(8, 40);
  EXPECT_EQ(few.decode_one, 1);
  EXPECT_EQ(few.decode_quarter, 2);
  EXPECT_EQ(few.decode_half, 4);
  EXPECT_EQ(few.prefill_quarter, 10);
  for (const Case& c : std::vector<Case>{{"gpt", "fp64", "reference"}, {"llama", "fp32", "cpu"}}) {
    SCOPED_TRACE(c.family + " " + c.dtype);
    Texts t(c);
    EXPECT_EQ(t.in_slots({.temperature = 0}, 8, 40), t.alone({.temperature = 0}));
    const auto executor = t.load(models::build_serving(t.s, 8, 40, t.s.model.context));
    for (const auto& [step, rows] : {std::pair(program::Step::decode_one, 1),
                                     {program::Step::decode_quarter, 2},
                                     {program::Step::decode_half, 4},
                                     {program::Step::decode, 8},
                                     {program::Step::prefill_quarter, 8}})
      EXPECT_EQ(executor->output(step, "logits").size("row"), rows);
  }
}

// Each text draws from its own random stream, regardless of its slot.
TEST(Serving, DrawnTextsDoNotDependOnTheOthers) {
  Texts t({"llama", "fp64", "reference"});
  const evaluate::SampleOptions how = {.temperature = 0.8, .top_k = 20, .seed = 5};
  const std::vector<Ids> together = t.in_slots(how);
  for (size_t i = 0; i < t.prompts.size(); ++i) {
    const auto executor = t.load(models::build_serving(t.s, kSlots, kRows, t.s.model.context));
    evaluate::Slots slots(*executor);
    slots.begin(1, {.prompt = t.prompts[i], .sample = how, .stream = i});
    Ids made;
    while (std::ssize(made) < length_of(i))
      for (const auto& found : slots.step()) made.push_back(found.token.id);
    EXPECT_EQ(made, together[i]) << "text " << i;
  }
}

// The bits of every logit and cache state, not only of the choices: with reference kernels, a text that shares passes
// with others has the log-probabilities of the text alone.
TEST(Serving, LogProbabilitiesHaveTheBitsOfTheTextAlone) {
  for (const char* family : {"gpt", "llama"}) {
    Texts t({family, "fp32", "reference"});
    const auto together = t.load(models::build_serving(t.s, kSlots, kRows, t.s.model.context)),
               single = t.load(models::build_serving(t.s, kSlots, kRows, t.s.model.context));
    evaluate::Slots all(*together), one(*single);
    const auto text = [&](size_t i) {
      return evaluate::SlotText{.prompt = t.prompts[i], .sample = {.temperature = 0}, .top = 2, .score_prompt = true};
    };
    std::map<int64_t, std::vector<std::pair<int32_t, double>>> made;
    for (int64_t slot = 0; slot < kSlots; ++slot) all.begin(slot, text(static_cast<size_t>(slot)));
    for (int pass = 0; pass < 6; ++pass)
      for (const auto& f : all.step()) made[f.slot].emplace_back(f.token.id, *f.token.log_probability);
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      one.begin(0, text(static_cast<size_t>(slot)));
      std::vector<std::pair<int32_t, double>> alone;
      while (alone.size() < made[slot].size())
        for (const auto& f : one.step()) alone.emplace_back(f.token.id, *f.token.log_probability);
      one.end(0);
      alone.resize(made[slot].size());
      EXPECT_EQ(alone, made[slot]) << family << ", slot " << slot;
      EXPECT_GT(made[slot].size(), 2u);
    }
  }
}

TEST(Serving, ASlotReadsWhatItHoldsOfAPromptOnce) {
  Texts t({"llama", "fp64", "reference"});
  const auto executor = t.load(models::build_serving(t.s, kSlots, kRows, t.s.model.context));
  evaluate::Slots slots(*executor);
  const Ids& prompt = t.prompts[2];
  const auto continued = [&](const Ids& given) {
    const int64_t slot = *slots.free_slot(given);
    slots.begin(slot, {.prompt = given, .sample = {.temperature = 0}});
    Ids made;
    while (made.size() < 3)
      for (const auto& found : slots.step()) made.push_back(found.token.id);
    slots.end(slot);
    return made;
  };
  const Ids first = continued(prompt);
  EXPECT_EQ(slots.tokens_reused(), 0);
  continued(t.prompts[0]);  // another slot
  Ids longer = prompt;
  longer.insert(longer.end(), first.begin(), first.begin() + 1);
  const Ids rest = continued(longer);
  EXPECT_EQ(slots.tokens_reused(), std::ssize(prompt));
  EXPECT_EQ(Ids(first.begin() + 1, first.end()), Ids(rest.begin(), rest.begin() + 2));
  EXPECT_EQ(continued(prompt), first);  // the last token is read for its logits
  EXPECT_EQ(slots.tokens_reused(), 2 * std::ssize(prompt) - 1);
}

// The same texts in each layout, on every rank. In fp64, where no two logits are within rounding.
TEST(Serving, EveryLayoutMakesTheSameTexts) {
  const TemporaryFolder folder;
  for (const char* model : {"gpt", "llama-odd"}) {
    const fs::path checkpoint = save_checkpoint(model, folder.path());
    const std::vector<Ids> prompts = some_prompts(checkpoint_settings(model));
    std::vector<Ids> want;
    for (const char* layout : {"", "data=2", "data=4 zero=3", "tensor=2", "pipe=2", "pipe=2 tensor=2"}) {
      SCOPED_TRACE(std::string(model) + " " + layout);
      std::vector<std::vector<Ids>> made(4);  // by rank
      on_layout(
          checkpoint, layout,
          [&](evaluate::CheckpointModel& m) {
            const auto executor = m.load(models::build_serving(m.settings(), kSlots, kRows, 16));
            evaluate::Slots slots(*executor, &m.all());
            std::vector<Ids>& texts = made[static_cast<size_t>(m.all().rank())];
            texts.resize(prompts.size());
            evaluate::continue_in_slots(slots, &m.all(), prompts, {.temperature = 0}, [&](size_t text, int32_t id) {
              texts[text].push_back(id);
              return !m.leads() || std::ssize(texts[text]) < length_of(text);  // the first rank ends texts
            });
          },
          "fp64");
      if (want.empty()) want = made[0];
      for (const std::vector<Ids>& of_rank : made)
        if (!of_rank.empty()) {
          EXPECT_EQ(of_rank, want);
        }
    }
  }
}

}  // namespace
}  // namespace kintsugi::tests::seams_serving_test
