// The verb `report` for trained runs, and their event files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "kintsugi/base/file.h"
#include "tests/markup.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/ranks_folder.h"

namespace kintsugi::tests::report_test {
namespace {

bool has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

// The records of an event file, by their lengths.
int64_t num_records(const fs::path& path) {
  const std::string file = base::read_file(path);
  int64_t records = 0;
  for (size_t at = 0; at < file.size(); ++records) {
    uint64_t length = 0;
    for (size_t i = 0; i < 8; ++i) length += uint64_t{static_cast<unsigned char>(file.at(at + i))} << (8 * i);
    at += 16 + length;
    EXPECT_LE(at, file.size());
  }
  return records;
}

class ReportVerb : public testing::Test, public RanksFolder {
 protected:
  // A run's folder as written by `train`, without training.
  void make_run(const std::string& name, const std::string& metrics) {
    const Ended check = run_kintsugi(folder.path(), "check run.toml --all --set train.folder=" + name);
    ASSERT_EQ(check.code, 0) << check.err;
    fs::create_directories(folder / name);
    std::ofstream(folder / name / "config.toml") << check.out.substr(0, check.out.find("\n# the program is valid"));
    std::ofstream(folder / name / "metrics.jsonl") << metrics;
  }

  Ended report(const std::string& arguments, const std::string& before = ":") {
    return run_kintsugi(folder.path(), "report " + arguments, before);
  }

  void expect_error(const std::string& arguments, const std::string& line) {
    const Ended ended = report(arguments);
    EXPECT_EQ(ended.code, 1) << arguments;
    EXPECT_EQ(ended.err, "error: " + line + "\n") << arguments;
    EXPECT_EQ(ended.out, "") << arguments;
  }

  std::string text_of(const std::string& name) { return base::read_file(folder / name); }
};

}  // namespace

// More ranks than any test machine has cores: threads share one machine's memory, processes may have run elsewhere.
TEST_F(ReportVerb, TheLimitOfManyRanks) {
  make_run("many", "{\"step\":1,\"loss\":5.5}\n");
  const Ended check = run_kintsugi(folder.path(), "check run.toml --all --ranks 512 --set train.global_batch=512");
  ASSERT_EQ(check.code, 0) << check.err;
  std::ofstream(folder / "many/config.toml") << check.out.substr(0, check.out.find("\n# the program is valid"));
  const auto page = [&](const std::string& profile) {
    if (!profile.empty()) std::ofstream(folder / "many/profile.json") << profile;
    const Ended ended = report("many");
    EXPECT_EQ(ended.code, 0) << ended.err;
    return text_of("many/report.html");
  };
  const std::string measured = R"({"step":1,"ranks":512,"clocks":CLOCKS,"of_ranks":[]})";
  const std::string unknown =
      "The limit of a rank is not known: [parallel] memory_per_rank is not set, and there are more ranks than this "
      "machine has cores.";
  EXPECT_TRUE(has(page(""), unknown));
  EXPECT_TRUE(has(page(replaced(measured, "CLOCKS", "1e-06")), unknown));
  const std::string threads = page(replaced(measured, "CLOCKS", "0.0"));
  EXPECT_FALSE(has(threads, "The limit of a rank is not known"));
  EXPECT_TRUE(has(threads, " over 512 ranks.")) << threads;
  EXPECT_TRUE(has(threads, ">limit of a rank: "));
}

TEST_F(ReportVerb, OfAPipelineThatWasResumed) {
  const std::string layout = "pipe=2 data=2 transport=threads memory_per_rank=1MiB", sets = "train.micro_batch=1";
  ASSERT_EQ(run_kintsugi(folder.path(), arguments("pipe", layout, sets)).code, 0);
  ASSERT_EQ(run_kintsugi(folder.path(), arguments("pipe", layout, sets + " train.steps=15") + " --resume").code, 0);
  ASSERT_EQ(run_kintsugi(folder.path(), arguments("one", "", "train.learning_rate=0.002")).code, 0);

  // The version and the steps; a resumed run also has a marker.
  EXPECT_EQ(num_records(folder / "pipe/events.out.tfevents.000001"), 1 + 12);
  EXPECT_EQ(num_records(folder / "pipe/events.out.tfevents.000002"), 2 + 3);
  EXPECT_EQ(num_records(folder / "one/events.out.tfevents.000001"), 1 + 12);

  const Ended alone = report("pipe/");
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(alone.err, "");
  EXPECT_TRUE(matches(alone.out, "pipe/report\\.html: 1 run, 15 steps, [0-9.]+ KiB\n")) << alone.out;
  const std::string page = text_of("pipe/report.html");
  EXPECT_EQ(markup_fault(page), "");
  for (const char* text :
       {"<title>pipe: ", "<td>pipe=2 data=2</td>", "<h3>Loss</h3>", "<h3>Validation loss</h3>",
        "<td>parallel.pipe</td><td>2</td><td>--set</td>", "<td>model.layers</td><td>2</td><td>run.toml:2</td>",
        "plan: 4 ranks, mesh pipe=2 data=2\n", "<td>pipe</td><td class=\"r\">2</td><td>0 2</td>",
        "<td>0</td><td>0 1</td>", "Memory over a step", ">limit of a rank: 1.0 MiB",
        "The limit of a rank is 1.0 MiB, as [parallel] memory_per_rank says.", "<h3>Schedule, as planned</h3>",
        "1f1b: 2 stages, 4 micro-batches;", "<summary>Stage 1: ", "<td>all_reduce</td><td>data</td>",
        "Written by kintsugi "})
    EXPECT_TRUE(has(page, text)) << text;
  EXPECT_EQ(report("pipe").code, 0);  // replaces it
  EXPECT_TRUE(text_of("pipe/report.html") == page);

  const Ended both = report("pipe one --output both.html");
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_TRUE(matches(both.out, "both\\.html: 2 runs, 27 steps, [0-9.]+ KiB\n")) << both.out;
  const std::string page_of_both = text_of("both.html");
  EXPECT_EQ(markup_fault(page_of_both), "");
  for (const char* text :
       {"<td>train.learning_rate</td><td>0.001</td><td>0.002</td>", "<summary>Plan of pipe</summary>",
        "<summary>Plan of one</summary>", "<p>Nothing is sent.</p>"})
    EXPECT_TRUE(has(page_of_both, text)) << text;

  const Ended streamed = report("one -o /dev/stdout");
  EXPECT_EQ(markup_fault(streamed.out), "");
  expect_error("pipe one -o one/metrics.jsonl",
               "[report] --output \"one/metrics.jsonl\" would replace a file of a run; name another file");
  expect_error("one -o one/events.out.tfevents.000001",
               "[report] --output \"one/events.out.tfevents.000001\" is a file of this run; name another");
}

TEST_F(ReportVerb, BadInputIsOneLine) {
  const std::string line = R"({"step":1,"loss":5.5,"gradient_norm":null})"
                           "\n";
  make_run("run", line);
  fs::create_directory(folder / "empty");
  expect_error("nowhere", "[report] folder \"nowhere\" not found; name the folder of a run ([train] folder)");
  expect_error("run.toml", "[report] folder \"run.toml\" not found; name the folder of a run ([train] folder)");
  expect_error("run empty",
               "[report] \"empty\" is not a run: config.toml is missing; name the folder of a run ([train] folder)");
  expect_error("run -o no/where.html", "[file] cannot write \"no/where.html\": No such file or directory");
  expect_error("run -o /dev/full", "[file] cannot write \"/dev/full\": No space left on device");
  expect_error("run -o run", "[file] cannot write \"run\": Is a directory");
  make_run("none", "");
  expect_error("run none",
               "[report] \"none/metrics.jsonl\" has no step: it is empty; the run has not completed a step yet");
  fs::remove(folder / "none/metrics.jsonl");
  expect_error("none",
               "[report] \"none/metrics.jsonl\" does not exist; the run has not completed a step yet");
  make_run("torn", "{\"step\":1,\"lo");
  expect_error("torn",
               "[report] \"torn/metrics.jsonl\" has no step: line 1 is incomplete: not an object with a step; "
               "the run has not completed a step yet");
  std::ofstream(folder / "torn/config.toml") << "[model]\nlayers = \"two\"\n";
  EXPECT_TRUE(has(report("torn").err, "config.toml:2"));
}

TEST_F(ReportVerb, WhatIsDamagedIsToldAndLeftOut) {
  make_run(
      "run",
      "{\"step\":1,\"loss\":5.5,\"gradient_norm\":null}\n{\"step\":2,\"loss\":5.0,\"gradient_norm\":1}\n{\"step\":3,");
  const Ended ended = report("run");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err,
            "warning: run: metrics.jsonl: line 3 is incomplete: not an object with a step; left out\n"
            "warning: run: gradient_norm: 1 of 2 values is not finite; shown as a gap\n");
  std::string page = text_of("run/report.html");
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_TRUE(has(page, "<title>not finite</title>"));

  // A configuration that this version rejects: the rest is still shown.
  const std::string config = text_of("run/config.toml");
  std::ofstream(folder / "run/config.toml") << replaced(config, "\nkv_heads = 4 ", "\nkv_heads = 3 ");
  const Ended refused = report("run");
  EXPECT_EQ(refused.code, 0) << refused.err;
  EXPECT_TRUE(has(refused.err, "warning: run: the plan cannot be shown: ")) << refused.err;
  page = text_of("run/report.html");
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_TRUE(has(page, "<p>The plan cannot be shown: "));
}

}  // namespace kintsugi::tests::report_test
