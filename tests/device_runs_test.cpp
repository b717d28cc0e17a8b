// Runs on the emulated device as a user starts them: stopped and resumed, on the device and the CPU in turn;
// evaluation, generation; and device failures.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/program/stage_words.h"
#include "tests/csv_columns.h"
#include "tests/process.h"
#include "tests/small_run.h"

namespace kintsugi::tests::device_runs_test {
namespace {

class DeviceRuns : public testing::Test {
 protected:
  std::vector<std::string> in(const std::string& run, const std::string& device) const {
    return {"train.folder=" + files.folder(run).string(),
            "parallel.device=" + device,
            "train.steps=6",
            "train.evaluate_every=3",
            "checkpoint.every=2",
            "checkpoint.keep=10",
            "model.dropout=0.1"};
  }
  // The command, in the folder of the runs.
  Ended command(const std::string& arguments, const std::string& before = ":") const {
    return run_kintsugi(files.file("."), arguments, before);
  }
  std::string last_losses(const std::string& run) const {
    std::string losses;
    for (const std::string& line : metrics_of(files.folder(run))) losses += line + "\n";
    return losses;
  }

  RunFiles files;
  std::string toml = files.toml();
};

TEST_F(DeviceRuns, StoppedAndResumedTheyHaveTheSameBits) {
  EXPECT_TRUE(run_here(toml, in("whole", "emulated")).finished);
  EXPECT_EQ(run_here(toml, in("parts", "emulated"), false, 3).step, 3);
  EXPECT_TRUE(run_here(toml, in("parts", "emulated"), true).finished);
  EXPECT_EQ(metrics_of(files.folder("whole")), metrics_of(files.folder("parts")));
  const auto tensors = [&](const std::string& run) {
    return tensors_of(checkpoint::list(files.folder(run)).back().folder);
  };
  EXPECT_TRUE(tensors("whole") == tensors("parts"));
}

// With a checkpoint after each step, metrics are read before the next step starts.
TEST_F(DeviceRuns, MetricsThatAreReadAStepLateAreTheSame) {
  std::vector<std::string> late = in("late", "emulated"), at_once = in("at_once", "emulated");
  for (auto* sets : {&late, &at_once}) sets->insert(sets->end(), {"train.evaluate_every=6", "checkpoint.every=6"});
  at_once.emplace_back("checkpoint.every=1");
  EXPECT_TRUE(run_here(toml, late).finished);
  EXPECT_TRUE(run_here(toml, at_once).finished);
  EXPECT_EQ(metrics_of(files.folder("late")).size(), 6u);
  EXPECT_EQ(metrics_of(files.folder("late")), metrics_of(files.folder("at_once")));
}

// Evaluation passes are captured too, and copy nothing to the host.
TEST_F(DeviceRuns, WhatIsOffloadedChangesNoLoss) {
  const auto sets = [&](const std::string& offload) {
    std::vector<std::string> all = in(offload, "emulated");
    all.insert(all.end(), {"parallel.offload=" + offload, "train.evaluate_every=2", "train.evaluate_batches=3"});
    return all;
  };
  const auto metrics = [&](const std::string& offload) {
    EXPECT_TRUE(run_here(toml, sets(offload)).finished) << offload;
    std::string all;
    for (const std::string& line : metrics_of(files.folder(offload)))
      all += std::regex_replace(line, std::regex("\"memory_bytes\":[0-9]+,"), "") + "\n";
    return all;
  };
  const std::string want = metrics("none");
  for (const char* offload : {"optimizer", "activations", "all"}) EXPECT_EQ(metrics(offload), want) << offload;
}

// Reports the step with the bad loss, even if it is detected a step later.
TEST_F(DeviceRuns, ALossThatIsNotFiniteIsOfItsStep) {
  const auto line = [&](const std::string& run, const std::string& device) {
    std::vector<std::string> sets = in(run, device);
    sets.insert(sets.end(),
                {"train.learning_rate=1e30", "train.warmup_steps=0", "train.evaluate_every=6", "checkpoint.every=6"});
    try {
      run_here(toml, sets);
    } catch (const base::UserError& e) {
      const std::string text = e.what();
      return text.substr(0, text.find("; first bad value"));
    }
    return std::string("no error");
  };
  EXPECT_NE(line("bad", "emulated").find("is not finite"), std::string::npos) << line("worse", "emulated");
  EXPECT_EQ(line("bad_late", "emulated"), line("bad_cpu", "cpu"));
}

// Compares two checkpoints in fp32, within `tolerance` of the largest value of each tensor.
void expect_near(const std::filesystem::path& got, const std::filesystem::path& want, double tolerance) {
  const auto a = tensors_of(got), b = tensors_of(want);
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, bytes] : a) {
    const std::vector<std::byte>& other = b.at(name);
    ASSERT_EQ(bytes.size(), other.size()) << name;
    const auto* x = reinterpret_cast<const float*>(bytes.data());
    const auto* y = reinterpret_cast<const float*>(other.data());
    double top = 1e-6, apart = 0;
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      top = std::max(top, std::abs(static_cast<double>(y[i])));
      apart = std::max(apart, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    }
    EXPECT_LE(apart, tolerance * top) << name;
  }
}

TEST_F(DeviceRuns, ACheckpointGoesFromTheDeviceToTheProcessorAndBack) {
  EXPECT_TRUE(run_here(toml, in("cpu", "cpu")).finished);
  const std::filesystem::path want = checkpoint::list(files.folder("cpu")).back().folder;
  for (const std::string first : {"emulated", "cpu"}) {
    const std::string second = first == "cpu" ? "emulated" : "cpu";
    EXPECT_EQ(run_here(toml, in(first + "_first", first), false, 3).step, 3);
    EXPECT_TRUE(run_here(toml, in(first + "_first", second), true).finished);
    expect_near(checkpoint::list(files.folder(first + "_first")).back().folder, want, 2e-3);
  }
}

// States in codes, in bf16, of rows and columns, and averages, which validation measures.
TEST_F(DeviceRuns, StatesOfEveryOptimizerGoFromTheDeviceToTheProcessorAndBack) {
  const auto losses = [&](const std::string& run) {
    std::vector<double> all;
    for (const std::string& line : metrics_of(files.folder(run))) {
      const base::Json json = base::Json::parse("test", "metrics", line);
      for (const char* key : {"loss", "validation_loss"})
        if (json.has(key)) all.push_back(json.at(key).number());
    }
    return all;
  };
  for (const std::string optimizer : {"adamw8", "adamw16", "muon", "adafactor"}) {
    const auto sets = [&](const std::string& run, const std::string& device) {
      std::vector<std::string> all = in(run, device);
      all.insert(all.end(), {"train.optimizer=" + optimizer, "train.ema_decay=0.9"});
      return all;
    };
    EXPECT_TRUE(run_here(toml, sets(optimizer, "cpu")).finished);
    const std::vector<double> want = losses(optimizer);
    EXPECT_GE(want.size(), 8u);
    for (const std::string first : {"emulated", "cpu"}) {
      const std::string run = optimizer + "_" + first, second = first == "cpu" ? "emulated" : "cpu";
      EXPECT_EQ(run_here(toml, sets(run, first), false, 3).step, 3);
      EXPECT_TRUE(run_here(toml, sets(run, second), true).finished);
      const std::vector<double> got = losses(run);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3) << run << " " << i;
    }
  }
}

TEST_F(DeviceRuns, TextAndLossAreThoseOfTheProcessor) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "a bowl that broke is joined with gold, ";
  base::write_file_atomically(files.file("text.txt"), text);
  const auto must = [&](const std::string& arguments) {
    const Ended e = command(arguments);
    EXPECT_EQ(e.code, 0) << arguments << "\n" << e.err;
    return e.out;
  };
  must("prepare text.txt --tokenizer bytes --output text");
  must("train " + toml +
       " --set model.vocab=257 data.train=text/train data.validation=text/validation train.folder=run train.steps=20");
  const std::string text_of_cpu = must("generate run --prompt 'a bowl' --temperature 0 --length 12");
  for (const char* launches : {"joined", "each"}) {
    setenv("KINTSUGI_LAUNCHES", launches, 1);
    EXPECT_EQ(must("generate run --prompt 'a bowl' --temperature 0 --length 12 --set parallel.device=emulated"),
              text_of_cpu);
  }
  unsetenv("KINTSUGI_LAUNCHES");
  const auto loss = [&](const std::string& device) {
    const std::string said = must("evaluate run --data text/validation --set parallel.device=" + device);
    const size_t at = said.find("loss ");
    EXPECT_NE(at, std::string::npos) << said;
    return std::stod(said.substr(at + 5));
  };
  EXPECT_NEAR(loss("emulated"), loss("cpu"), 1e-4);
}

// When a program is bound: requested and free memory, and the parts of the plan, as in `plan --csv`.
TEST_F(DeviceRuns, TooLittleMemoryIsOneLineWithThePlan) {
  const auto words = [](const std::string& bytes) {
    return base::format_bytes(static_cast<uint64_t>(std::stoll(bytes)));
  };
  for (const std::string& layout : {std::string(), std::string(" parallel.pipe=2")}) {
    std::filesystem::remove_all(files.folder("failed"));
    std::string sets = layout;
    for (const std::string& set : in("failed", "emulated")) sets += " " + set;
    const Ended plan = command("plan " + toml + " --csv plan.csv --set" + sets);
    ASSERT_EQ(plan.code, 0) << plan.err;
    auto columns = columns_of(base::read_file(files.file("plan.csv")));
    const Ended e = command("train " + toml + " --set" + sets, "export KINTSUGI_EMULATE=memory=100000");
    EXPECT_EQ(e.code, 1) << e.out << e.err;
    const size_t rank = e.err.find("; rank 1 (stage 1 of 2) needs ") == std::string::npos ? 0 : 1;
    std::string parts;
    for (const program::MemoryPart& part : program::memory_parts()) {
      std::string name(part.name);
      std::replace(name.begin(), name.end(), ' ', '_');
      if (const std::string bytes = columns[name].at(rank); bytes != "0")
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.name, words(bytes));
    }
    const std::string total = columns["total"].at(rank);
    const std::string line = fmt::format(
        "error: [device] the device gives no more memory: {} are asked for, and 97.7 KiB are free; rank {}{} needs {} "
        "bytes: {}\n",
        words(total), rank, layout.empty() ? "" : fmt::format(" (stage {} of 2)", rank),
        base::group_digits(std::stoll(total)), parts);
    EXPECT_EQ(e.err.substr(std::min(e.err.size(), e.err.find("error: "))), line);  // behind warnings of few cores
  }
}

TEST_F(DeviceRuns, ADeviceThatFailsLosesNoCheckpoint) {
  std::string sets;
  for (const std::string& set : in("failed", "emulated")) sets += " " + set;
  const std::string train = "train " + toml + " --set" + sets;
  struct Fault {
    std::string emulate, says;
  };
  for (const Fault& fault :
       {Fault{"memory=100000", "the device gives no more memory"}, Fault{"fails_after=200", "the device failed"},
        Fault{"launches=100", "the device failed at the launch of a kernel"}}) {
    std::filesystem::remove_all(files.folder("failed"));
    const Ended e = command(train, "export KINTSUGI_EMULATE=" + fault.emulate);
    EXPECT_EQ(e.code, 1) << e.out << e.err;
    EXPECT_NE(e.err.find(fault.says), std::string::npos) << e.err;
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
  }
  // After some steps: saved checkpoints are complete, and the run continues from them.
  std::filesystem::remove_all(files.folder("failed"));
  const Ended whole = command(train);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto tensors = tensors_of(checkpoint::list(files.folder("failed")).back().folder);
  std::filesystem::remove_all(files.folder("failed"));
  int64_t fails_after = 400;
  for (Ended e; e.code != 0 || checkpoint::list(files.folder("failed")).empty(); fails_after += 400) {
    e = command(train + (checkpoint::list(files.folder("failed")).empty() ? "" : " --resume"),
                "export KINTSUGI_EMULATE=fails_after=" + std::to_string(fails_after));
    if (checkpoint::list(files.folder("failed")).empty()) std::filesystem::remove_all(files.folder("failed"));
    ASSERT_LT(fails_after, 10000);
  }
  EXPECT_GT(fails_after, 1000);
  EXPECT_TRUE(tensors_of(checkpoint::list(files.folder("failed")).back().folder) == tensors);
}

TEST_F(DeviceRuns, WordsOfTheEnvironment) {
  std::string sets;
  for (const std::string& set : in("words", "emulated")) sets += " " + set;
  for (const auto& [variable, says] :
       {std::pair<std::string, std::string>{"KINTSUGI_EMULATE=memroy=1000",
                                            "KINTSUGI_EMULATE: \"memroy=1000\" is none of memory=N, "},
        {"KINTSUGI_EMULATE=memory=-5", "KINTSUGI_EMULATE: \"memory=-5\" is none of"},
        {"KINTSUGI_LAUNCHES=all", "KINTSUGI_LAUNCHES is \"all\"; there are each, joined"},
        {"KINTSUGI_DEVICE_GROUPS=mpi", "KINTSUGI_DEVICE_GROUPS is \"mpi\"; there are shared, nccl, host"}}) {
    std::filesystem::remove_all(files.folder("words"));
    const Ended e = command("train " + toml + " --set parallel.data=2" + sets, "export " + variable);
    EXPECT_EQ(e.code, 1) << variable;
    EXPECT_NE(e.err.find(says), std::string::npos) << e.err;
  }
}

// A kernel that never ends: within a step, or while states are read.
TEST_F(DeviceRuns, ADeviceThatHangsEndsTheRunWithALine) {
  std::string sets = " parallel.timeout_seconds=1";
  for (const std::string& set : in("hung", "emulated")) sets += " " + set;
  for (const char* const after : {"10", "200", "2000"}) {
    std::filesystem::remove_all(files.folder("hung"));
    const Ended e =
        command("train " + toml + " --set" + sets, std::string("export KINTSUGI_EMULATE=hangs_after=") + after);
    EXPECT_EQ(e.signal, SIGTERM) << after << e.out << e.err;
    EXPECT_EQ(
        e.err,
        "error: [device] rank 0: what the device was given did not end within 1.1 s (parallel.timeout_seconds and "
        "a tenth); a step that takes longer needs more, else Xid lines of `dmesg` say whether it is the card\n")
        << after;
  }
}

}  // namespace
}  // namespace kintsugi::tests::device_runs_test
