#include "kintsugi/jobs/placement.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::jobs::placement_test {
namespace {

using Names = std::vector<std::string>;

Suspect suspect(const std::string& node) {
  return {.node = node, .since = 10, .until = 20, .job = "", .why = "a node was lost", .excluded = true};
}

std::string error_of(const JobNodes& nodes, const std::vector<Suspect>& excluded, int64_t ranks, bool shrink) {
  try {
    place(nodes, excluded, ranks, 1, shrink);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Placement, LeavesOutWhatIsDownOrExcluded) {
  const JobNodes nodes = {{"n1", "n2", "n3", "n4"}, {"n2"}};
  const Placement p = place(nodes, {suspect("n3")}, 8, 2, true);
  EXPECT_EQ(p.used, (Names{"n1", "n4"}));
  EXPECT_EQ(p.left_out, (Names{"n2", "n3"}));
  EXPECT_EQ(p.ranks, 4);
}

TEST(Placement, TakesSparesFirst) {
  const Placement p = place({{"n1", "n2", "n3", "n4"}, {}}, {suspect("n1")}, 2, 1, false);
  EXPECT_EQ(p.used, (Names{"n2", "n3"}));
  EXPECT_EQ(p.spare, (Names{"n4"}));
  EXPECT_EQ(p.ranks, 2);
}

TEST(Placement, UsesSuspectsRatherThanNothing) {
  EXPECT_EQ(place({{"n1"}, {}}, {suspect("n1")}, 1, 1, true).used, (Names{"n1"}));
  EXPECT_EQ(place({{"n1", "n2"}, {}}, {suspect("n1")}, 2, 1, false).used, (Names{"n1", "n2"}));
}

TEST(Placement, NodesThatAreTooFewAreRefusedWithTheirReasons) {
  EXPECT_EQ(error_of({{"n1"}, {"n1"}}, {suspect("n1")}, 1, true),
            "[launch] no node of the job is left; n1: a node was lost");
  EXPECT_EQ(error_of({{"n1", "n2"}, {"n2"}}, {}, 2, false),
            "[launch] 1 node of the 2 that the run needs are left; launch.shrink = true continues on fewer");
}

TEST(Placement, IsWrittenIntoTheCommand) {
  launch::Process slurm;
  slurm.scheduler = launch::Scheduler::slurm;
  const Placement all = place({{"n1", "n2"}, {}}, {}, 2, 1, true);
  EXPECT_EQ(placed_command("srun --ntasks=2", slurm, all, 1, ""), "srun --ntasks=2");
  const Placement less = place({{"n1", "n2"}, {"n1"}}, {}, 2, 1, true);
  EXPECT_EQ(placed_command("srun --ntasks=2", slurm, less, 1, ""),
            "srun --ntasks=2 --nodes=1 --ntasks=1 --nodelist=n2 --overlap");
  // A job that Slurm has started with fewer nodes than the run needs.
  EXPECT_EQ(placed_command("srun --ntasks=4", slurm, place({{"n1", "n2"}, {}}, {}, 4, 1, true), 1, ""),
            "srun --ntasks=4 --nodes=2 --ntasks=2 --nodelist=n1,n2 --overlap");
  launch::Process flux;
  flux.scheduler = launch::Scheduler::flux;
  EXPECT_EQ(placed_command("flux run -N {nodes} -n {ranks}", flux, less, 1, ""),
            "flux run -N 1 -n 1 --requires=host:n2");
  launch::Process pbs;
  pbs.scheduler = launch::Scheduler::pbs;
  const std::string file = testing::TempDir() + "placement_hosts";
  const Placement two = place({{"n1", "n2"}, {"n1"}}, {}, 4, 2, true);
  EXPECT_EQ(placed_command("mpirun -n {ranks} -hostfile /var/spool/nodes --bind-to core", pbs, two, 2, file),
            "mpirun -n 2 -hostfile " + file + " --bind-to core");
  EXPECT_EQ(base::read_file(file), "n2\nn2\n");
}

TEST(Placement, UnknownNodesAreThoseOfTheCommand) {
  const Placement p = place({}, {}, 4, 1, true);
  EXPECT_EQ(p.ranks, 4);
  EXPECT_EQ(placed_command("mpirun -n {ranks}", {}, p, 4, ""), "mpirun -n 4");
}

}  // namespace
}  // namespace kintsugi::jobs::placement_test
