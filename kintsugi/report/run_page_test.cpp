#include "kintsugi/report/run_page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <ctime>

#include "kintsugi/report/measured_pictures.h"
#include "tests/markup.h"

namespace kintsugi::report::run_page_test {
namespace {

bool has(const std::string& page, std::string_view text) {
  return page.find(text) != std::string::npos;
}

// As written by `train`, with reproducible noise.
std::string metrics_of(int64_t steps, int64_t tokens_per_step, const std::string& more = "") {
  std::string text;
  uint64_t noise = 1;
  for (int64_t step = 1; step <= steps; ++step) {
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    const double random = static_cast<double>(noise >> 40) / (1 << 24);
    const bool spike = step % 30'011 == 0;
    text += fmt::format(
        R"({{"step":{},"loss":{}{},"learning_rate":{},"gradient_norm":{},"tokens":{},"tokens_per_second":{},)"
        R"("flops_per_second":30000000000000.0,"peak_share":0.41,"memory_bytes":17179869184,"seconds":0.25{}}})"
        "\n",
        step, 2 + 8 / std::sqrt(1 + static_cast<double>(step) / 50) + random / 5,
        step % 1000 == 0 ? fmt::format(",\"validation_loss\":{}", 2.5 + random) : "", 3e-4 * random,
        step % 25'000 == 0 ? "null" : fmt::format("{}", spike ? 123.0 : 0.5 + random), step * tokens_per_step,
        5e5 + 1e4 * random, more);
  }
  return text;
}

ReportRun made(const std::string& name, const std::string& metrics) {
  return {.name = name,
          .metrics = parse_metrics(metrics),
          .steps = 200'000,
          .settings = {{"train.steps", "200000", "run.toml:3", true},
                       {"train.folder", "\"" + name + "\"", "run.toml:2", true},
                       {"train.seed", "1", "default", false}},
          .not_planned = "\"<x>\" is gone"};
}

}  // namespace

// A chart for each metric with a curve per task and run, and a table of the last values of all runs.
TEST(RunPage, ShowsEvaluationTasksOverStepsAndOfSeveralRuns) {
  const auto metrics = [](double first, double last) {
    std::string text;
    for (const auto& [step, acc] : {std::pair(1, first), std::pair(2, last)})
      text +=
          fmt::format(R"({{"step":{},"loss":1.5,"task.piqa.acc":{},"task.piqa.acc_error":0.0125,"task.sciq.acc":0.5}})"
                      "\n",
                      step, acc);
    return text;
  };
  const std::vector<ReportRun> runs = {made("one", metrics(0.25, 0.75)), made("two", metrics(0.5, 0.625))};
  const std::string page = run_page(runs, "kintsugi");
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_TRUE(has(page, "<h3>Evaluation tasks: acc</h3>"));
  EXPECT_TRUE(has(page, "one, piqa")) << "a curve of a run and a task";
  EXPECT_TRUE(
      has(page, "<tr><td>piqa</td><td>acc</td><td>0.7500 \u00b1 0.0125</td><td>0.6250 \u00b1 0.0125</td></tr>") ||
      has(page, "<td>piqa</td><td>acc</td><td class=\"r\">0.7500 \u00b1 0.0125</td>"))
      << page.substr(page.find("Evaluation tasks"), 600);
  EXPECT_FALSE(has(page, "<h3>task.piqa.acc_error</h3>"));
  EXPECT_FALSE(has(run_page(std::vector{made("one", metrics_of(10, 8))}, "kintsugi"), "Evaluation tasks"));
}

TEST(RunPage, OfALongRunIsSmallAndSoonWritten) {
  const std::string one = metrics_of(100'000, 524'288), other = metrics_of(100'000, 262'144) + "{\"step\":1000";
  const std::clock_t begin = std::clock();
  const std::vector<ReportRun> runs = {made("runs/<one>", one), made("runs/\"two\"", other)};
  const std::string page = run_page(runs, "kintsugi & co");
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_LT(page.size(), size_t{2} << 20);
  EXPECT_GT(page.size(), 50'000u);
  EXPECT_LT(seconds, 2.0);  // of the processor
  EXPECT_TRUE(has(page, "<title>2 runs</title>"));
  EXPECT_TRUE(has(page, "<th>runs/&lt;one&gt;</th><th>runs/&quot;two&quot;</th>"));
  EXPECT_TRUE(has(page, "<tr><td>steps</td><td>100,000 of 200,000</td><td>100,000 of 200,000</td></tr>"));
  EXPECT_TRUE(has(page, "<tr><td>tokens</td><td>52,428,800,000</td><td>26,214,400,000</td></tr>"));
  EXPECT_TRUE(has(page, ", at most 123</td>"));
  EXPECT_TRUE(has(page, "<li>runs/&lt;one&gt;: gradient_norm: 4 of 100,000 values are not finite; shown as gaps</li>"));
  EXPECT_TRUE(has(page,
                  "<li>runs/&quot;two&quot;: metrics.jsonl: line 100,001 is incomplete: not an object with a step; "
                  "left out</li>"));
  EXPECT_TRUE(has(page, "<li>runs/&lt;one&gt;: the plan cannot be shown: &quot;&lt;x&gt;&quot; is gone</li>"));
  EXPECT_TRUE(has(page, "<title>runs/&lt;one&gt;: not finite</title>"));
  for (const char* heading : {"Loss", "Loss, second half", "Loss by tokens", "Validation loss", "Learning rate",
                              "Gradient norm", "Speed", "What was set"})
    EXPECT_TRUE(has(page, fmt::format("<h3>{}</h3>", heading))) << heading;
  EXPECT_TRUE(has(page, "<p>No setting differs.</p>"));  // the folders are the names
  EXPECT_TRUE(has(page, "<h2>Plan</h2>\n<p>The plan cannot be shown: "));
  EXPECT_TRUE(has(page, "Written by kintsugi &amp; co."));
}

TEST(RunPage, OfAShortRun) {
  std::vector<ReportRun> runs = {made("a", "{\"step\":1,\"loss\":2.5}\n")};
  runs[0].steps = 1;
  const std::string page = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_TRUE(has(page, "<title>a</title>"));
  EXPECT_TRUE(has(page, "<tr><td>steps</td><td>1</td></tr>\n<tr><td>loss at the end</td><td>2.5000</td></tr>"));
  EXPECT_TRUE(has(page, "<tr><td>train.steps</td><td>200000</td><td>run.toml:3</td></tr>"));
  EXPECT_FALSE(has(page, "<h3>Gradient norm</h3>"));
  EXPECT_FALSE(has(page, "<h3>Loss by tokens</h3>"));
  EXPECT_FALSE(has(page, "What differs"));
}

TEST(RunPage, WhatDiffersIsShownAndMarked) {
  std::vector<ReportRun> runs = {made("a", metrics_of(3, 8)), made("b", metrics_of(3, 8)), made("c", metrics_of(3, 8))};
  runs[1].settings[2].value = "7";
  const std::string page = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_TRUE(has(page,
                  "<h3>What differs</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>key</th><th>a</th><th>b</th>"
                  "<th>c</th></tr>\n</thead>\n<tbody>\n<tr class=\"marked\"><td>train.seed</td><td>1</td><td>7</td>"
                  "<td>1</td></tr>\n</tbody>"));
  EXPECT_FALSE(has(page, "<h3>Loss by tokens</h3>"));
}

TEST(RunPage, RunsAreRanked) {
  std::vector<ReportRun> runs = {made("a", metrics_of(3, 8)), made("b", metrics_of(3, 8)), made("c", metrics_of(3, 8))};
  runs[0].metrics = parse_metrics("{\"step\":1,\"loss\":1,\"validation_loss\":0.5}\n");
  runs[1].metrics = parse_metrics("{\"step\":1,\"loss\":2,\"validation_loss\":0.25}\n");
  runs[0].settings[2].value = "7";
  runs[0].model = runs[1].model = runs[2].model = "gpt: 2 layers, embed 64";
  runs[0].data = "corpus/train";
  runs[1].data = "other/train";
  runs[1].unit = "images";
  runs[0].loss_unit = "";
  runs[0].date = "2026-01-02 03:04";
  runs[2].machine = "a <host>";
  const std::string page = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_TRUE(has(page,
                  "<tr><td>1</td><td>b</td><td class=\"r\">0.2500</td><td></td></tr>\n"
                  "<tr><td>2</td><td>a</td><td class=\"r\">0.5000</td><td>train.seed = 7</td></tr>\n"
                  "<tr><td>3</td><td>c</td><td class=\"r\">none</td><td></td></tr>"))
      << page.substr(page.find("Ranking"), 900);
  EXPECT_TRUE(has(page, "<h1>3 runs: gpt: 2 layers, embed 64</h1>"));
  EXPECT_TRUE(has(page, "data corpus/train; other/train \u00b7 2026-01-02 03:04 \u00b7 on a &lt;host&gt;"));
  EXPECT_FALSE(has(run_page(std::span(runs).first(1), "k"), "Ranking"));
  EXPECT_FALSE(has(run_page(std::span(runs).first(1), "k"), "nats"));
  EXPECT_TRUE(has(run_page(std::span(runs).last(1), "k"), "nats"));
}

// The heaviest kernels of two runs differ, and each has the same colour in both.
TEST(RunPage, AKernelHasOneColour) {
  profile::StepProfile one = {.step = 1, .ranks = 1}, two = one;
  for (auto* step : {&one, &two}) step->of_ranks.push_back({.rank = 0, .steps = 1, .seconds = 1});
  one.of_ranks[0].operations = {{"contract", "forward", profile::Part::compute, 1, 0.6, 1, 1, 0},
                                {"attention", "forward", profile::Part::compute, 1, 0.3, 1, 1, 0}};
  two.of_ranks[0].operations = {{"contract", "forward", profile::Part::compute, 1, 0.2, 1, 1, 0},
                                {"attention", "forward", profile::Part::compute, 1, 0.4, 1, 1, 0}};
  const std::array<const profile::StepProfile*, 2> steps = {&one, &two};
  const std::vector<std::string> operations = heaviest_operations(steps);
  const auto colour = [&](const profile::StepProfile& step, const std::string& name) {
    const std::string picture = step_picture(step, operations);
    const size_t title = picture.find("<title>" + name), fill = picture.rfind("fill=", title);
    return picture.substr(fill, picture.find('>', fill) - fill);
  };
  for (const char* name : {"contract", "attention"}) EXPECT_EQ(colour(one, name), colour(two, name)) << name;
  EXPECT_NE(colour(one, "contract"), colour(one, "attention"));
  EXPECT_NE(step_legend(one, operations).find(">attention</li>"), std::string::npos);
}

// A pipeline of two stages with `ranks` ranks and `blocks` blocks each.
profile::StepProfile measured_step(int ranks, int blocks) {
  using profile::Part;
  profile::StepProfile step = {.step = 1003, .ranks = 2 * ranks, .clocks = 4e-6};
  for (int r = 0; r < 2 * ranks; ++r) {
    profile::RankProfile& rank = step.of_ranks.emplace_back(
        profile::RankProfile{.rank = r, .stage = r / ranks, .steps = 1, .seconds = 2, .inputs = 0.1, .between = 0.001});
    rank.operations = {{"contract", "forward", Part::compute, 4, 1.2, 2e9, 1e6, 0},
                       {"receive", "forward", Part::communication, 4, 0.299, 0, 0, 0},
                       {"receive", "forward", Part::waiting, 3, 0.4, 0, 0, 0}};
    rank.waits = {{.rank = (r + ranks) % (2 * ranks), .seconds = 0.4}};
    rank.transfers = {{"receive", "pipe", 4, 0, 0.25, 0.4, 2, 0.1, 1e6}};
    rank.queues = {{.queue = "compute"}, {.queue = "pipe"}};
    for (int b = 0; b < blocks; ++b) {
      const double at = 2.0 * b / blocks, to = 2.0 * (b + 1) / blocks;
      const bool waits = b % 3 == 2;
      rank.queues[0].blocks.push_back({.work = waits        ? "waiting"
                                               : b % 3 == 0 ? "forward"
                                                            : "backward",
                                       .chunk = r / ranks,
                                       .micro_batch = waits ? -1 : b / 3,
                                       .waited_for = waits ? 0 : -1,
                                       .begin = at,
                                       .end = to});
      rank.queues[1].blocks.push_back({.work = "forward", .begin = at, .end = to});
    }
  }
  return step;
}

TEST(RunPage, AStepAsItWasMeasured) {
  std::vector<ReportRun> runs = {made("a", metrics_of(3, 8)), made("b", metrics_of(3, 8))};
  runs[0].measured = ProfiledStep{.profile = measured_step(2, 12), .bubbles = {{.planned = 0.375, .run = 0.5}}};
  runs[1].not_measured = "[profile] \"b/profile.json\":1: it ends within a value";
  const std::string page = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(page), "");
  for (const char* text :
       {"<h2>Where the time of a step went: a</h2>",
        "Step 1,003, as it was measured; clocks of ranks agree within 4.0 us.",
        "<title>contract: 1200 ms, 60.0%</title>", "<title>waiting for rank 2: 400 ms, 20.0%</title>",
        "<h3>Schedule, as run</h3>", "<title>backward of chunk 1, micro-batch 0: 166.7 ms to 333.3 ms</title>",
        "<title>waiting for rank 0: 333.3 ms to 500 ms</title>", ">waiting for another rank</text>",
        "<td>receive</td><td>pipe</td>", "37.5%", "<td>rank 2 20.0%</td>", "10.0 MB/s"})
    EXPECT_TRUE(has(page, text)) << text;
  EXPECT_TRUE(has(page, "<li>b: the time of a step cannot be shown: [profile] &quot;b/profile.json&quot;:1: it ends"));
  EXPECT_FALSE(has(page, "went: b"));
  EXPECT_FALSE(has(page, "of 96 blocks"));
}

TEST(RunPage, OfManyBlocksTheFirstHaveTooltips) {
  std::vector<ReportRun> runs = {made("a", metrics_of(3, 8))};
  runs[0].measured = ProfiledStep{.profile = measured_step(32, 512)};
  const std::string page = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_LT(page.size(), size_t{2} << 20);
  EXPECT_TRUE(has(page, ">the first 2,944 of 32,768 blocks have a tooltip</text>")) << page.size();
  EXPECT_TRUE(has(page, "M984.21 "));  // the last are drawn too
  runs[0].measured->profile.of_ranks[0].queues[0].left_out = 7;
  EXPECT_TRUE(has(run_page(runs, "k"), ">the first 32,768 of 32,775 blocks</text>"));
}

TEST(RunPage, EveryMeasureHasItsPlace) {
  const std::vector<ReportRun> runs = {
      made("a", metrics_of(1000, 8, ",\"scale\":7.5,\"validation_loss.code\":3.5,\"note\":\"x\""))};
  const std::string page = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_TRUE(has(page, "<h3>scale</h3>"));
  EXPECT_TRUE(has(page, "</svg>all</li>"));
  EXPECT_TRUE(has(page, "</svg>code</li>"));
  for (const char* none : {"<h3>note</h3>", "<h3>seconds</h3>", "<h3>tokens</h3>"}) EXPECT_FALSE(has(page, none));
}

TEST(RunPage, MeasuresHaveNames) {
  for (const std::string key : {"accuracy",
                                "answer_tokens",
                                "bits_per_byte",
                                "drain_seconds",
                                "loss.experts",
                                "loss_scale",
                                "planned_seconds",
                                "reward",
                                "reward_margin",
                                "reward_spread",
                                "rmse",
                                "rollout_gap",
                                "rollout_seconds",
                                "skipped_steps",
                                "stage_seconds",
                                "top1",
                                "top5",
                                "validation_accuracy",
                                "validation_bits_per_byte",
                                "validation_reward",
                                "validation_reward_margin"}) {
    const std::string page = run_page(std::vector{made("a", metrics_of(3, 8, ",\"" + key + "\":1.5"))}, "k");
    EXPECT_FALSE(has(page, "<h3>" + key + "</h3>")) << key;
  }
  const std::string page = run_page(std::vector{made("a", metrics_of(3, 8, ",\"bits_per_byte\":1.5"))}, "k");
  EXPECT_TRUE(has(page, "<h3>Loss per byte of text</h3>"));
  EXPECT_TRUE(has(page, "<span class=\"name-y\">bits</span>")) << page;
}

TEST(RunPage, LoadOfExperts) {
  const auto step = [](int step, const std::string& more) {
    return fmt::format("{{\"step\":{},\"loss\":2.5,\"busiest_expert\":1.5,\"expert_tokens\":[6,2,4]{}}}\n", step, more);
  };
  const std::vector<ReportRun> runs = {made("a", step(1, "") + step(2, ",\"dropped_tokens\":3"))};
  const std::string page = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(page), "");
  for (const char* heading :
       {"Load of experts", "Tokens per expert, last step", "Tokens without a slot of their expert"})
    EXPECT_TRUE(has(page, fmt::format("<h3>{}</h3>", heading))) << heading;
  for (const char* name : {"busiest of a layer", "most loaded over all layers", "least loaded over all layers"})
    EXPECT_TRUE(has(page, fmt::format("</svg>{}</li>", name))) << name;
  for (const char* none : {"<h3>busiest_expert</h3>", "<h3>expert_tokens.most</h3>", "<h3>dropped_tokens</h3>"})
    EXPECT_FALSE(has(page, none)) << none;
  EXPECT_FALSE(has(run_page(std::vector{made("b", metrics_of(3, 8))}, "k"), "expert"));
}

TEST(RunPage, TextsOfTheModel) {
  const auto step = [](int step, const std::string& text) {
    return fmt::format("{{\"step\":{},\"samples\":[{{\"prompt\":\"Once <\",\"text\":\"{}\"}}]}}\n", step, text);
  };
  std::vector<ReportRun> runs = {made("a", step(1, " b\\n  c") + step(7, "d"))};
  const std::string page = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_TRUE(has(page, "<h2>Texts written on the way</h2>"));
  EXPECT_TRUE(has(page,
                  "<summary>Earlier: from step 1 back to step 1</summary>\n<p>After step 1:</p>\n<p "
                  "class=\"written\"><b>Once &lt;</b> b\n  c</p>"));
  EXPECT_TRUE(has(page, "<p>After step 7:</p>\n<p class=\"written\"><b>Once &lt;</b>d</p>\n<details>"));
  std::string many;
  for (int i = 1; i <= 1000; ++i) many += step(i, std::string(3000, 'x'));
  runs.push_back(made("b", many));
  const std::string of_two = run_page(runs, "k");
  EXPECT_EQ(tests::markup_fault(of_two), "");
  EXPECT_LT(of_two.size(), 300'000u);
  EXPECT_TRUE(has(of_two, "40 of the 1,000 steps with texts; all are in metrics.jsonl."));
  for (const char* kept : {"<p>After step 1:<", "<p>After step 1,000:<", "from step 974 back to step 1<"})
    EXPECT_TRUE(has(of_two, kept)) << kept;
}

}  // namespace kintsugi::report::run_page_test
