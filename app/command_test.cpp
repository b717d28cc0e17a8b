#include "app/command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <new>
#include <sstream>

#include "app/run_options.h"
#include "app/verbs.h"
#include "app/version.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::app::command_test {
namespace {

// A verb that fails in the way named by its argument.
void add_fail(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("fail", "Fails");
  auto how = std::make_shared<std::string>();
  auto number = std::make_shared<int>(0);
  verb.text("how", *how, "How").required();
  verb.integer("--number", *number, {0, 9}, "A number");
  verb.run([how, number] {
    if (*how == "user") throw base::UserError("place", "bad\nthing");
    if (*how == "internal") throw base::InternalError("place", "lost");
    if (*how == "memory") throw std::bad_alloc();
    if (*how == "logic") throw std::out_of_range("vector");
    if (*how == "system") throw std::system_error(std::make_error_code(std::errc::too_many_files_open), "thread");
    if (*how == "file")
      throw std::filesystem::filesystem_error("no", "/nowhere/at all",
                                              std::make_error_code(std::errc::no_such_file_or_directory));
  });
}

// A verb that stores its options.
std::shared_ptr<RunOptions> run_options;
void add_options(Command& kintsugi) {
  run_options = add_run_options(kintsugi.add_verb("options", "Keeps them"));
}

struct Result {
  int code;
  std::string out, err;
};

Result run(std::vector<std::string> args) {
  constexpr std::array<AddVerb, 3> kVerbs = {add_check, add_fail, add_options};
  Command command(kVerbs);
  std::ostringstream out, err;
  const int code = command.run(args, out, err);
  return {code, out.str(), err.str()};
}

void expect_error(std::vector<std::string> args, int code, std::string_view text) {
  const Result result = run(std::move(args));
  EXPECT_EQ(result.code, code);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "error: " + std::string(text) + "\n");
}

}  // namespace

TEST(Command, Errors) {
  EXPECT_EQ(run({"fail", "not"}).code, 0);
  expect_error({"fail", "user"}, 1, "[place] bad\\nthing");
  expect_error({"fail", "internal"}, 2, "[place] internal error: lost; this is a bug in Kintsugi");
  expect_error({"fail", "memory"}, 1,
               "[memory] the system has no more memory; a smaller model, micro_batch or sequence needs less");
  expect_error({"fail", "logic"}, 2, "vector; this is a bug in Kintsugi");
  expect_error({"fail", "system"}, 1, "[system] thread: Too many open files");
  expect_error({"fail", "file"}, 1, "[file] \"/nowhere/at all\": No such file or directory");
}

TEST(Command, Usage) {
  expect_error({"chekc"}, 1, "[kintsugi] unknown verb \"chekc\"; did you mean \"check\"?");
  expect_error({"frobnicate", "run.toml", "--set", "a"}, 1,
               "[kintsugi] unknown verb \"frobnicate\"; there are check, fail, options");
  expect_error({"--verison"}, 1, "[kintsugi] unknown option \"--verison\"; did you mean \"--version\"?");
  expect_error({"fail", "not", "--nubmer=3"}, 1,
               "[kintsugi fail] unknown option \"--nubmer\"; did you mean \"--number\"?");
  expect_error({"fail", "not", "--quietly"}, 1,
               "[kintsugi fail] unknown option \"--quietly\"; see kintsugi fail --help");
  expect_error({"fail", "not", "more"}, 1,
               "[kintsugi fail] \"more\" is an unexpected argument; see kintsugi fail --help");
  expect_error({"fail", "not", "check"}, 1,
               "[kintsugi fail] \"check\" is an unexpected argument; see kintsugi fail --help");
  expect_error({"fail"}, 1, "[kintsugi fail] how is required; see kintsugi fail --help");
  const std::string missing = run({"fail", "not", "--number"}).err;  // in the library's words
  EXPECT_TRUE(missing.starts_with("error: [kintsugi fail] --number")) << missing;
  EXPECT_TRUE(missing.ends_with("; see kintsugi fail --help\n")) << missing;
}

TEST(Command, Pages) {
  const Result help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("\n  kintsugi train run.toml\n"), std::string::npos) << help.out;
  EXPECT_NE(help.out.find("\nVerbs:\n  check "), std::string::npos) << help.out;
  EXPECT_EQ(run({}).out, help.out);
  const Result verb = run({"check", "--help"});
  EXPECT_EQ(verb.code, 0);
  EXPECT_NE(verb.out.find("--keys"), std::string::npos) << verb.out;
  EXPECT_LT(std::ranges::count(verb.out, '\n'), 30) << verb.out;
  EXPECT_EQ(run({"help", "check"}).out, verb.out);
  EXPECT_EQ(run({"help"}).out, help.out);
  expect_error({"help", "chekc"}, 1, "[kintsugi] unknown verb \"chekc\"; did you mean \"check\"?");
  const Result version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, version_text() + "\n");
}

// All keys, those of a section, and one; every line fits the page.
TEST(Command, Keys) {
  const Result all = run({"check", "--keys"});
  EXPECT_EQ(all.code, 0) << all.err;
  for (const config::Key& key : config::keys())
    EXPECT_NE(all.out.find("\n  " + std::string(key.name) + " "), std::string::npos) << key.name;
  const Result model = run({"check", "run.toml", "--keys", "model"});
  EXPECT_NE(model.out.find("\n  layers "), std::string::npos);
  EXPECT_NE(model.out.find("\n  llama "), std::string::npos) << "a family";
  EXPECT_NE(model.out.find(" gpt2-xl"), std::string::npos) << "a named size";
  EXPECT_EQ(model.out.find("learning_rate"), std::string::npos);
  const std::string one = run({"check", "--keys", "train.warmup_steps"}).out;
  EXPECT_EQ(one,
            "train.warmup_steps\n"
            "  what it is            steps of linear warm-up from 0\n"
            "  allowed               an integer from 0 to 1,000,000,000,000\n"
            "  default               a hundredth of steps, or of decay_steps if that is\n"
            "                        smaller\n"
            "  in a resumed run      is kept, and may not change\n"
            "  called elsewhere      warmup_iters lr_warmup_iters num_warmup_steps warmup\n"
            "  in run.toml           [train] warmup_steps = ...\n"
            "  on the command line   --set train.warmup_steps=...\n"
            "  more                  docs/configuration.md\n\n");
  EXPECT_EQ(run({"check", "--keys=warmup_steps"}).out, one);
  for (const std::string& page : {all.out, model.out, run({"check", "--keys", "train"}).out,
                                  run({"check", "--keys", "parallel"}).out, run({"check", "--help"}).out}) {
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
  expect_error({"check", "--keys", "warmup"}, 1,
               "[keys] \"warmup\" is neither a section of run.toml nor a key; did you mean train.warmup_steps?");
  expect_error({"check", "--keys", "train.lr"}, 1,
               "[keys] \"train.lr\" is neither a section of run.toml nor a key; did you mean train.learning_rate?");
  expect_error({"check", "--keys", "qqqqqqqq"}, 1,
               "[keys] \"qqqqqqqq\" is neither a section of run.toml nor a key; `--keys` alone lists all");
}

TEST(Version, TellsAll) {
  const std::string text = version_text();
  for (const char* word : {"kintsugi 0.", "\nbuild: ", "\nfeatures: ", "mpi: ", "cuda: ", "\nlibraries: oneDNN ",
                           "CLI11 ", "toml++ ", "\nprocessor: ", "\nunits: "})
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  EXPECT_EQ(text.find(" ,"), std::string::npos) << "a library without a version: " << text;
}

TEST(RunOptions, FileAndSetsInAnyOrder) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("kintsugi_run_" + std::to_string(::getpid()) + ".toml");
  base::write_file_atomically(path, "[train]\nsteps = 3\n");
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{path, "--set", "train.seed=5", "model.layers=2"},
                                             {path, "--set", "train.seed=5", "--set", "model.layers=2"},
                                             {"--set", "train.seed=5", "model.layers=2", path},
                                             {"--set", "train.seed=5", "--set", "model.layers=2", path}}) {
    std::vector<std::string> words = {"options"};
    words.insert(words.end(), args.begin(), args.end());
    EXPECT_EQ(run(words).code, 0);
    ASSERT_TRUE(run_options);
    EXPECT_EQ(run_options->path, path);
    const config::Resolved resolved = read_run(*run_options);
    EXPECT_EQ(resolved.settings.train.steps, 3);
    EXPECT_EQ(resolved.settings.train.seed, 5u);
    EXPECT_EQ(resolved.settings.model.layers, 2);
    EXPECT_GE(resolved.settings.parallel.threads, 1);
  }
  std::filesystem::remove(path);
}

TEST(RunOptions, Errors) {
  expect_error({"check"}, 1, "[kintsugi] no configuration given, and no run.toml in the working directory");
  expect_error({"check", "/nowhere.toml"}, 1, "[file] cannot open \"/nowhere.toml\": No such file or directory");
  expect_error({"check", "/dev/null", "--set", "train.stpes=3"}, 1,
               "[config] --set: unknown key train.stpes; did you mean steps?");
  expect_error({"check", "/dev/null", "--set", "train.steps"}, 1,
               "[config] --set: \"train.steps\" has no value; write --set section.key=value");
}

}  // namespace kintsugi::app::command_test
