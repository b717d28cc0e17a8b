
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kintsugi/config/testing.h"

namespace kintsugi::config::read_test {
namespace {

using Sets = std::vector<std::string>;

std::string error_in(std::string_view text) {
  return error_of([&] { read_text(text, "run.toml"); });
}

std::string error_set(const std::string& set) {
  return error_of([&] { read_text("", "run.toml", Sets{set}); });
}

}  // namespace

TEST(Read, EveryType) {
  const Given given = read_text(
      "[model]\nlayers = 6\nbias = false\nfamily = \"llama\"\n"
      "[data]\ntrain = \"corpus/text\"\nreset_at_document = true\n"
      "[train]\nlearning_rate = 3e-4\nweight_decay = 1\nbetas = [0.9, 0]\nseed = 9223372036854775807\n",
      "run.toml");
  const Settings& s = given.settings;
  EXPECT_EQ(s.model.layers, 6);
  EXPECT_FALSE(s.model.bias);
  EXPECT_EQ(s.model.family, "llama");
  EXPECT_EQ(s.data.train, (std::vector<DataSource>{{"corpus/text", 1.0}}));
  EXPECT_TRUE(s.data.reset_at_document);
  EXPECT_EQ(s.train.learning_rate, 3e-4);
  EXPECT_EQ(s.train.weight_decay, 1.0);
  EXPECT_EQ(s.train.betas, (std::vector<double>{0.9, 0.0}));
  EXPECT_EQ(s.train.seed, 9223372036854775807u);
  EXPECT_EQ(given.origin("model.layers").text(), "run.toml:2");
  EXPECT_EQ(given.origin("train.seed").text(), "run.toml:12");
  EXPECT_EQ(given.origin("train.steps").text(), "default");
}

TEST(Read, AKeyByTheNameThatItHadOnce) {
  const Given given = read_text("[train]\nkernels = \"reference\"\n", "run.toml");
  EXPECT_EQ(given.settings.parallel.device, "reference");
  EXPECT_EQ(given.warnings, (std::vector<std::string>{"run.toml:2: train.kernels is called parallel.device now"}));
  EXPECT_EQ(read_text("", "run.toml", Sets{"train.kernels=cpu"}).warnings,
            (std::vector<std::string>{"--set: train.kernels is called parallel.device now"}));
  EXPECT_TRUE(read_text("", "run.toml", Sets{"parallel.device=cpu"}).warnings.empty());
  for (const std::string text : {"[parallel]\ndevice = \"cpu\"\n[train]\nkernels = \"reference\"\n",
                                 "[train]\nkernels = \"reference\"\n[parallel]\ndevice = \"cpu\"\n"}) {
    const std::string error = error_in(text);
    EXPECT_NE(error.find("train.kernels is called parallel.device now, which is given too (run.toml:"), error.npos)
        << error;
  }
  EXPECT_EQ(
      read_text("[parallel]\ndevice = \"cpu\"\n", "run.toml", Sets{"train.kernels=reference"}).settings.parallel.device,
      "reference");
}

TEST(Read, NothingIsTheDefaults) {
  EXPECT_EQ(read_text("", "run.toml").settings, Settings{});
  EXPECT_EQ(read_text("\n# only a remark\n\r\n[model]\n", "run.toml").settings, Settings{});
}

TEST(Read, DottedAndInlineForms) {
  const Given given = read_text("train.steps = 5\nmodel = {layers = 2, embed = 8}\n", "run.toml");
  EXPECT_EQ(given.settings.train.steps, 5);
  EXPECT_EQ(given.settings.model.layers, 2);
  EXPECT_EQ(given.settings.model.embed, 8);
  EXPECT_EQ(given.origin("train.steps").text(), "run.toml:1");
  EXPECT_EQ(given.origin("model.embed").text(), "run.toml:2");
}

TEST(Read, Mixtures) {
  const auto sources = [](std::string_view text) { return read_text(text, "run.toml").settings.data.train; };
  const std::vector<DataSource> two = {{"b/x.y", 0.7}, {"a", 0.3}};  // in the order of the text
  EXPECT_EQ(sources("[data.train]\n\"b/x.y\" = 0.7\na = 0.3\n"), two);
  EXPECT_EQ(sources("[data]\ntrain = {\"b/x.y\" = 0.7, a = 0.3}\n"), two);
  EXPECT_EQ(sources("[[data.train]]\npath = \"b/x.y\"\nweight = 0.7\n[[data.train]]\nweight = 0.3\npath = \"a\"\n"),
            two);
  EXPECT_EQ(sources("[data]\ntrain = [{\"b/x.y\" = 0.7}, {a = 0.3}]\n"), two);
  EXPECT_EQ(sources("[data]\ntrain = [\"b\", \"a\"]\n"), (std::vector<DataSource>{{"b", 1.0}, {"a", 1.0}}));
  EXPECT_EQ(sources("[data.train]\npath = 2\n"), (std::vector<DataSource>{{"path", 2.0}}));
  EXPECT_TRUE(sources("[data]\ntrain = \"\"\n").empty());
}

TEST(Read, Domains) {
  using Files = std::vector<ValidationFile>;
  const auto files = [](std::string_view text) { return read_text(text, "run.toml").settings.data.validation; };
  EXPECT_EQ(files("[data]\nvalidation = \"a/b\"\n"), (Files{{"", "a/b"}}));
  EXPECT_EQ(files("[data]\nvalidation = \"\"\n"), Files{});
  const Files two = {{"wiki", "b/x.y"}, {"code-2", "a"}};  // in the order of the text
  EXPECT_EQ(files("[data]\nvalidation = {wiki = \"b/x.y\", code-2 = \"a\"}\n"), two);
  EXPECT_EQ(files("[data.validation]\nwiki = \"b/x.y\"\ncode-2 = \"a\"\n"), two);
  const Given set = read_text("", "run.toml", Sets{"data.validation={wiki = \"b/x.y\", code-2 = \"a\"}"});
  EXPECT_EQ(set.settings.data.validation, two);
  EXPECT_EQ(to_toml(Value(two)), "{wiki = \"b/x.y\", code-2 = \"a\"}");
  EXPECT_EQ(to_toml(Value(Files{{"", "a"}})), "\"a\"");
  EXPECT_EQ(to_toml(Value(Files{})), "\"\"");
  EXPECT_EQ(to_toml(std::string_view("a \"b\"\n\t\\c")), "\"a \\\"b\\\"\\n\\u0009\\\\c\"");
  EXPECT_EQ(
      error_in("[data]\nvalidation = {\"a b\" = \"x\"}\n"),
      "[config] run.toml:2: data.validation: the name of the domain \"a b\" must be 1 to 40 letters, digits, _ and "
      "-");
  EXPECT_EQ(error_in("[data]\nvalidation = {a = 0.5}\n"),
            "[config] run.toml:2: data.validation: the domain \"a\" is 0.5; it must be the path of a token file, in "
            "quotes");
  EXPECT_EQ(error_in("[data]\nvalidation = {a = \"\"}\n"),
            "[config] run.toml:2: data.validation: the domain \"a\" has an empty path");
  EXPECT_EQ(
      error_in("[data]\nvalidation = 3\n"),
      "[config] run.toml:2: data.validation = 3 is an integer; it must be a path, or a table of domain = path, in "
      "quotes");
}

TEST(Read, Precedence) {
  const std::string text = "[model]\nname = \"gpt2\"\nlayers = 3\nheads = 6\n";
  const Given given = read_text(text, "run.toml", Sets{"model.heads=8", "model.heads=4"});
  EXPECT_EQ(given.settings.model.embed, 768);  // of the size
  EXPECT_EQ(given.settings.model.layers, 3);   // of the file
  EXPECT_EQ(given.settings.model.heads, 4);    // of the last --set
  EXPECT_EQ(given.settings.model.dropout, 0.0);
  EXPECT_EQ(given.origin("model.embed").text(), "size gpt2");
  EXPECT_EQ(given.origin("model.layers").text(), "run.toml:3");
  EXPECT_EQ(given.origin("model.heads").text(), "--set");
  EXPECT_EQ(given.origin("model.dropout").text(), "default");
  // A name given by --set has lower precedence than individual sizes, even those in the file.
  const Given other = read_text(text, "run.toml", Sets{"model.name=gpt2-medium"});
  EXPECT_EQ(other.settings.model.embed, 1024);
  EXPECT_EQ(other.settings.model.layers, 3);
  EXPECT_EQ(read_text(text, "run.toml", Sets{"model.name="}).settings.model.embed, Model{}.embed);
}

TEST(Read, Sets) {
  const auto with = [](std::string set) { return read_text("", "run.toml", Sets{std::move(set)}).settings; };
  EXPECT_EQ(with("train.steps=12").train.steps, 12);
  EXPECT_EQ(with(" train.steps = 12 ").train.steps, 12);
  EXPECT_EQ(with("train.steps=1_000").train.steps, 1000);
  EXPECT_EQ(with("train.dtype=bf16").train.dtype, "bf16");
  EXPECT_EQ(with("train.dtype=\"bf16\"").train.dtype, "bf16");
  EXPECT_EQ(with("train.folder=2024").train.folder, "2024");  // a text, although TOML reads a number
  EXPECT_EQ(with("train.folder=a=b #c").train.folder, "a=b #c");
  EXPECT_EQ(with("train.folder=\"a").train.folder, "\"a");
  EXPECT_EQ(with("train.betas=0.8,0.9").train.betas, (std::vector<double>{0.8, 0.9}));
  EXPECT_EQ(with("train.betas=[0.8, 0.9]").train.betas, (std::vector<double>{0.8, 0.9}));
  EXPECT_EQ(with("model.tied=false").model.tied, false);
  EXPECT_EQ(with("data.train=a/b").data.train, (std::vector<DataSource>{{"a/b", 1.0}}));
  EXPECT_EQ(with("data.train={\"a/b\" = 2, c = 1}").data.train, (std::vector<DataSource>{{"a/b", 2.0}, {"c", 1.0}}));
}

TEST(Read, UnknownKeys) {
  EXPECT_EQ(error_in("[model]\nlayers = 2\n\n[train]\nsteps = 3\n\nleraning_rate = 1\n"),
            "[config] run.toml:7: unknown key train.leraning_rate; did you mean learning_rate?");
  EXPECT_EQ(error_in("[train]\nlayers = 2\n"),
            "[config] run.toml:2: unknown key train.layers; did you mean model.layers?");
  EXPECT_EQ(error_in("[train]\nbatch_size = 2\n"),
            "[config] run.toml:2: unknown key train.batch_size; did you mean global_batch?");
  EXPECT_EQ(error_in("[train]\nepochs = 3\n"), "[config] run.toml:2: unknown key train.epochs; did you mean steps?");
  EXPECT_EQ(error_in("[train]\nLearning-Rate = 2\n"),
            "[config] run.toml:2: unknown key train.Learning-Rate; did you mean learning_rate?");
  EXPECT_EQ(
      error_in("[checkpoint]\nfrequency_of_them = 2\n"),
      "[config] run.toml:2: unknown key checkpoint.frequency_of_them; [checkpoint] has every, every_minutes, keep, "
      "local, neighbour, drain_megabytes");
  EXPECT_EQ(error_in("[model]\n\"a\\nb\" = 2\n"),
            "[config] run.toml:2: unknown key model.a\\nb; [model] has family, name, layers, embed, heads, kv_heads, "
            "head_dim, ffn, vocab, context, dropout, features, outputs, image_channels, image_height, image_width, "
            "image_depth, image_dtype, image_mean, image_deviation, drop_path, batch_norm, batch_norm_samples, and 64 "
            "that --keys lists");
  EXPECT_EQ(
      error_in("[model.attention]\nheads = 2\n"),
      "[config] run.toml:1: unknown key model.attention; [model] has family, name, layers, embed, heads, kv_heads, "
      "head_dim, ffn, vocab, context, dropout, features, outputs, image_channels, image_height, image_width, "
      "image_depth, image_dtype, image_mean, image_deviation, drop_path, batch_norm, batch_norm_samples, and 64 "
      "that --keys lists");
}

TEST(Read, UnknownSections) {
  EXPECT_EQ(error_in("[trian]\nsteps = 2\n"), "[config] run.toml:1: unknown section [trian]; did you mean [train]?");
  EXPECT_EQ(error_in("[logging]\n"),
            "[config] run.toml:1: unknown section [logging]; there are [model], [data], [train], [lora], [dpo], "
            "[grpo], [parallel], "
            "[checkpoint], [launch], [evaluate]");
  EXPECT_EQ(error_in("layers = 3\n"),
            "[config] run.toml:1: key layers comes before any section; did you mean model.layers?");
  EXPECT_EQ(error_in("shoe = 3\n"),
            "[config] run.toml:1: key shoe comes before any section; there are [model], [data], [train], [lora], "
            "[dpo], [grpo], [parallel], "
            "[checkpoint], [launch], [evaluate]");
  EXPECT_EQ(error_in("model = 3\n"), "[config] run.toml:1: model is an integer; it must be a section, written [model]");
  EXPECT_EQ(error_in("[[model]]\nlayers = 2\n"),
            "[config] run.toml:1: model is a list; it must be a section, written [model]");
}

TEST(Read, TheFirstErrorIsTold) {
  EXPECT_EQ(error_in("[train]\nzzz = 1\n[model]\naaa = 2\n").substr(0, 40), "[config] run.toml:2: unknown key train.z");
  EXPECT_EQ(error_in("[train]\nsteps = 0\naaa = 2\n").substr(0, 35), "[config] run.toml:2: train.steps = ");
}

TEST(Read, WrongTypes) {
  EXPECT_EQ(error_in("[model]\nlayers = \"six\"\n"),
            "[config] run.toml:2: model.layers = \"six\" is a text; it must be an integer from 1 to 10,000");
  EXPECT_EQ(
      error_in("[model]\nlayers = 2.5\n"),
      "[config] run.toml:2: model.layers = 2.5 is a floating-point number; it must be an integer from 1 to 10,000");
  EXPECT_EQ(
      error_in("[model]\nlayers = 1e2\n"),
      "[config] run.toml:2: model.layers = 100.0 is a number with a point or exponent; it must be an integer from 1 "
      "to 10,000; write 100");
  EXPECT_EQ(
      error_in("[model]\nlayers = nan\n"),
      "[config] run.toml:2: model.layers = nan is a floating-point number; it must be an integer from 1 to 10,000");
  EXPECT_EQ(error_in("[model]\nlayers = [1, 2]\n"),
            "[config] run.toml:2: model.layers is a list; it must be an integer from 1 to 10,000");
  EXPECT_EQ(error_in("[model]\nlayers = 2024-01-01\n"),
            "[config] run.toml:2: model.layers is a date or time; it must be an integer from 1 to 10,000");
  EXPECT_EQ(error_in("[model]\nbias = 1\n"),
            "[config] run.toml:2: model.bias = 1 is an integer; it must be true or false");
  EXPECT_EQ(error_in("[model]\nbias = \"true\"\n"),
            "[config] run.toml:2: model.bias = \"true\" is a text; it must be true or false, without quotes");
  EXPECT_EQ(error_in("[train]\nlearning_rate = true\n"),
            "[config] run.toml:2: train.learning_rate = true is a truth value; it must be a number above 0");
  EXPECT_EQ(error_in("[train]\nfolder = 7\n"),
            "[config] run.toml:2: train.folder = 7 is an integer; it must be a path, in quotes");
  EXPECT_EQ(error_in("[train]\ndtype = 32\n"),
            "[config] run.toml:2: train.dtype = 32 is an integer; it must be one of fp32, bf16, fp16, fp64, in quotes");
  EXPECT_EQ(
      error_in("[train]\nbetas = 0.9\n"),
      "[config] run.toml:2: train.betas = 0.9 is a floating-point number; it must be a list of 2 numbers, each from "
      "0 to below 1");
}

TEST(Read, EmptyTexts) {
  EXPECT_EQ(error_in("[train]\nfolder = \"\"\n"),
            "[config] run.toml:2: train.folder is empty; it must be a path, or be left out");
  EXPECT_EQ(error_in("[train]\ninit_from = \"\"\n"), "no error");  // it is so by default
}

TEST(Read, OutOfRange) {
  EXPECT_EQ(error_in("[model]\nlayers = 0\n"),
            "[config] run.toml:2: model.layers = 0 is out of range; it must be an integer from 1 to 10,000");
  EXPECT_EQ(error_in("[model]\ndropout = 1\n"),
            "[config] run.toml:2: model.dropout = 1 is out of range; it must be a number from 0 to below 1");
  EXPECT_EQ(error_in("[train]\nlearning_rate = 0.0\n"),
            "[config] run.toml:2: train.learning_rate = 0 is out of range; it must be a number above 0");
  EXPECT_EQ(error_in("[train]\nlearning_rate = inf\n"),
            "[config] run.toml:2: train.learning_rate = inf is out of range; it must be a number above 0");
  EXPECT_EQ(error_in("[train]\nclip = -0.5\n"),
            "[config] run.toml:2: train.clip = -0.5 is out of range; it must be a number of at least 0");
  EXPECT_EQ(error_in("[train]\nseed = -1\n"),
            "[config] run.toml:2: train.seed = -1 is out of range; it must be an integer from 0 to "
            "9,223,372,036,854,775,807");
  EXPECT_EQ(error_in("[train]\nbetas = [0.9]\n"),
            "[config] run.toml:2: train.betas has 1 item; it must be a list of 2 numbers, each from 0 to below 1");
  EXPECT_EQ(error_in("[train]\nbetas = [0.9, 1.0]\n"),
            "[config] run.toml:2: train.betas[1] = 1 is out of range; it must be a number from 0 to below 1");
  EXPECT_EQ(error_in("[train]\nbetas = [0.9, \"x\"]\n"),
            "[config] run.toml:2: train.betas[1] = \"x\" is a text; it must be a number from 0 to below 1");
}

TEST(Read, MoreThan64Bits) {
  const std::string digits = "99999999999999999999";
  EXPECT_EQ(error_set("train.steps=" + digits),
            "[config] --set: train.steps = " + digits +
                " is out of range; it must be an integer from 1 to 1,000,000,000,000");
  EXPECT_EQ(error_set("train.clip=1e400"),
            "[config] --set: train.clip = 1e400 is a number of more than 64 bits; it must be a number of at least 0");
  EXPECT_EQ(error_set("train.betas=" + digits + ",1"),
            "[config] --set: train.betas = " + digits +
                ",1 is a number of more than 64 bits; it must be a list of 2 numbers, each from 0 to below 1");
  EXPECT_EQ(error_in("[train]\nsteps = " + digits),
            "[config] run.toml:2: `steps = " + digits +
                "` has a number of more than 64 bits: integers end at 9223372036854775807, others at 1.8e+308");
  EXPECT_EQ(error_in("[train]\nclip = 1e400"),
            "[config] run.toml:2: `clip = 1e400` has a number of more than 64 bits: integers end at "
            "9223372036854775807, others at 1.8e+308");
}

TEST(Read, Words) {
  EXPECT_EQ(
      error_in("[train]\ndtype = \"FP-16\"\n"),
      "[config] run.toml:2: train.dtype = \"FP-16\" is not one of fp32, bf16, fp16, fp64; did you mean \"fp16\"?");
  EXPECT_EQ(error_in("[train]\noptimizer = \"lion\"\n"),
            "[config] run.toml:2: train.optimizer = \"lion\" is not an optimizer; there are adamw, sgd");
  EXPECT_EQ(error_in("[model]\nname = \"gpt-2\"\n"),
            "[config] run.toml:2: model.name = \"gpt-2\" is not a named size; did you mean \"gpt2\"?");
  EXPECT_EQ(error_in("[model]\nname = \"bert-base-uncased\"\n"),
            fmt::format("[config] run.toml:2: model.name = \"bert-base-uncased\" is not a named size; there are {}",
                        "gpt2, gpt2-medium, llama2-7b"));
  EXPECT_EQ(
      error_in("[model]\nname = \"llama2-7b\"\nfamily = \"gpt\"\n"),
      "[config] run.toml:3: model.family = \"gpt\" is not that of model.name = \"llama2-7b\", which is \"llama\"; "
      "leave one out");
  EXPECT_TRUE(error_in("[model]\nfamily = \"\"\n")
                  .starts_with("[config] run.toml:2: model.family = \"\" is not a family of models; there are gpt, "));
}

TEST(Read, BadMixtures) {
  EXPECT_EQ(error_in("[data]\ntrain = 3\n"),
            "[config] run.toml:2: data.train = 3 is an integer; it must be a path, or a table of path = weight");
  EXPECT_EQ(error_in("[data.train]\na = 0\n"),
            "[config] run.toml:1: data.train: the weight of \"a\" is 0; it must be a number above 0");
  EXPECT_EQ(error_in("[data]\ntrain = {a = \"x\"}\n"),
            "[config] run.toml:2: data.train: the weight of \"a\" is \"x\"; it must be a number above 0");
  EXPECT_EQ(
      error_in("[data.train]\na.txt = 1\n"),
      "[config] run.toml:1: data.train: the weight of \"a\" is a table; it must be a number above 0 (a path with a "
      "point needs quotes)");
  EXPECT_EQ(error_in("[data]\ntrain = [\"a\", \"a\"]\n"),
            "[config] run.toml:2: data.train holds \"a\" twice; give it once, with its whole weight");
  EXPECT_EQ(error_in("[data]\ntrain = [\"a\", 2]\n"),
            "[config] run.toml:2: data.train holds 2; its items must be paths, or tables with path and weight");
  EXPECT_EQ(error_in("[data]\ntrain = [{path = \"a\", wieght = 2}]\n"),
            "[config] run.toml:2: data.train: unknown key \"wieght\" of a data source; there are path and weight");
  EXPECT_EQ(error_in("[data]\ntrain = [\"\"]\n"), "[config] run.toml:2: data.train holds an empty path");
  EXPECT_EQ(error_in("[data]\nvalidation = \"a\\u0000b\"\n"),
            "[config] run.toml:2: data.validation has a zero byte, which no path may have");
}

TEST(Read, NotToml) {
  EXPECT_EQ(
      error_in("[train]\n  dtype = bf16\n"),
      "[config] run.toml:2: `dtype = bf16` is not TOML: value: could not determine value type (column 11); a text "
      "needs quotes");
  EXPECT_EQ(error_in("[train]\nsteps 4\n"),
            "[config] run.toml:2: `steps 4` is not TOML: key-value pair: expected '=', saw '4' (column 7)");
  EXPECT_EQ(error_in("[train\n"),
            "[config] run.toml:1: `[train` is not TOML: table header: expected ']', saw '\\n' (column 7)");
  EXPECT_EQ(
      error_in("[train]\nsteps = 1\nsteps = 2\n"),
      "[config] run.toml:3: `steps = 2` is not TOML: key-value pair: cannot redefine existing integer 'steps' (column "
      "9)");
  // Characters that the library's assertions do not expect.
  EXPECT_EQ(
      error_in("[$]\n"),
      "[config] run.toml:1: `[$]` is not TOML: key: expected bare key starting character or string delimiter, saw '$' "
      "(column 2)");
  EXPECT_EQ(error_in("a\xff = 1\n"),
            "[config] run.toml:1: `a\\xff = 1` is not TOML: encountered invalid utf-8 sequence (column 1)");
}

TEST(Read, BadSets) {
  EXPECT_EQ(error_set("train.leraning_rate=1"),
            "[config] --set: unknown key train.leraning_rate; did you mean learning_rate?");
  EXPECT_EQ(error_set("trian.steps=1"), "[config] --set: unknown section [trian]; did you mean [train]?");
  EXPECT_EQ(error_set("train.steps"), "[config] --set: \"train.steps\" has no value; write --set section.key=value");
  EXPECT_EQ(error_set("steps=4"), "[config] --set: steps names no section; did you mean train.steps?");
  EXPECT_EQ(error_set("=4"), "[config] --set:  names no section; write --set section.key=value");
  EXPECT_EQ(error_set("train.steps="),
            "[config] --set: train.steps = \"\" is a text; it must be an integer from 1 to 1,000,000,000,000");
  EXPECT_EQ(error_set("train.steps=0"),
            "[config] --set: train.steps = 0 is out of range; it must be an integer from 1 to 1,000,000,000,000");
  EXPECT_EQ(
      error_set("train.steps=1\nseed = 2"),
      "[config] --set: train.steps = \"1\\nseed = 2\" is a text; it must be an integer from 1 to 1,000,000,000,000");
  EXPECT_EQ(error_set("train.folder=\xff"), "[config] --set: \"train.folder=\\xff\" is not UTF-8");
  EXPECT_EQ(error_set("train.dtype=bf"), "[config] --set: train.dtype = \"bf\" is not one of fp32, bf16, fp16, fp64");
}

TEST(Read, Files) {
  EXPECT_EQ(error_of([] { read_file("/nowhere/run.toml", test_catalog()); }),
            "[file] cannot open \"/nowhere/run.toml\": No such file or directory");
  EXPECT_EQ(error_of([] { read_file("/", test_catalog()); }), "[file] cannot read \"/\": Is a directory");
}

}  // namespace kintsugi::config::read_test
