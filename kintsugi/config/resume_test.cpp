#include "kintsugi/config/resume.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/config/testing.h"

namespace kintsugi::config::resume_test {
namespace {

using Words = std::vector<std::string>;

Resolved resolved(std::string_view text, const Words& sets = {}) {
  return resolve(read_text(text, "run.toml", sets), 2);
}

Settings again(const Resolved& r) {
  return read_text(to_toml(r), "saved.toml").settings;
}

}  // namespace

TEST(ResolvedFile, RoundTrip) {
  const std::string odd =
      "[train]\nfolder = \"a \\\"b\\\" \\\\ c\\n\\t\\u0001\\u007f \u00e9 #\"\nlearning_rate = 0.1\nclip = 1e-300\n"
      "min_learning_rate = 0.030000000000000002\nweight_decay = 1e30\nseed = 9223372036854775807\n";
  for (const std::string& text :
       Words{"", odd, "[data]\ntrain = \"x\"\nvalidation = \"y\"\n", "[data.train]\na = 0.5\n",
             "[data.train]\n\"a b/c.d\" = 0.25\n\"e\\\"f\" = 3\n", "[model]\nfamily = \"llama\"\nbias = true\n"}) {
    const Resolved r = resolved(text);
    EXPECT_EQ(again(r), r.settings) << text;
    EXPECT_EQ(resolve(read_text(to_toml(r), "saved.toml"), 64).settings, r.settings) << text;
  }
  for (const NamedSize& size : test_catalog().sizes) {
    const Resolved r = resolved("", {"model.name=" + std::string(size.name)});
    EXPECT_EQ(again(r), r.settings) << size.name;
  }
}

TEST(ResolvedFile, EveryKeyWithItsOrigin) {
  const Resolved r = resolved("[model]\nname = \"gpt2\"\n[train]\nsteps = 7\n", {"train.seed=3"});
  const std::string file = to_toml(r);
  const auto line_of = [&](std::string_view key) {
    const size_t at = file.find("\n" + std::string(key) + " = ") + 1;
    return file.substr(at, file.find('\n', at) - at);
  };
  EXPECT_EQ(line_of("layers"), "layers = 12                                   # size gpt2");
  EXPECT_EQ(line_of("steps"), "steps = 7                                     # run.toml:4");
  EXPECT_EQ(line_of("seed"), "seed = 3                                      # --set");
  EXPECT_EQ(line_of("clip"), "clip = 1.0                                    # default");
  EXPECT_EQ(line_of("decay_steps"), "decay_steps = 7                               # derived: steps");
  for (const Key& key : keys())
    EXPECT_NE(file.find("\n" + std::string(key.name) + " = "), std::string::npos) << key.name;
}

TEST(ResolvedFile, AnOriginStaysInItsComment) {
  const Resolved r = resolve(read_text("[train]\nsteps = 7\n", "a\nseed = 99\n.toml"), 1);
  EXPECT_EQ(again(r), r.settings);
  EXPECT_NE(to_toml(r).find("# a\\nseed = 99\\n.toml:2\n"), std::string::npos);
}

TEST(ResolvedFile, LoadsWhatWasSaved) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("kintsugi_saved_" + std::to_string(::getpid()) + ".toml");
  const Resolved r = resolved("[model]\nname = \"llama2-7b\"\n[parallel]\nthreads = 3\n");
  base::write_file_atomically(path, to_toml(r));
  EXPECT_EQ(load_saved(path, test_catalog()).settings, r.settings);
  // A configuration of a newer version, and one of a version with fewer keys.
  base::write_file_atomically(path, "[train]\nglobal_batch = 2\nsteps = 5\nwarmup_steps = 7\n[parallel]\nranks = 4\n");
  EXPECT_EQ(load_saved(path, test_catalog()).settings.parallel.ranks, 4);
  EXPECT_EQ(load_saved(path, test_catalog()).settings.train.micro_batch, 1);
  EXPECT_EQ(load_saved(path, test_catalog()).settings.train.decay_steps, 5);
  std::filesystem::remove(path);
}

TEST(Resume, SameIsSame) {
  const Resolved r = resolved("[model]\nname = \"gpt2\"\n");
  EXPECT_TRUE(compare_for_resume(r, r).empty());
  EXPECT_EQ(resume_with(r, r).settings, r.settings);
}

TEST(Resume, MayChange) {
  const Resolved saved = resolved("[data]\ntrain = \"x\"\nvalidation = \"y\"\n");
  const Resolved now =
      resolved("[data]\ntrain = \"x\"\nvalidation = \"y\"\n",
               {"train.steps=2000", "train.evaluate_every=3", "train.evaluate_batches=4", "train.stop_after_minutes=5",
                "train.folder=moved", "train.micro_batch=2", "parallel.device=reference", "parallel.threads=7",
                "checkpoint.every=6", "checkpoint.keep=9"});
  EXPECT_TRUE(compare_for_resume(saved, now).empty());
  const Resolved merged = resume_with(saved, now);
  EXPECT_EQ(merged.settings.train.steps, 2000);
  EXPECT_EQ(merged.settings.train.decay_steps, 1000);  // derived then and now: the course stays
  EXPECT_EQ(merged.origin("train.decay_steps").text(), "saved in the run");
  EXPECT_EQ(resume_with(saved, resolved("[data]\ntrain = \"x\"\nvalidation = \"y\"\n",
                                        {"train.steps=2000", "train.decay_steps=1500"}))
                .settings.train.decay_steps,
            1500);
}

// A derived warm-up stays when the run gets more steps; a given one must not change.
TEST(Resume, TheWarmUpStays) {
  const Resolved saved = resolved("");
  const Resolved merged = resume_with(saved, resolved("", {"train.steps=5000"}));
  EXPECT_EQ(merged.settings.train.warmup_steps, 10);
  EXPECT_EQ(merged.origin("train.warmup_steps").text(), "saved in the run");
  EXPECT_EQ(resume_with(saved, resolved("", {"train.warmup_steps=10"})).settings.train.warmup_steps, 10);
}

TEST(Resume, AgainAndAgain) {
  // A warm-up longer than the first part of the run: each part saves its configuration, which the next reads.
  Resolved saved = resolved("[train]\nwarmup_steps = 20\n", {"train.steps=10"});
  for (const char* steps : {"train.steps=30", "train.steps=60"}) {
    const Resolved now = resume_with(saved, resolved("[train]\nwarmup_steps = 20\n", {steps}));
    EXPECT_EQ(now.settings.train.decay_steps, 10);
    saved = Resolved{fill_derived(read_text(to_toml(now), "saved.toml"), 1), {}};
    EXPECT_EQ(saved.settings, now.settings);
  }
}

TEST(Resume, MayNotChange) {
  const Resolved saved = resolved("");
  const auto changed = [&](std::string set) { return compare_for_resume(saved, resolved("", {std::move(set)})); };
  EXPECT_EQ(changed("model.layers=5"), Words{"model.layers"});
  EXPECT_EQ(changed("model.dropout=0.1"), Words{"model.dropout"});
  EXPECT_EQ(changed("data.train={x = 1, y = 2}"), Words{"data.train"});
  EXPECT_EQ(changed("data.reset_at_document=true"), Words{"data.reset_at_document"});
  EXPECT_EQ(changed("train.seed=2"), Words{"train.seed"});
  EXPECT_EQ(changed("train.global_batch=16"), Words{"train.global_batch"});
  EXPECT_EQ(changed("train.sequence=128"), (Words{"model.context", "train.sequence"}));
  EXPECT_EQ(changed("train.dtype=bf16"), Words{"train.dtype"});
  EXPECT_EQ(changed("train.optimizer=sgd"), Words{"train.optimizer"});
  EXPECT_EQ(changed("train.betas=0.9,0.99"), Words{"train.betas"});
  EXPECT_EQ(changed("train.learning_rate=0.1"), Words{});
  EXPECT_EQ(changed("train.warmup_steps=1"), Words{"train.warmup_steps"});
  EXPECT_EQ(changed("train.decay=linear"), Words{"train.decay"});
  EXPECT_EQ(changed("train.clip=0"), Words{"train.clip"});
  EXPECT_EQ(changed("train.init_from=elsewhere"), Words{"train.init_from"});
  EXPECT_EQ(error_of([&] {
              resume_with(saved, resolved("", {"train.seed=2", "model.layers=5"}));
            }),
            "[resume] --set: model.layers is 5, was 4; train.seed is 2, was 1; a resumed run keeps these settings: set "
            "them back, or train in another folder");
  EXPECT_EQ(error_of([&] {
              resume_with(saved, resolved("", {"train.seed=2", "model.layers=5", "model.embed=64", "train.clip=0",
                                               "data.train={x = 2}", "train.dtype=bf16"}));
            }),
            "[resume] --set: model.layers is 5, was 4; model.embed is 64, was 128; model.head_dim is 16, was 32; "
            "model.ffn is "
            "256, was 512; and 4 more; a resumed run keeps these settings: set them back, or train in another folder");
}

// Data may be moved (contents are compared when opened), but not added, removed or weighted differently.
TEST(Resume, DataMayMove) {
  const Resolved saved =
      resolved("[data.train]\n\"a\" = 1\n\"b\" = 3\n[data.validation]\nfirst = \"x\"\nnext = \"y\"\n");
  const auto changed = [&](const std::string& train, const std::string& validation) {
    return compare_for_resume(saved, resolved("", {"data.train=" + train, "data.validation=" + validation}));
  };
  EXPECT_EQ(changed("{c = 1, d = 3}", "{first = \"z\", next = \"y\"}"), Words{});
  EXPECT_EQ(
      resume_with(saved, resolved("", {"data.train={c = 1, d = 3}", "data.validation={first = \"z\", next = \"y\"}"}))
          .settings.data.train[1]
          .path,
      "d");
  EXPECT_EQ(changed("{c = 2, d = 3}", "{first = \"x\", next = \"y\"}"), Words{"data.train"});
  EXPECT_EQ(changed("a", "{first = \"x\", next = \"y\"}"), Words{"data.train"});
  EXPECT_EQ(changed("{a = 1, b = 3}", "{first = \"x\", other = \"y\"}"), Words{"data.validation"});
  EXPECT_EQ(changed("{a = 1, b = 3}", "x"), Words{"data.validation"});
  const Resolved labels = resolved("", {"data.train_labels=labels.csv"});
  EXPECT_EQ(compare_for_resume(labels, resolved("", {"data.train_labels=moved.csv"})), Words{});
  EXPECT_EQ(compare_for_resume(labels, resolved("")), Words{"data.train_labels"});
}

// Checkpoints contain no gradients.
TEST(Resume, GradientsMayAddUpInAnotherType) {
  const Resolved saved = resolved("[train]\ndtype = \"bf16\"\n");
  EXPECT_EQ(compare_for_resume(saved, resolved("", {"train.dtype=bf16", "train.gradient_dtype=bf16"})), Words{});
}

TEST(Resume, TheVocabularyMayComeLater) {
  Resolved saved = resolved("");
  fill_from_tokenizer(saved, 65);
  EXPECT_TRUE(compare_for_resume(saved, resolved("")).empty());
  EXPECT_EQ(resume_with(saved, resolved("")).settings.model.vocab, 65);
  EXPECT_EQ(compare_for_resume(saved, resolved("[model]\nvocab = 70\n")), Words{"model.vocab"});
}

}  // namespace kintsugi::config::resume_test
