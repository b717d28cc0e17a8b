// The command with bad input: one error line, exit code 1, and saved data remains intact.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "kintsugi/base/file.h"
#include "tests/patterns.h"
#include "tests/process.h"

namespace kintsugi::tests::bad_input_test {
namespace {

const std::string kNoValidation = " data.validation= train.evaluate_batches=0";

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void change_byte(const fs::path& path, size_t at, uint8_t mask) {
  std::string bytes = base::read_file(path);
  bytes.at(at) = static_cast<char>(static_cast<uint8_t>(bytes.at(at)) ^ mask);
  write(path, bytes);
}

// Flips a bit in the middle of a tensor of a safetensors file.
void damage(const fs::path& file, const std::string& tensor) {
  const std::string bytes = base::read_file(file);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto offsets = nlohmann::json::parse(bytes.substr(8, header)).at(tensor).at("data_offsets");
  change_byte(file, 8 + header + (offsets[0].get<size_t>() + offsets[1].get<size_t>()) / 2, 4);
}

// The lines of stderr, without progress and the start of a run; checksums are replaced by #.
std::string complaints(const std::string& err) {
  std::string kept;
  for (size_t begin = 0, end; (end = err.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = err.substr(begin, end + 1 - begin);
    if (!line.starts_with("step ") && !line.starts_with("resumed ")) kept += line;
  }
  return replaced(kept, "[0-9a-f]{16}", "#");
}

class BadInput : public testing::Test {
 protected:
  BadInput() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "Line " + std::to_string(i * i % 97) + " of a text that a model can learn.\n";
    write(folder / "text.txt", text);
    write(folder / "run.toml",
          "[model]\nlayers = 1\nembed = 16\nheads = 2\n"
          "[data]\ntrain = \"corpus/train\"\nvalidation = \"corpus/validation\"\n"
          "[train]\nfolder = \"run\"\nsteps = 3\nglobal_batch = 2\nsequence = 16\nevaluate_batches = 1\n"
          "[parallel]\nthreads = 1\n[checkpoint]\nevery = 1\nkeep = 9\n");
    EXPECT_EQ(kintsugi("prepare text.txt --tokenizer bytes --output corpus").code, 0);
  }

  Ended kintsugi(const std::string& arguments, const std::string& before = ":") {
    return run_kintsugi(folder.path(), arguments, before);
  }

  void expect_error(const std::string& arguments, const std::string& lines, const std::string& before = ":") {
    const Ended ended = kintsugi(arguments, before);
    EXPECT_EQ(ended.code, 1) << arguments << " ended by signal " << ended.signal;
    EXPECT_EQ(complaints(ended.err), lines) << arguments;
  }

  // Also with check, which does not train.
  void expect_config_error(const std::string& sets, const std::string& line) {
    for (const char* verb : {"check", "train"})
      expect_error(std::string(verb) + " run.toml --set train.folder=other " + sets, line);
  }

  // The run of run.toml, created once.
  void train() {
    const Ended ended = kintsugi("train run.toml");
    ASSERT_EQ(ended.code, 0) << ended.err;
  }

  fs::path weights(int step) { return folder / ("run/step_0000000" + std::to_string(step)) / "rank_00000.safetensors"; }

  TemporaryFolder folder;
};

}  // namespace

TEST_F(BadInput, Keys) {
  const auto with = [&](const std::string& line) {
    write(folder / "bad.toml", "[data]\ntrain = \"corpus/train\"\n" + line + "\n");
    const Ended ended = kintsugi("train bad.toml");
    EXPECT_EQ(ended.code, 1);
    return ended.err;
  };
  EXPECT_EQ(with("[train]\nstepz = 4"), "error: [config] bad.toml:4: unknown key train.stepz; did you mean steps?\n");
  EXPECT_EQ(with("[trian]\nsteps = 4"), "error: [config] bad.toml:3: unknown section [trian]; did you mean [train]?\n");
  EXPECT_EQ(with("[train]\nsteps = \"many\""),
            "error: [config] bad.toml:4: train.steps = \"many\" is a text; it must be an integer from 1 to "
            "1,000,000,000,000\n");
  EXPECT_EQ(with("[model]\ndropout = 1.5"),
            "error: [config] bad.toml:4: model.dropout = 1.5 is out of range; it must be a number from 0 to below 1\n");
  EXPECT_EQ(with("[model]\nembed = 100\nheads = 3"),
            "error: [config] bad.toml:4: model.embed = 100 is not divisible by model.heads = 3; nearest embed: 99, "
            "102; nearest heads: 2, 4\n");
  expect_config_error(
      "train.steps=0",
      "error: [config] --set: train.steps = 0 is out of range; it must be an integer from 1 to 1,000,000,000,000\n");
  expect_config_error(
      "model.context=8",
      "error: [config] --set: train.sequence = 16 is longer than model.context = 8; lower sequence or raise context\n");
  expect_config_error("model.vocab=100",
                      "error: [config] --set: model.vocab = 100 is less than the 257 of the data's tokenizer; raise "
                      "it, or leave it out\n");
  expect_error("train nowhere.toml", "error: [file] cannot open \"nowhere.toml\": No such file or directory\n");
  EXPECT_FALSE(fs::exists(folder / "other/metrics.jsonl"));
}

TEST_F(BadInput, TokenFiles) {
  const auto fresh = [&] {
    fs::copy(folder / "corpus", folder / "bad", fs::copy_options::overwrite_existing | fs::copy_options::recursive);
  };
  const std::string use = "data.train=bad/train";
  fresh();
  fs::resize_file(folder / "bad/train.bin", fs::file_size(folder / "corpus/train.bin") - 10);
  const auto bytes = fs::file_size(folder / "corpus/train.bin");
  expect_config_error(use, "error: [tokens] \"bad/train.bin\" has " + std::to_string(bytes - 10) +
                               " bytes, but its index describes " + std::to_string(bytes) +
                               ": it is cut short; make it again with prepare\n");
  fresh();
  fs::resize_file(folder / "bad/train.idx", 30);
  expect_config_error(use,
                      "error: [tokens] \"bad/train.idx\" is cut short: 30 bytes, its header alone has 34; make it "
                      "again with prepare\n");
  fresh();
  change_byte(folder / "bad/train.idx", 0, 1);
  expect_config_error(
      use, "error: [tokens] \"bad/train.idx\" is not the index of a token file: it does not begin with \"MMIDIDX\"\n");
  fresh();
  change_byte(folder / "bad/train.idx", 34, 1);  // the length of the only document
  expect_config_error(use, "error: [tokens] \"bad/train.bin\" has " + std::to_string(bytes) +
                               " bytes, but its index describes " + std::to_string(bytes + (bytes / 2 % 2 ? -2 : 2)) +
                               (bytes / 2 % 2 ? ": they do not belong together" : ": it is cut short") +
                               "; make it again with prepare\n");
  fresh();
  fs::remove(folder / "bad/train.idx");
  expect_config_error(use,
                      "error: [tokens] \"bad/train.idx\" is missing next to \"train.bin\"; a token file is a .bin and "
                      "an .idx of one name\n");
  expect_config_error("data.train=nowhere/train",
                      "error: [tokens] there is no token file \"nowhere/train\" (.bin and .idx); \"kintsugi prepare\" "
                      "makes one from text\n");
  // Files of another corpus under the same name, or damaged files written by prepare.
  const std::string again =
      "; prepare it again, or, if train.bin and train.idx are of another program, remove train.json\n";
  fresh();
  change_byte(folder / "bad/train.bin", 5, 1);
  expect_config_error(use,
                      "error: [tokens] \"bad/train.json\" describes another token file: one with the fingerprint # "
                      "instead of #" +
                          again);
  fresh();
  write(folder / "bad/train.json", "");
  expect_config_error(use, "error: [tokens] \"bad/train.json\" is empty" + again);
  write(folder / "bad/train.json", "{\"tokens\": 4");
  expect_config_error(
      use,
      "error: [tokens] \"bad/train.json\":1: the JSON ends too early, after 12 bytes; it seems to be cut off" + again);
  // A file of another program, without our metadata.
  fresh();
  for (const char* name : {"bad/train.json", "bad/tokenizer.json"}) fs::remove(folder / name);
  expect_config_error(use + " model.vocab=100" + kNoValidation,
                      "error: [data] \"bad/train.bin\" holds the id 120, but the model's vocabulary has 100; vocab "
                      "must be at least 121\n");
  expect_config_error(
      use + kNoValidation,
      "error: [config] no tokenizer.json next to \"bad/train\": set model.vocab to the size of its vocabulary\n");
}

TEST_F(BadInput, Tokenizers) {
  ASSERT_EQ(kintsugi("prepare text.txt --tokenizer chars --output chars").code, 0);
  const std::string differ = " were made with different tokenizers; prepare both with one\n";
  expect_config_error("'data.train=[\"corpus/train\", \"chars/train\"]'",
                      "error: [data] \"corpus/train\" and \"chars/train\"" + differ);
  expect_config_error("data.validation=chars/validation",
                      "error: [data] \"corpus/train\" and \"chars/validation\"" + differ);
  train();
  expect_error("evaluate run --data chars/validation",
               "error: [evaluate] \"chars/validation\" was prepared with a different tokenizer than "
               "\"run/step_00000003\"; prepare it with "
               "--tokenizer run/step_00000003/tokenizer.json\n");
  // Only the fingerprint differs.
  fs::remove(folder / "chars/tokenizer.json");
  expect_config_error("data.validation=chars/validation",
                      "error: [data] \"corpus/train\" and \"chars/validation\"" + differ);
  fs::copy_file(folder / "corpus/tokenizer.json", folder / "chars/tokenizer.json");
  expect_config_error("data.validation=chars/validation",
                      "error: [data] \"chars/validation\" was made with a different tokenizer than "
                      "\"chars/tokenizer.json\" next to it; prepare it again\n");
  fs::remove(folder / "corpus/train.json");
  fs::remove(folder / "corpus/validation.json");
  fs::resize_file(folder / "corpus/tokenizer.json", 20);
  const std::string damaged =
      "\"corpus/tokenizer.json\":2: the JSON ends too early, after 20 bytes; it seems to be cut off\n";
  expect_config_error("", "error: [tokenizer] " + damaged);
  expect_error("prepare text.txt --tokenizer corpus/tokenizer.json --output more", "error: [tokenizer] " + damaged);
}

TEST_F(BadInput, ADamagedCheckpoint) {
  train();
  fs::copy(folder / "run", folder / "copy", fs::copy_options::recursive);
  damage(weights(3), "embedding.table");
  const auto said = [](const std::string& run, int step) {
    return "[checkpoint] \"" + run + "/step_0000000" + std::to_string(step) +
           "/rank_00000.safetensors\": tensor \"embedding.table\" is damaged: its checksum is #, the index says #; "
           "load another step\n";
  };
  expect_error("generate run/step_00000003 --length 1", "error: " + said("run", 3));
  expect_error("evaluate run/step_00000003", "error: " + said("run", 3));
  expect_error("train run.toml --set train.folder=next train.init_from=run/step_00000003", "error: " + said("run", 3));
  // A run's folder names its newest complete checkpoint; stdout contains only the text.
  const Ended text = kintsugi("generate run --length 4 --prompt Line --temperature 0");
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(complaints(text.err), "warning: step 3 is skipped: " + said("run", 3));
  EXPECT_EQ(text.out.substr(0, 4), "Line");

  const Ended resumed = kintsugi("train run.toml --resume --set train.steps=4");
  EXPECT_EQ(resumed.code, 0);
  EXPECT_EQ(complaints(resumed.err), "warning: step 3 is skipped: " + said("run", 3));
  EXPECT_NE(resumed.err.find("resumed at step 2 from run/step_00000002\n"), std::string::npos) << resumed.err;
  // The numbers equal those of an undamaged run.
  EXPECT_EQ(kintsugi("train run.toml --resume --set train.folder=copy train.steps=4").code, 0);
  EXPECT_EQ(base::read_file(weights(4)), base::read_file(folder / "copy/step_00000004/rank_00000.safetensors"));

  for (int step = 1; step <= 4; ++step) damage(weights(step), "embedding.table");
  const std::string metrics = base::read_file(folder / "run/metrics.jsonl");
  std::string all;
  for (int step = 4; step >= 1; --step)
    all += "warning: step " + std::to_string(step) + " is skipped: " + said("run", step);
  expect_error("train run.toml --resume --set train.steps=5",
               all +
                   "error: [train] nothing to resume in \"run\": each of its 4 checkpoints is damaged; start over in "
                   "another train.folder\n");
  EXPECT_EQ(base::read_file(folder / "run/metrics.jsonl"), metrics);
  expect_error(
      "generate run",
      all + "error: [checkpoint] \"run\" holds no whole checkpoint; a checkpoint or a run's folder is needed\n");
}

TEST_F(BadInput, AFullDisk) {
  train();
  expect_error("train run.toml --resume --set train.steps=5",
               "error: [checkpoint] step 4 is not saved, earlier checkpoints are untouched: cannot write "
               "\"run/.part-step_00000004/rank_00000.safetensors\": File too large\n",
               "ulimit -f 100");
  EXPECT_FALSE(fs::exists(folder / "run/.part-step_00000004"));
  const Ended resumed = kintsugi("train run.toml --resume --set train.steps=5");
  EXPECT_EQ(resumed.code, 0);
  EXPECT_EQ(complaints(resumed.err), "");
  EXPECT_NE(resumed.err.find("resumed at step 3 from run/step_00000003\n"), std::string::npos) << resumed.err;
  expect_error("train run.toml --set train.folder=more train.steps=500 checkpoint.every=0 train.evaluate_every=0",
               "error: [metrics] cannot write \"more/metrics.jsonl\": File too large\n", "ulimit -f 40");
}

TEST_F(BadInput, AFolderThatCannotBeWritten) {
  write(folder / "file", "");
  expect_error("train run.toml --set train.folder=file/run",
               "error: [file] cannot make folder \"file/run\": Not a directory\n");
  fs::create_directories(folder / "odd/.lock");
  expect_error("train run.toml --set train.folder=odd", "error: [file] cannot write \"odd/.lock\": Is a directory\n");
  fs::create_directories(folder / "late/config.toml.part");
  expect_error("train run.toml --set train.folder=late",
               "error: [file] cannot write \"late/config.toml.part\": Is a directory\n");
  train();
  fs::remove(folder / "run/metrics.jsonl");
  fs::create_directories(folder / "run/metrics.jsonl");
  expect_error("train run.toml --resume --set train.steps=4",
               "error: [metrics] \"run/metrics.jsonl\" is not a regular file; move it away\n");
  if (::geteuid() == 0) return;  // who may write everywhere
  fs::permissions(folder / "late", fs::perms::owner_read | fs::perms::owner_exec);
  expect_error("train run.toml --set train.folder=late/run",
               "error: [file] cannot make folder \"late/run\": Permission denied\n");
  fs::permissions(folder / "late", fs::perms::owner_all);
}

TEST_F(BadInput, AUsedFolder) {
  train();
  const std::string before = base::read_file(folder / "run/metrics.jsonl");
  expect_error("train run.toml",
               "error: [train] \"run\" already holds a run; continue it with --resume, or set another train.folder\n");
  fs::create_directory(folder / "other");
  std::ofstream(folder / "other/index.json") << "{}";
  expect_error("train run.toml --set train.folder=other",
               "error: [train] \"other\" holds a checkpoint, which other commands would read instead of the run; set "
               "another train.folder\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "other"), fs::directory_iterator()), 1);
  const auto refused = [](const std::string& what) {
    return "error: [resume] --set: " + what +
           "; a resumed run keeps these settings: set them back, or train in another folder\n";
  };
  expect_error("train run.toml --resume --set train.seed=3", refused("train.seed is 3, was 1"));
  expect_error("train run.toml --resume --set model.heads=4 model.kv_heads=4",
               refused("model.heads is 4, was 2; model.kv_heads is 4, was 2; model.head_dim is 4, was 8"));
  expect_error("train run.toml --resume --set train.global_batch=4", refused("train.global_batch is 4, was 2"));
  expect_error("train run.toml --resume --set train.folder=new",
               "error: [train] nothing to resume in \"new\": it has no config.toml; start without --resume\n");
  EXPECT_EQ(base::read_file(folder / "run/metrics.jsonl"), before);
}

TEST_F(BadInput, LessMemoryThanTheProgramNeeds) {
  const std::string sets = " --set train.folder=big model.embed=2048 model.heads=16";
  const std::string check = kintsugi("check run.toml" + sets).out;
  const std::vector<Match> found = find_all(check, "# +peak +[0-9]+ bytes \\((.*)\\)");
  ASSERT_EQ(found.size(), 1u);
  expect_error("train run.toml" + sets,
               "error: [run] cannot allocate the " + found[0].groups[1] +
                   " that the program needs; a smaller train.micro_batch needs less\n",
               "ulimit -v 600000");
}

TEST_F(BadInput, ALossThatIsNotFinite) {
  // The first update overflows every weight in fp32.
  expect_error("train run.toml --set train.folder=a train.learning_rate=1e39" + kNoValidation,
               "error: [train] step 2: the loss is not finite; first bad value: weight embedding.table, before the "
               "step; the newest checkpoint, "
               "a/step_00000001, has it too: resume from an older one or start over, with a smaller learning_rate\n");
  expect_error("train run.toml --set train.folder=b train.learning_rate=1e39 checkpoint.every=0" + kNoValidation,
               "error: [train] step 2: the loss is not finite; first bad value: weight embedding.table, before the "
               "step; nothing was saved yet: try a smaller learning_rate\n");
  // The weights are finite; their matmuls overflow.
  expect_error("train run.toml --set train.folder=c train.learning_rate=1e25 parallel.device=reference" + kNoValidation,
               "error: [train] step 2: the loss is not finite; first bad value: layer 0, forward: contract makes add "
               "of micro-batch 0; the newest checkpoint, "
               "c/step_00000001, is whole: try a smaller learning_rate\n");
}

TEST_F(BadInput, TwoRunsInOneFolder) {
  Process first(folder.path(), "train run.toml --set train.steps=1000000 checkpoint.every=0");
  ASSERT_TRUE(first.wait_for([&] { return fs::exists(folder / "run/metrics.jsonl"); }));
  const std::string taken =
      "error: [file] another process trains in \"run\"; wait for it, or set another train.folder\n";
  expect_error("train run.toml", taken);
  expect_error("train run.toml --resume", taken);
  ASSERT_TRUE(first.runs());
  first.send(SIGKILL);
  first.wait();
  EXPECT_EQ(kintsugi("train run.toml --resume").code, 0);  // a dead process holds nothing
}

TEST_F(BadInput, SignalsFinishTheStepAndSave) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    fs::remove_all(folder / "run");
    Process process(folder.path(), "train run.toml --set train.steps=1000000 checkpoint.every=0");
    const auto lines = [&] {
      const std::string text =
          fs::exists(folder / "run/metrics.jsonl") ? base::read_file(folder / "run/metrics.jsonl") : "";
      return std::count(text.begin(), text.end(), '\n');
    };
    ASSERT_TRUE(process.wait_for([&] { return lines() > 2; }));
    process.send(signal);
    const Ended ended = process.wait();
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(complaints(ended.err), "");
    const std::string step = std::to_string(lines()), padded = std::string(8 - step.size(), '0') + step;
    EXPECT_EQ(ended.out, "checkpoint run/step_" + padded + "\nstopped after step " + step +
                             " (signal); continue with: kintsugi train run.toml --resume --set train.steps=1000000 "
                             "checkpoint.every=0\n");
    const Ended resumed = kintsugi("train run.toml --resume --set train.steps=" + std::to_string(lines() + 1));
    EXPECT_EQ(resumed.code, 0);
    EXPECT_NE(resumed.err.find("resumed at step " + step + " from run/step_" + padded + "\n"), std::string::npos)
        << resumed.err;
  }
}

// A signal handler's frame on a compute thread's stack would overwrite its data.
TEST_F(BadInput, OneThreadTakesSignalsAndItDoesNotCompute) {
  Process process(folder.path(),
                  "train run.toml --set train.steps=1000000 checkpoint.every=0 parallel.data=2 parallel.threads=2");
  ASSERT_TRUE(process.wait_for([&] { return fs::exists(folder / "run/metrics.jsonl"); }));
  constexpr uint64_t kSignals = 1ull << (SIGINT - 1) | 1ull << (SIGTERM - 1);
  // For each thread, whether it accepts these signals.
  const auto read = [&] {
    std::map<std::string, bool> takes;
    for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process.pid()) + "/task")) {
      std::ifstream status(task.path() / "status");  // empty if it has just ended
      for (std::string key; status >> key;)
        if (key == "SigBlk:" && status >> key)
          takes[task.path().filename()] = (std::stoull(key, nullptr, 16) & kSignals) != kSignals;
    }
    return takes;
  };
  // The list may be incomplete while threads start or exit.
  std::map<std::string, bool> threads, before;
  ASSERT_TRUE(process.wait_for([&] {
    before = std::move(threads);
    threads = read();
    return threads == before;
  }));
  const auto taking = std::count_if(threads.begin(), threads.end(), [](const auto& t) { return t.second; });
  EXPECT_GE(threads.size(), 3u);
  EXPECT_EQ(taking, 1);
}

TEST_F(BadInput, ASecondSignalEndsAtOnce) {
  for (const auto& [one, two] : {std::pair{SIGINT, SIGINT}, std::pair{SIGTERM, SIGINT}}) {
    fs::remove_all(folder / "run");
    // A step takes seconds.
    Process process(
        folder.path(),
        "train run.toml --set parallel.device=reference model.embed=128 model.layers=2 train.global_batch=16 "
        "train.sequence=128 train.evaluate_every=0 checkpoint.every=0");
    const fs::path metrics = folder / "run/metrics.jsonl";
    ASSERT_TRUE(process.wait_for([&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; }));
    process.send(one);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ASSERT_TRUE(process.runs());  // it finishes the step
    process.send(two);
    ASSERT_TRUE(process.wait_for([&] { return !process.runs(); }));
    const Ended ended = process.wait();
    EXPECT_EQ(ended.signal, two);
    for (const auto& entry : fs::directory_iterator(folder / "run"))
      EXPECT_NE(entry.path().filename().string().substr(0, 5), "step_");
  }
}

}  // namespace kintsugi::tests::bad_input_test
