#include "kintsugi/lower/partition/split.h"

#include <gtest/gtest.h>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::split_test {

TEST(Split, EachStageHasWhatItsBodiesTouch) {
  Maker m;
  m.p.mesh = mesh::Mesh({{.name = "pipe", .size = 2, .cuts_layers = true}});
  const Shape x = {{"embed", 4}};
  const BufferId w = m.state("w", x), v = m.state("v", x), table = m.state("table", x), copy = m.state("table", x),
                 unused = m.state("unused", x), a = m.arena("a", x), b = m.arena("b", x);
  m.p.states[3].replica = true;
  const auto body = [&](const std::string& work, int stage) {
    m.body(work + "." + std::to_string(stage));
    m.p.bodies.back().work = program::work_named(work);
    m.p.bodies.back().chunk = m.p.bodies.back().stage = stage;
  };
  body("forward", 0);
  m.call("add", {w, m.view("table", table)}, {a});
  body("forward", 1);
  m.call("add", {v, copy}, {b});
  body("update", 1);
  m.call("accumulate", {b}, {v});
  body("update", 0);
  m.call("accumulate", {a}, {w});
  const std::vector<program::Program> stages = split_by_stage(m.p, 2);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(text(stages[0]), "forward.0:\n  a = add(w, table)\nupdate:\n  w = accumulate(a)\n");
  EXPECT_EQ(text(stages[1]), "forward.1:\n  b = add(v, table)\nupdate:\n  v = accumulate(b)\n");
  const auto states = [](const program::Program& p) {
    std::string t;
    for (const program::StateInfo& s : p.states)
      t += s.name + (s.replica ? " (replica) " : " ") + p.buffer(s.buffer).name + "; ";
    return t;
  };
  EXPECT_EQ(states(stages[0]), "w w; table table; ");
  EXPECT_EQ(states(stages[1]), "v v; table (replica) table; ");
  EXPECT_EQ(stages[1].stage, 1);
  EXPECT_EQ(stages[0].buffers.size(), 4u);  // the view of the table beside it
  EXPECT_EQ(m.p.buffer(unused).name, "unused");
}

TEST(Split, OneStageStaysAsItIs) {
  Maker m;
  m.body("update");
  m.call("accumulate", {m.arena("a", {{"n", 1}})}, {m.state("w", {{"n", 1}})});
  EXPECT_EQ(text(split_by_stage(m.p, 1)[0]), text(m.p));
}

}  // namespace kintsugi::lower::split_test
