#include "kintsugi/jobs/site.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "tests/paths.h"

namespace kintsugi::jobs::site_test {
namespace {

constexpr const char* kLeast = "[site]\ntitle = \"x\"\nscheduler = \"slurm\"\n[launch]\ncommand = \"srun\"\n";

std::string error_of(const std::string& text) {
  try {
    read_site(text, "my.toml");
    return "";
  } catch (const base::UserError& e) {
    return e.what();
  }
}

TEST(Site, IsReadFromText) {
  const Site site = read_site(R"([site]
title = "My cluster"
scheduler = "pbs"
again = "resubmit"
directives = ["-l place=scatter"]
modules = ["gcc/12"]
partition = "fast"
[node]
cores = 64
ranks = 4
devices = 2
vendor = "nvidia"
memory = "512 GiB"
[launch]
command = "mpiexec -n {ranks}"
devices = "--gpus {devices}"
[environment]
A_B = ["1", "because"]
[partitions]
fast = {limits = [[2, 0.5], [10, 24]], devices = 0, least_nodes = 2}
)",
                              "sites/my.toml");
  EXPECT_EQ(site.name, "my");
  EXPECT_EQ(site.title, "My cluster");
  EXPECT_EQ(site.scheduler, launch::Scheduler::pbs);
  EXPECT_FALSE(site.requeue);
  EXPECT_EQ(site.modules, std::vector<std::string>{"gcc/12"});
  EXPECT_EQ(site.cores, 64);
  ASSERT_EQ(site.environment.size(), 1u);
  EXPECT_EQ(site.environment[0].name, "A_B");
  EXPECT_EQ(site.environment[0].value, "1");
  EXPECT_EQ(site.environment[0].why, "because");
  ASSERT_EQ(site.partitions.size(), 1u);
  EXPECT_EQ(site.partitions[0].least_nodes, 2);
  EXPECT_EQ(site.partitions[0].devices, 0);
  ASSERT_EQ(site.partitions[0].limits.size(), 2u);
  EXPECT_EQ(site.partitions[0].limits[0].hours, 0.5);
}

TEST(Site, RefusesWhatIsWrong) {
  EXPECT_EQ(error_of(kLeast), "");
  EXPECT_EQ(error_of(std::string(kLeast) + "[node]\ncore = 3\n"),
            "[job] my.toml:7: unknown key node.core; [node] has cores, ranks, devices, vendor, memory");
  EXPECT_EQ(
      error_of(std::string(kLeast) + "[nodes]\n"),
      "[job] my.toml:6: unknown section [nodes]; there are [site], [node], [launch], [environment], [partitions]");
  EXPECT_EQ(error_of("[site]\ntitle = \"x\"\nscheduler = \"lsf\"\n"),
            "[job] my.toml:3: site.scheduler is \"lsf\"; there are slurm, pbs, flux, kubernetes, none");
  EXPECT_EQ(error_of("[site]\ntitle = \"x\"\nscheduler = \"slurm\"\n"), "[job] my.toml: launch.command is missing");
  EXPECT_EQ(error_of(std::string(kLeast) + "[node]\ncores = -1\n"),
            "[job] my.toml:7: node.cores must be an integer from 0 to 1000000");
  EXPECT_EQ(error_of(std::string(kLeast) + "[environment]\nA = \"1\"\n"),
            "[job] my.toml:7: environment.A must be [value, why it is needed]");
  EXPECT_EQ(error_of(std::string(kLeast) + "[partitions]\np = {limits = [[9, 1], [2, 2]]}\n"),
            "[job] my.toml:7: partitions.p.limits must be in order of nodes");
  EXPECT_EQ(error_of(std::string(kLeast) + "[partitions]\np = {hours = 2}\n"),
            "[job] my.toml:7: partitions.p has an unknown key hours; there are limits, devices, least_nodes");
  EXPECT_EQ(error_of("[site]\ntitle = \"x\"\nscheduler = \"slurm\"\n[launch]\ncommand = \"srun -n {tasks}\"\n"),
            "[job] my.toml:5: launch.command has {tasks}; there are {nodes}, {ranks}, {ranks_per_node}, {cores}, "
            "{devices}, {mpi}");
  EXPECT_EQ(error_of("[site\n").rfind("[job] my.toml:1: `[site` is not TOML: ", 0), 0u) << error_of("[site\n");
}

// A line break in a value would add a line to the script.
TEST(Site, RefusesValuesOfSeveralLines) {
  EXPECT_EQ(error_of(std::string(kLeast) + "[environment]\nA = [\"1\\nrm -r x\", \"y\"]\n"),
            "[job] my.toml:7: environment.A has more than one line");
}

TEST(Site, EveryFileOfTheFolderIsRead) {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(tests::source_folder()) / "sites")) {
    const Site site = read_site(base::read_file(entry.path()), entry.path().string());
    names.insert(site.name);
    EXPECT_FALSE(site.title.empty()) << site.name;
    for (const Setting& s : site.environment) EXPECT_GT(s.why.size(), 10u) << site.name << " " << s.name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"aurora", "engaging", "flux", "frontier", "kubernetes", "local", "lumi",
                                          "pbs", "perlmutter", "polaris", "slurm"}));
}

TEST(Site, AnUnknownNameListsThoseThatAreThere) {
  try {
    find_site("frontire");
    FAIL();
  } catch (const base::UserError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.rfind("[job] --site frontire: unknown site; known sites: ", 0), 0u) << text;
  }
}

}  // namespace
}  // namespace kintsugi::jobs::site_test
