// Scripts of every site compared with the files in golden/; and what a site does not support.
#include "kintsugi/jobs/job.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "tests/paths.h"

namespace kintsugi::jobs::job_test {
namespace {

namespace fs = std::filesystem;

Job job_at(const std::string& name, int64_t nodes, int64_t ranks) {
  Job job;
  const fs::path path = std::filesystem::path(tests::source_folder()) / "sites" / (name + ".toml");
  job.site = read_site(base::read_file(path), path.string());
  job.name = "kintsugi-first";
  job.asked = "kintsugi job run.toml --site " + name;
  job.command = "/opt/kintsugi/kintsugi";
  job.arguments = {"run.toml", "--set", "train.prompts=[\"it's\"]"};
  job.folder = "/home/me/my work";
  job.run_folder = "/home/me/my work/runs/first";
  job.script = "/home/me/my work/runs/first/job.sh";
  job.nodes = nodes;
  job.ranks = ranks;
  job.seconds = 3600;
  if (job.site.scheduler == launch::Scheduler::kubernetes) job.site.image = "me/kintsugi:1";
  return job;
}

std::string error_of(const Job& job) {
  try {
    check(job);
    return "";
  } catch (const base::UserError& e) {
    return e.what();
  }
}

struct Case {
  std::string site;
  int64_t nodes, ranks;
};

const Case kCases[] = {{"slurm", 4, 4},     {"pbs", 2, 4},      {"flux", 2, 4},       {"local", 1, 4},
                       {"frontier", 2, 16}, {"lumi", 2, 16},    {"perlmutter", 2, 8}, {"polaris", 10, 40},
                       {"aurora", 2, 24},   {"engaging", 2, 4}, {"kubernetes", 2, 4}};

TEST(Job, ScriptsAreThoseOfTheGoldenFiles) {
  for (const Case& c : kCases) {
    Job job = job_at(c.site, c.nodes, c.ranks);
    job.on_devices = job.site.vendor == "nvidia";
    EXPECT_EQ(error_of(job), "") << c.site;
    const std::string made = script(job);
    const std::string file = c.site + (c.site == "kubernetes" ? ".yaml" : ".sh");
    const fs::path golden = std::filesystem::path(tests::source_folder()) / "kintsugi/jobs/golden" / file;
    std::error_code error;
    const std::string expected = fs::exists(golden, error) ? base::read_file(golden) : "";
    if (made == expected) continue;
    const fs::path actual = fs::path(testing::TempDir()) / ("golden_" + file);
    std::ofstream(actual) << made;
    ADD_FAILURE() << golden << " differs from what is written now: " << actual;
  }
}

TEST(Job, MayStartWithFewerNodesAndHaveSpares) {
  Job job = job_at("slurm", 4, 8);
  job.least_nodes = 3;
  job.guard = true;
  EXPECT_EQ(error_of(job), "");
  std::string text = script(job);
  EXPECT_NE(text.find("#SBATCH --nodes=3-4\n#SBATCH --mincpus=2\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("#SBATCH --ntasks-per-node"), std::string::npos) << text;
  EXPECT_NE(text.find("--guard \"sbatch --parsable --kill-on-invalid-dep=yes --dependency=afternotok:$SLURM_JOB_ID "),
            std::string::npos)
      << text;
  job.least_nodes = 5;
  EXPECT_EQ(error_of(job), "[job] --least-nodes 5 is more than --nodes 4");
  job = job_at("slurm", 4, 8);
  job.spares = 1;
  text = script(job);
  EXPECT_NE(text.find("#SBATCH --nodes=5\n#SBATCH --ntasks-per-node=2\n"), std::string::npos) << text;
  job = job_at("local", 1, 4);
  job.guard = true;
  EXPECT_EQ(error_of(job),
            "[job] --guard needs a scheduler with dependencies between jobs; " + job.site.title + " has none");
}

TEST(Job, ScriptsAreThoseOfAShell) {
  const bool checked = std::system("command -v shellcheck >/dev/null") == 0;
  for (const Case& c : kCases) {
    if (c.site == "kubernetes") continue;
    const fs::path path = fs::path(testing::TempDir()) / ("job_script_" + c.site + ".sh");
    std::ofstream(path) << script(job_at(c.site, c.nodes, c.ranks));
    EXPECT_EQ(std::system(("bash -n " + path.string()).c_str()), 0) << c.site;
    // The script does not assign variables of the scheduler.
    if (checked) {
      EXPECT_EQ(std::system(("shellcheck --exclude=SC2154 " + path.string()).c_str()), 0) << c.site;
    }
    fs::remove(path);
  }
}

TEST(Job, WhatASiteCannotGiveIsRefused) {
  Job job = job_at("frontier", 100, 800);
  job.seconds = 3 * 3600;
  EXPECT_EQ(error_of(job), "");  // from 92 nodes on: 6 hours
  job.nodes = 91, job.ranks = 728;
  EXPECT_EQ(
      error_of(job),
      "[job] --time 03:00:00: partition batch of Frontier (OLCF) lets 91 nodes run 02:00:00 at most; more than 91 "
      "nodes may run that long");
  job.nodes = 9473, job.ranks = 9473;
  EXPECT_EQ(error_of(job), "[job] --nodes 9473: partition batch of Frontier (OLCF) gives at most 9472");
  job.nodes = 1, job.ranks = 9;
  EXPECT_EQ(error_of(job), "[job] 9 ranks on a node; a node of Frontier (OLCF) has places for 8: take 2 nodes");
  job.nodes = 4, job.ranks = 6;
  EXPECT_EQ(error_of(job), "[job] --nodes 4: 6 ranks do not divide among them; nearest: 4, 8");
  job.ranks = 1;
  EXPECT_EQ(error_of(job), "[job] --nodes 4: the run has 1 rank; --ranks 4 gives one to each node");
  job = job_at("frontier", 2, 16);
  job.partition = "debug";
  EXPECT_EQ(error_of(job), "[job] --partition debug: Frontier (OLCF) has no such partition; there are batch");
  job = job_at("frontier", 2, 16);
  job.needs_nvidia = true;
  EXPECT_EQ(
      error_of(job),
      "[job] parallel.device = \"cuda\": the devices of Frontier (OLCF) are amd's; set parallel.device = \"cpu\"");
  job = job_at("engaging", 1, 2);
  job.partition = "mit_normal";
  job.needs_nvidia = true;
  EXPECT_EQ(error_of(job),
            "[job] parallel.device = \"cuda\": nodes of partition mit_normal of Engaging (MIT ORCD) have no devices");
  job.partition = "mit_normal_gpu";
  EXPECT_EQ(error_of(job), "");
  job = job_at("polaris", 2, 8);
  EXPECT_EQ(error_of(job), "[job] --nodes 2: partition prod of Polaris (ALCF) takes at least 10");
  job = job_at("slurm", 1, 1);
  job.seconds = 100;
  EXPECT_EQ(error_of(job), "[job] --time 00:01:40: the run ends 120 s before the limit, which leaves no time to train");
  job = job_at("kubernetes", 1, 1);
  job.site.image.clear();
  EXPECT_EQ(error_of(job),
            "[job] Kubernetes with the MPI operator needs the name of a container image: site.image, in a copy of the "
            "site's file");
}

TEST(Job, TimesAreReadInSeveralForms) {
  EXPECT_EQ(seconds_of("90"), 5400);
  EXPECT_EQ(seconds_of("2h"), 7200);
  EXPECT_EQ(seconds_of("30m"), 1800);
  EXPECT_EQ(seconds_of("90s"), 90);
  EXPECT_EQ(seconds_of("1:30:00"), 5400);
  EXPECT_EQ(seconds_of("30:00"), 1800);
  EXPECT_EQ(seconds_of("2-12:00:00"), 216'000);
  for (const char* bad : {"", "0", "x", "1:60", "1:2:3:4", "-5", "1-", "1-25:00:00", "1e3", "999999999", "5 m", "10s"})
    EXPECT_THROW(seconds_of(bad), base::UserError) << bad;
  EXPECT_EQ(time_text(216'000), "2-12:00:00");
  EXPECT_EQ(time_text(90), "00:01:30");
}

}  // namespace
}  // namespace kintsugi::jobs::job_test
