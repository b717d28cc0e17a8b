// Replicated states: compared for equality, and made equal.
#include "kintsugi/train/replicas.h"

#include <gtest/gtest.h>

#include "kintsugi/comm/run_ranks.h"
#include "tests/layouts.h"

namespace kintsugi::tests::replicas_test {
namespace {

void on_all(train::LayoutRun& run, const std::function<void(run::Executor&, comm::World&)>& f) {
  const auto worlds = comm::thread_worlds(run.ranks());
  comm::run_ranks(worlds, [&](comm::World& w) { f(run.executor(w.rank()), w); });
}

TEST(Replicas, BeginEqualAreFoundWhereTheyDifferAndMadeEqual) {
  for (const char* parallel : {"data=2", "data=2 tensor=2 zero=1", "data=4 zero=3 shard_group=2", "pipe=2 data=2"}) {
    config::Settings s = small_model("gpt", "bf16");
    set_layout(s, parallel);
    s.train.global_batch = s.train.micro_batch * s.parallel.data;
    train::LayoutRun run(s);
    EXPECT_EQ(error_of([&] { on_all(run, train::check_replicas); }), "no error") << parallel;
    // An element of the last rank's first weight.
    const program::StateInfo& w = *run.executor(run.ranks() - 1).program().state("embedding.table");
    run.executor(run.ranks() - 1).state_view(w.buffer).data[0] ^= std::byte{1};
    const std::string error = error_of([&] { on_all(run, train::check_replicas); });
    EXPECT_NE(error.find("[train] \"bucket embedding.table\" is not the same on ranks"), std::string::npos) << error;
    on_all(run, train::broadcast_replicas);
    EXPECT_EQ(error_of([&] { on_all(run, train::check_replicas); }), "no error") << parallel;
  }
}

}  // namespace
}  // namespace kintsugi::tests::replicas_test
