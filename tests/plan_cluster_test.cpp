// `plan --cluster` beyond the step time: memory, slow ranks, failures, more devices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/simulate/failures.h"
#include "tests/paths.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/ranks_folder.h"

namespace kintsugi::tests::plan_cluster_test {
namespace {

class PlanCluster : public testing::Test, public RanksFolder {
 protected:
  PlanCluster() { write_cluster("[reliability]\nnode = \"1000 h\"\nrestart = \"5 min\"\n"); }

  // Round numbers: an instantaneous network, so that compute determines the time.
  void write_cluster(const std::string& more, const std::string& storage = "[storage]\nbandwidth = \"1 MB/s\"\n") {
    std::ofstream(folder / "cluster.toml")
        << "[cluster]\nname = \"Test\"\nnodes = 16\ndevices_per_node = 2\n"
           "[device]\nunits = 4\nmemory = \"1 GB\"\nmemory_bandwidth = \"10 GB/s\"\nkernel_start = \"1 us\"\n"
           "[peak]\nfp32 = \"100 GFLOP/s\"\nbf16 = \"200 GFLOP/s\"\n"
           "[products]\nshare = 0.5\ndepth = 10\nstart = \"1 us\"\ntiles = [\"16x16\"]\n"
           "[attention]\nforward = 0.3\nbackward = 0.2\n"
           "[node]\nbandwidth = \"100 GB/s\"\nstart = \"1 ns\"\nstep = \"1 ns\"\n"
           "[network]\nbandwidth = \"10 GB/s\"\nstart = \"1 us\"\nstep = \"1 us\"\n"
        << storage << more;
  }
  std::string plan(const std::string& arguments) const {
    const Ended ended = run_kintsugi(folder.path(), "plan run.toml --cluster cluster.toml " + arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  }
  // Nothing is printed before it.
  std::string error_of(const std::string& arguments) const {
    const Ended ended = run_kintsugi(folder.path(), "plan run.toml --cluster cluster.toml " + arguments);
    EXPECT_EQ(ended.out, "") << arguments;
    return complaint(ended.err);
  }
};

// The groups of the only match in the text.
std::vector<std::string> only(const std::string& text, const std::string& pattern) {
  const std::vector<Match> found = find_all(text, pattern);
  return found.size() == 1 ? found[0].groups : std::vector<std::string>();
}

// Of a safetensors file.
uint64_t bytes_of_tensors(const std::string& file) {
  uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  return file.size() - sizeof header - header;
}

}  // namespace

// A GPU's or a CPU's: not this machine's.
TEST_F(PlanCluster, AnOpenDeviceIsThatOfTheCluster) {
  const auto memory = [&](const std::string& device) {
    const std::string page = plan("--set parallel.device=" + device);
    return page.substr(page.find("memory of a rank"), page.find("a step on") - page.find("memory of a rank"));
  };
  const std::string card = memory("cuda"), processor = memory("cpu");
  EXPECT_NE(card, processor);
  EXPECT_EQ(memory("auto"), card);
  std::string cluster = base::read_file(folder / "cluster.toml");
  cluster.replace(cluster.find("units = 4"), 0, "threads = 1\n");
  std::ofstream(folder / "cluster.toml") << cluster;
  EXPECT_EQ(memory("auto"), processor);
}

// The sequence lengths of Megatron-DeepSpeed's page that are nearest to a limit; bench/published/lengths.py has all.
// With two micro-batches, gradients are kept for the whole step, as there.
TEST_F(PlanCluster, LengthsThatRunOutOfMemory) {
  std::string cluster = base::read_file(source_folder() + "/clusters/selene.toml");
  const std::string memory = "memory = \"80 GiB\"";
  cluster.replace(cluster.find(memory), memory.size(), "memory = \"40 GiB\"");
  std::ofstream(folder / "cluster.toml") << cluster;
  const auto fits = [&](int64_t length, const std::string& layout) {
    std::ofstream(folder / "run.toml") << fmt::format(
        "[model]\nlayers = 64\nembed = 6144\nheads = 64\nvocab = 50304\ncontext = {0}\n[train]\nsequence = {0}\n"
        "global_batch = 2\nmicro_batch = 1\ndtype = \"bf16\"\n[parallel]\ndevice = \"cuda\"\nranks = 32\ntensor = "
        "32\n{1}",
        length, layout);
    return plan("").find("does not fit") == std::string::npos;
  };
  const std::string old = "recompute = \"none\"\n", split = "recompute = \"full\"\nsequence_parallel = true\n";
  EXPECT_TRUE(fits(4 << 10, old));
  EXPECT_FALSE(fits(8 << 10, old));
  EXPECT_TRUE(fits(256 << 10, split + "rules = [\"position -> tensor\"]\n"));
  EXPECT_FALSE(fits(256 << 10, split));  // each rank has the whole table of positions
}

// NeMo's distributed optimizer does so without a key.
TEST_F(PlanCluster, ASoftwareSplitsStatesOverContext) {
  const std::string layout = "--set parallel.data=2 parallel.context=2 parallel.zero=1 ";
  const std::string whole = plan(layout), ours = plan(layout + "parallel.shard_context=true"),
                    nemo = plan("--software megatron-2025 " + layout);
  const auto optimizer = [](const std::string& page) {
    return page.substr(page.find("bytes: states"), page.find("bytes: the rest") - page.find("bytes: states"));
  };
  EXPECT_NE(optimizer(ours), optimizer(whole));
  EXPECT_EQ(optimizer(nemo), optimizer(ours));
}

// With CPU kernels, as GPUs have none for experts.
TEST_F(PlanCluster, ModelsWithExpertsOnCards) {
  std::ofstream(folder / "run.toml") << "[model]\nfamily = \"mixtral\"\nlayers = 2\nembed = 64\nheads = 4\nexperts = "
                                        "4\nvocab = 256\n[train]\nsequence = 32\nglobal_batch = 8\nmicro_batch = 1\n"
                                        "[parallel]\ndata = 2\nexpert = 2\n";
  EXPECT_NE(plan("").find("a step on Test: 4 of "), std::string::npos);
}

// With the kernels of cards.
TEST_F(PlanCluster, ModelsOfImagesOnCards) {
  std::ofstream(folder / "run.toml") << "[model]\nfamily = \"resnet18\"\nimage_channels = 3\nimage_height = "
                                        "32\nimage_width = 32\noutputs = 10\n[train]\nglobal_batch = 8\n"
                                        "micro_batch = 1\n[parallel]\ndata = 2\nspace = 2\n";
  EXPECT_NE(plan("").find("a step on Test: 4 of "), std::string::npos);
}

// In seconds of one core and at most 2 GiB, libraries included.
TEST_F(PlanCluster, ThousandsOfDevicesTakeSeconds) {
  const auto within =
      [&](int seconds, const std::string& layout, const std::string& model) {
        std::ofstream(folder / "run.toml")
            << "[parallel]\ntensor = 8\nzero = 1\nsequence_parallel = true\nrecompute = \"full\"\n"
            << layout << "[train]\nsequence = 2048\nmicro_batch = 1\ndtype = \"bf16\"\n"
            << model;
        const Ended ended = run_kintsugi(
            folder.path(), fmt::format("plan run.toml --cluster {}/clusters/frontier.toml", source_folder()),
            fmt::format("ulimit -t {} && ulimit -v {}", seconds, 2 << 20));
        EXPECT_EQ(ended.code, 0) << ended.err;
        return ended.out;
      };
  const std::string of_175b = within(5, "data = 16\npipe = 8\nschedule = \"interleaved\"\nchunks = 3\n",
                                     "global_batch = 1536\n[model]\nname = \"gpt3-175b\"\nvocab = 51200\n");
  EXPECT_NE(of_175b.find("\na step on Frontier: 1,024 of "), std::string::npos) << of_175b;
  const std::string of_1t =
      within(10, "data = 20\npipe = 64\n", "global_batch = 3200\n[model]\nname = \"megatron-1t\"\n");
  EXPECT_NE(of_1t.find("\na step on Frontier: 10,240 of "), std::string::npos) << of_1t;
}

// On one device everything is kernels; with stages, the others wait.
TEST_F(PlanCluster, ASlowRank) {
  EXPECT_NE(plan("--slow-rank 0 --slower 50").find("a slow rank   rank 0 (stage 0), kernels 50% slower: "),
            std::string::npos);
  EXPECT_NE(plan("--slow-rank 0 --slower 50").find(" a step, 50.0% longer\n"), std::string::npos);
  const std::string staged = plan("--slow-rank 3 --slower 100 --set parallel.pipe=2 parallel.data=2");
  const std::vector<std::string> found =
      only(staged, "rank 3 \\(stage 1\\), kernels 100% slower: .* ([0-9.]+)% longer");
  ASSERT_EQ(found.size(), 2u) << staged;
  EXPECT_GT(std::stod(found[1]), 50);
  EXPECT_LT(std::stod(found[1]), 100);
  EXPECT_EQ(error_of("--slower 50"),
            "error: [kintsugi plan] --slower requires --slow-rank; see kintsugi plan --help\n");
  EXPECT_EQ(error_of("--slow-rank 4 --set parallel.data=4"), "error: [plan] --slow-rank 4: the ranks are 0 to 3\n");
}

// Equals what a run writes, in every layout.
TEST_F(PlanCluster, TheBytesOfACheckpoint) {
  int number = 0;
  for (const std::string layout : {"data=1", "data=4 zero=3", "pipe=2 tensor=2", "context=2 data=2 zero=1"})
    for (const std::string dtype : {"fp32", "bf16"}) {
      const std::string run = fmt::format("run{}", ++number);
      const std::string sets =
          "train.steps=1 train.micro_batch=2 data.validation= train.evaluate_every=0 "
          "train.evaluate_batches=0 parallel.transport=threads train.dtype=" +
          dtype;
      ASSERT_EQ(run_kintsugi(folder.path(), arguments(run, layout, sets)).code, 0) << layout;
      uint64_t written = 0;
      for (const auto& entry : fs::directory_iterator(folder / run / "step_00000001"))
        if (entry.path().extension() == ".safetensors") written += bytes_of_tensors(base::read_file(entry.path()));
      EXPECT_GT(written, 100'000u);
      const std::string page = plan(arguments("x", layout, sets).substr(std::string("train run.toml").size()));
      EXPECT_NE(page.find("\n  checkpoint    " + base::format_bytes(written) + ", "), std::string::npos)
          << layout << " " << written << "\n"
          << page;
    }
}

TEST_F(PlanCluster, Failures) {
  const std::string page = plan("--set parallel.data=4");
  const std::vector<std::string> found =
      only(page,
           "\n  checkpoint    [0-9.]+ KiB, ([0-9.]+) ms to write\n"
           "  failures      one every 20d20h on 2 nodes, 5m00s to restart: ([0-9.]+)% of the time trains,\n"
           " +with a checkpoint every .* \\(([0-9,]+) steps\\): \\[checkpoint\\] every_minutes = ([0-9.]+)\n");
  ASSERT_EQ(found.size(), 5u) << page;
  const simulate::Failures f = {.between = 1000.0 * 3600 / 2, .restart = 300, .write = std::stod(found[1]) * 1e-3};
  const double best = simulate::best_interval(f);
  EXPECT_NEAR(std::stod(found[4]), best / 60, 0.01 * best / 60);
  EXPECT_NEAR(std::stod(found[2]), 100 * simulate::useful_share(f, best), 0.06);
  // Options override the file.
  EXPECT_NE(plan("--node-failures 2 --restart 1 --set parallel.data=4").find("one every 1h00m on 2 nodes, 1m00s to"),
            std::string::npos);
  EXPECT_NE(plan("--node-failures 1 --restart 90000").find("to restart: the run gets nowhere\n"), std::string::npos);

  write_cluster("", "");
  EXPECT_EQ(plan("").find("failures"), std::string::npos);
  EXPECT_EQ(error_of("--restart 5"),
            "error: [plan] --restart needs --node-failures, or reliability.node in cluster.toml\n");
  EXPECT_EQ(error_of("--node-failures 10"),
            "error: [plan] cluster.toml: storage.bandwidth is missing, and with failures it decides how long a "
            "checkpoint takes\n");
  write_cluster("[reliability]\nnode = \"10 us\"\n");
  EXPECT_EQ(error_of(""),
            "error: [cluster] cluster.toml:32: reliability.node is \"10 us\", out of range; it must be from 1 h to "
            "2.778e+06 h\n");
}

// A block for each call, and for each wait in between.
TEST_F(PlanCluster, ATimeline) {
  plan("--timeline t.svg --set parallel.pipe=2 parallel.data=2 train.micro_batch=1");
  const std::string svg = base::read_file(folder / "t.svg");
  for (const char* text : {">stage 0<", ">stage 1<", ">waiting for another stage<", "<title>transfers over pipe, "})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  for (const char* work : {"forward", "backward"})
    for (int m = 0; m < 4; ++m)
      EXPECT_EQ(find_all(svg, fmt::format("<title>{} of chunk [01], micro-batch {}: ", work, m)).size(), 2u)
          << work << m;
}

TEST_F(PlanCluster, MoreDevices) {
  const std::string page = plan("--devices 4,2,16,8 --set parallel.tensor=2 --svg s.svg --times s.csv");
  EXPECT_TRUE(
      page.starts_with("scaling on Test: a replica of the model takes 2 device\n"
                       "strong scaling: the batch of the run, 8 samples\n"))
      << page;
  EXPECT_NE(page.find("weak scaling: as many samples a replica as in the run, 8\n"), std::string::npos);
  // Each row equals the plan of that layout alone.
  const std::vector<Match> rows = find_all(base::read_file(folder / "s.csv"),
                                           "([0-9]+),([0-9]+),8,([0-9.e-]+),([0-9]+),"
                                           "([0-9.e-]+)\n");
  ASSERT_EQ(rows.size(), 4u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<std::string>& g = rows[i].groups;
    EXPECT_EQ(std::stoi(g[1]), 2 << i);
    EXPECT_EQ(std::stoi(g[4]), 8 << i);
    for (const bool weak : {false, true}) {
      const int data = std::stoi(g[2]), samples = weak ? std::stoi(g[4]) : 8;
      plan(
          fmt::format("--times one.csv --set parallel.tensor=2 parallel.data={} train.global_batch={} "
                      "train.micro_batch={}",
                      data, samples, samples / data));
      const std::vector<Match> one = find_all(base::read_file(folder / "one.csv"), "\n0,([0-9.e-]+),");
      ASSERT_EQ(one.size(), 1u);
      EXPECT_EQ(one[0].groups[1], g[weak ? 5 : 3]) << g[0];
    }
  }
  EXPECT_TRUE(base::read_file(folder / "s.svg").ends_with("</svg>\n"));
  EXPECT_EQ(find_all(base::read_file(folder / "s.svg"), "<circle ").size(), 8u);

  EXPECT_NE(plan("--devices 16 --set train.global_batch=8").find("the batch does not divide"), std::string::npos);
  EXPECT_EQ(error_of("--devices 3 --set parallel.tensor=2"),
            "error: [plan] --devices 3: a replica of the run's layout takes 2 devices; write a multiple\n");
  EXPECT_EQ(error_of("--devices 64"), "error: [plan] --devices 64: cluster.toml has 32: 16 nodes of 2\n");
  EXPECT_EQ(error_of("--devices 8,x"),
            "error: [plan] --devices \"8,x\": write numbers of devices from 1 to 1,000,000, e.g. 8 or 8,64,512\n");
  EXPECT_EQ(error_of("--devices 8,16 --search"), "error: [plan] --search takes one number of --devices\n");
  EXPECT_EQ(error_of("--devices 8,16 --stage 0"),
            "error: [plan] --devices without --search takes no --stage: plan one number of devices with --stage\n");
}

}  // namespace kintsugi::tests::plan_cluster_test
