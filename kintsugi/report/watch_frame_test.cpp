#include "kintsugi/report/watch_frame.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kintsugi::report::watch_frame_test {
namespace {

// A run of 120 steps, of which 80 are done.
std::string metrics_of(int64_t steps) {
  std::string text;
  for (int64_t step = 1; step <= steps; ++step) {
    const auto x = static_cast<double>(step);
    text += fmt::format("{{\"step\":{},\"loss\":{}", step, 2 + 6 / std::sqrt(x) + 0.05 * std::sin(9 * x));
    if (step % 20 == 0) text += fmt::format(",\"validation_loss\":{}", 2.2 + 6 / std::sqrt(x));
    text += fmt::format(
        ",\"learning_rate\":{},\"gradient_norm\":{},\"tokens\":{},\"tokens_per_second\":{},\"peak_share\":0.41,"
        "\"memory_bytes\":9437184,\"seconds\":0.25",
        1e-3 * (1 + std::cos(x / 40)) / 2, 0.5 + 2 / x, 4096 * step, 16384 + 10 * step);
    if (step % 40 == 0)
      text += fmt::format(
          ",\"samples\":[{{\"prompt\":\"Once upon a time\",\"text\":\" there was a model of {} steps\\nthat wrote\"}},"
          "{{\"prompt\":\"\",\"text\":\"not shown\"}}]",
          step);
    text += "}\n";
  }
  return text;
}

struct Case {
  MetricsTable metrics = parse_metrics(metrics_of(80));
  WatchedRun run = {.name = "runs/first",
                    .metrics = &metrics,
                    .steps = 120,
                    .ranks = "2 ranks: data 2",
                    .quiet_seconds = 0.2,
                    .saved_step = 60,
                    .saved_seconds = 5,
                    .begun_seconds = 20,
                    .save_every = 50,
                    .save_every_minutes = 10};
  WatchLook look = {};

  std::string frame(int columns, int rows) {
    look.columns = columns;
    look.rows = rows;
    std::string text;
    for (const std::string& line : watch_frame(run, look)) text += line + "\n";
    return text;
  }
};

}  // namespace

TEST(WatchFrame, Of80x24) {
  Case c;
  c.look.last_row = "q ends";
  EXPECT_EQ(c.frame(80, 24), R"(runs/first                                                               running
[===========================             ]  step 80/120  66%  about 10s left
loss 2.6436  validation 2.8708  best 2.8708 at step 80
learning rate 2.92e-04  gradient norm 0.525  17.2 ktokens/s  41% of the peak
next checkpoint at step 100 or in 9m55s  newest: step 60, 5.0s ago
2 ranks: data 2  9.0 MiB on a rank
loss, and validation (o)                        learning rate
  3.969 ⠉⠉⠉⠉⢱                                   1.0e-03 ⠉⠉⠉⠉⠉⠉⠓⠒⠒⠒⠒⠢⠤⠤⠤⣄⣀⣀⡀
            ⠘⢣                                        0                   ⠈⠉⠉⠉⠒⠒
             ⠈⠱⣀ o                              gradient norm
               ⠈⠖⣄                                  2.5 ⢣
                  ⠑⢣⢆⡀    o                       0.525 ⠘⠦⠤⢤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀
                    ⠈⠈⠱⢣⢦⣀⢀⢀        o           tokens/s
                          ⠁⠋⠋⠢⢣⢦⢄⢄⣄⡀⢀⢀       o   17.2 k ⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉
   2.63                          ⠈⠈⠈⠁⠋⠋⠒⠱⠟⠖⢢⢦⢦        0
        step 1                              80
written after step 80
  Once upon a time there was a model of 80 steps
  that wrote
     step          loss    validation learning rate      gradient      tokens/s
       78        2.6299                    3.15e-04         0.526         17164
       79        2.7171                    3.03e-04         0.525         17174
       80        2.6436        2.8708      2.92e-04         0.525         17184
q ends
)");
}

// A stopped run shows how to continue, and a failed one its error.
TEST(WatchFrame, OfARunThatEnded) {
  Case c;
  c.run.quiet_seconds = 1e5;
  EXPECT_NE(c.frame(80, 24).find("no line for 1d03h: it may have ended"), std::string::npos) << c.frame(80, 24);
  c.run.ended = "stopped by a signal";
  std::string frame = c.frame(80, 24);
  EXPECT_TRUE(
      frame.starts_with("runs/first                                                   stopped by a signal\n"
                        "[===========================             ]  step 80/120  66%\n"))
      << frame;
  EXPECT_NE(frame.find("\n--resume continues after step 60  newest: step 60, 5.0s ago\n"), std::string::npos) << frame;
  c.run.saved_step = {};
  EXPECT_NE(c.frame(80, 24).find("\n--resume begins anew  none yet\n"), std::string::npos) << c.frame(80, 24);
  c.run.ended = "ended with an error";
  c.run.error =
      "[train] step 81: the loss is not finite; first bad value: layer 0, forward: attention makes attention.0";
  frame = c.frame(80, 24);
  EXPECT_TRUE(
      frame.starts_with("runs/first                                                   ended with an error\n"
                        "[train] step 81: the loss is not finite; first bad value: layer 0, forward: atte\n"
                        "ntion makes attention.0\n[====="))
      << frame;
  EXPECT_TRUE(c.frame(80, 12).starts_with(
      "runs/first                                                   ended with an error\n"
      "[train] step 81: the loss is not finite; first bad value: layer 0, forward: atte\n[====="))
      << c.frame(80, 12);
}

// Four ranks of a pipeline, the others waiting for rank 3.
TEST(WatchFrame, OfRanks) {
  using profile::Part;
  profile::StepProfile measured = {.step = 62, .ranks = 4};
  for (int rank = 0; rank < 4; ++rank) {
    const double waiting = rank == 3 ? 0 : 0.04 - 0.01 * rank;
    measured.of_ranks.push_back(
        {.rank = rank,
         .stage = rank,
         .steps = 1,
         .seconds = 0.1,
         .operations = {{.operation = "linear", .part = Part::compute, .seconds = 0.09 - waiting},
                        {.operation = "send", .part = Part::communication, .seconds = 0.01},
                        {.operation = "receive", .part = Part::waiting, .seconds = waiting}}});
    if (waiting > 0) measured.of_ranks.back().waits = {{.rank = 1, .seconds = 0.002}, {.rank = 3, .seconds = waiting}};
  }
  Case c;
  c.run.measured = &measured;
  c.look.characters = Characters::ascii;
  const std::string frame = c.frame(80, 24);
  const size_t begin = frame.find("ranks in step");
  ASSERT_NE(begin, frame.npos) << frame;
  EXPECT_EQ(frame.substr(begin), R"(ranks in step 62: = computing, + transfers, . waiting  most for rank 3: 22%
 rank 0  [=======+......] 40% for 3      rank 1  [========++....] 30% for 3
 rank 2  [==========+...] 20% for 3      rank 3  [=============+]
written after step 80
  Once upon a time there was a model of 80 steps
  that wrote
     step          loss    validation learning rate      gradient      tokens/s
       78        2.6299                    3.15e-04         0.526         17164
       79        2.7171                    3.03e-04         0.525         17174
       80        2.6436        2.8708      2.92e-04         0.525         17184
)");
  EXPECT_NE(c.frame(40, 30).find(" rank 3  [=============+]\n"), std::string::npos);
  EXPECT_EQ(c.frame(80, 15).find("ranks in step"), std::string::npos);
}

TEST(WatchFrame, Of100x30) {
  Case c;
  EXPECT_EQ(c.frame(100, 30),
            R"(runs/first                                                                                   running
[===========================             ]  step 80/120  66%  about 10s left
loss 2.6436  validation 2.8708  best 2.8708 at step 80
learning rate 2.92e-04  gradient norm 0.525  17.2 ktokens/s  41% of the peak
next checkpoint at step 100 or in 9m55s  newest: step 60, 5.0s ago
2 ranks: data 2  9.0 MiB on a rank
loss, and validation (o)                                    learning rate
  3.969 ⠉⠉⠉⠉⠉⠱⡀                                             1.0e-03 ⠉⠉⠉⠉⠉⠑⠒⠒⠒⠒⠤⠤⠤⣄⣀⣀
              ⢇                                                                     ⠉⠉⠑⠒⠲⠤⢤⣀⣀
              ⠘⡇                                                                            ⠈⠉⠉⠒⠒⠤⠤⢄
               ⢸⡀                                                 0
                ⠘⡄  o                                       gradient norm
                 ⠸⡆                                             2.5 ⡇
                  ⢸⠾⡀                                               ⢸
                    ⠛⡄⢀                                             ⠈⡆
                     ⠈⠙⡴⡀⡀                                    0.525  ⠈⠒⠦⠤⠤⠤⠤⠤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀
                       ⠁⠱⠱⡠⡄⡀   o                           tokens/s
                           ⠸⢣⡜⣄⡀⢀                            17.2 k ⠒⠒⠒⠒⠒⠒⠒⠒⠒⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉
                            ⠈ ⠁⠘⠞⡼⢆⣀⢀⡄⡀      o
                                 ⠁⠈ ⠋⢱⢳⠔⢄⢦⢰⣀ ⢀ ⡀         o
                                        ⠈ ⠃⠋⠉⠊⡶⢣⢦⣀⢆⣦⢠ ⣀⢀ ⡀        0
   2.63                                        ⠈  ⠘ ⠃⠋⠈⠎⡶⠱
        step 1                                          80
written after step 80
  Once upon a time there was a model of 80 steps
  that wrote
     step          loss    validation learning rate      gradient      tokens/s
       78        2.6299                    3.15e-04         0.526         17164
       79        2.7171                    3.03e-04         0.525         17174
       80        2.6436        2.8708      2.92e-04         0.525         17184
)");
}

TEST(WatchFrame, Of40x12InAscii) {
  Case c;
  c.look.characters = Characters::ascii;
  EXPECT_EQ(c.frame(40, 12), R"(runs/first                       running
step 80/120  66%  about 10s left
loss 2.6436  validation 2.8708
17.2 ktokens/s  41% of the peak
next checkpoint at step 100 or in 9m55s
loss, and validation (o)
  3.969 ''''|
             !.o
               !-i..
                 '''!!-oi...   o       o
   2.63                   '''!!!!!-i-iii
        step 1                        80
)");
}

// For any size, nothing exceeds the screen.
TEST(WatchFrame, FitsAnyScreen) {
  Case c;
  c.run.name = "a/long/path/of/a/run/that/does/not/fit/into/any/of/the/smaller/screens";
  for (const Characters characters : {Characters::ascii, Characters::unicode})
    for (int columns = 1; columns <= 130; columns += columns < 30 ? 1 : 9)
      for (int rows = 1; rows <= 50; rows += rows < 30 ? 1 : 9) {
        c.look = {.columns = columns, .rows = rows, .characters = characters, .last_row = "q ends"};
        const std::vector<std::string> lines = watch_frame(c.run, c.look);
        EXPECT_LE(std::ssize(lines), rows);
        for (const std::string& line : lines) EXPECT_LE(columns_of(line), columns) << line;
      }
}

TEST(WatchFrame, WhatARunIsDoing) {
  Case c;
  const auto first = [&] { return c.frame(60, 12).substr(0, 60); };
  EXPECT_EQ(first(), "runs/first                                           running");
  c.run.quiet_seconds = 312;
  EXPECT_EQ(first(), "runs/first              no line for 5m12s: it may have ended");
  c.run.steps = 80;
  EXPECT_EQ(first(), "runs/first                                              done");
  c.run.note = "its folder is gone";
  EXPECT_EQ(first(), "runs/first                                its folder is gone");
  Case begun;
  begun.metrics = {};
  EXPECT_EQ(begun.frame(60, 12),
            "runs/first                             before its first step\n"
            "[                                        ]  step 0/120  0%\n"
            "next checkpoint at step 50 or in 9m55s\n"
            "no step yet: there is nothing to draw\n");
}

TEST(WatchFrame, ValuesThatAreNotFinite) {
  Case c;
  c.metrics = parse_metrics(
      "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":null}\n{\"step\":3,\"loss\":2}\n"
      "{\"step\":4,\"loss\":null,\"validation_loss\":null}\n");
  const std::string frame = c.frame(80, 24);
  EXPECT_NE(frame.find("loss not finite  validation not finite\n"), std::string::npos) << frame;
}

TEST(WatchFrame, ColoursEndWithEachLine) {
  Case c;
  c.look.colour = true;
  for (const std::string& line : watch_frame(c.run, c.look)) {
    const size_t last = line.rfind('\x1b');
    EXPECT_EQ(last == std::string::npos ? "\x1b[0m" : line.substr(last, 4), "\x1b[0m") << line;
  }
  c.look.colour = false;
  EXPECT_EQ(c.frame(80, 24).find('\x1b'), std::string::npos);
}

}  // namespace kintsugi::report::watch_frame_test
