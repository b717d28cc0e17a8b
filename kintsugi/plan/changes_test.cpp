#include "kintsugi/plan/changes.h"

#include <gtest/gtest.h>

namespace kintsugi::plan::changes_test {
namespace {

std::vector<std::string> changes_of(const config::Settings& s) {
  std::vector<std::string> texts;
  for (const Change change : changes()) texts.push_back(to_string(change(s)));
  return texts;
}

config::Settings on(config::Parallel parallel, int64_t micro_batch = 4) {
  config::Settings s;
  s.parallel = parallel;
  s.train.micro_batch = micro_batch;
  return s;
}

using Texts = std::vector<std::string>;

TEST(Changes, OfOneRank) {
  EXPECT_EQ(changes_of(on({})), (Texts{"", "", "", "train.micro_batch = 2", "parallel.recompute = \"light\"",
                                       "parallel.recompute = \"selective\"", "", "parallel.recompute = \"full\"", "",
                                       "parallel.tensor = 2, parallel.ranks = 2",
                                       "parallel.pipe = 2, parallel.ranks = 2", "parallel.offload = \"optimizer\""}));
}

TEST(Changes, OfManyRanks) {
  EXPECT_EQ(changes_of(on({.ranks = 8, .data = 4, .tensor = 2})),
            (Texts{"parallel.zero = 1", "parallel.sequence_parallel = true", "parallel.keep_logits = false",
                   "train.micro_batch = 2", "parallel.recompute = \"light\"", "parallel.recompute = \"selective\"",
                   "parallel.zero = 2", "parallel.recompute = \"full\"", "parallel.zero = 3",
                   "parallel.tensor = 4, parallel.data = 2", "parallel.pipe = 2, parallel.data = 2",
                   "parallel.offload = \"optimizer\""}));
}

TEST(Changes, NoneOfWhatIsSoAlready) {
  config::Settings s = on({.ranks = 6,
                           .data = 3,
                           .tensor = 2,
                           .zero = 2,
                           .sequence_parallel = true,
                           .keep_logits = false,
                           .stages = "2 2",
                           .recompute = "selective",
                           .recompute_every = 2,
                           .offload = "activations"},
                          3);
  EXPECT_EQ(changes_of(s),
            (Texts{"", "", "", "", "", "parallel.recompute = \"selective\", parallel.recompute_every = 1", "",
                   "parallel.recompute = \"full\", parallel.recompute_every = 1", "parallel.zero = 3",
                   "parallel.tensor = 4, parallel.ranks = 12", "", "parallel.offload = \"all\""}));
  s.train.micro_batch = 4;
  s.train.reproducible = 2;
  s.parallel.recompute = "full";
  s.parallel.recompute_every = 1;
  s.parallel.zero = 3;
  s.parallel.offload = "optimizer";
  EXPECT_EQ(changes_of(s),
            (Texts{"", "", "", "", "", "", "", "", "", "parallel.tensor = 4, parallel.ranks = 12", "", ""}));
}

TEST(Changes, KeepTheGroupsOfBatchNorms) {
  config::Settings s = on({.ranks = 2, .data = 2});
  s.model.batch_norm = "replica";
  EXPECT_EQ(changes_of(s)[3], "");
  s.model.batch_norm_samples = 2;
  EXPECT_EQ(changes_of(s)[3], "train.micro_batch = 2");
}

TEST(Changes, AreMade) {
  const config::Settings s = with(
      on({.ranks = 2, .data = 2}),
      {{"parallel.tensor", int64_t{2}}, {"parallel.data", int64_t{1}}, {"parallel.recompute", std::string("full")}});
  EXPECT_EQ(s.parallel, (config::Parallel{.ranks = 2, .tensor = 2, .recompute = "full"}));
}

TEST(Changes, OneAfterAnother) {
  Sets sets = {{"parallel.zero", int64_t{1}}, {"train.micro_batch", int64_t{2}}};
  append(sets, {{"parallel.zero", int64_t{2}}}, on({.ranks = 2, .data = 2}));
  EXPECT_EQ(to_string(sets), "train.micro_batch = 2, parallel.zero = 2");
  append(sets, {{"parallel.tensor", int64_t{2}}, {"parallel.data", int64_t{1}}}, on({.ranks = 2, .tensor = 2}));
  EXPECT_EQ(to_string(sets), "train.micro_batch = 2, parallel.tensor = 2, parallel.data = 1");
}

}  // namespace
}  // namespace kintsugi::plan::changes_test
