#include "kintsugi/lower/fuse/join_columns_test.h"

namespace kintsugi::lower::join_columns_test {

TEST(JoinColumns, OneProductAndColumnsOfItsOperand) {
  Layer m(kManyTiles);
  m.all();
  EXPECT_EQ(m.joined(),
            "backward:\n"
            "  dv.columns = attention_grad(q, k, v, o, lse, do)\n"
            "  wv.columns = join_columns(wq, wk, wv)\n"
            "  dx = contract(dv.columns, wv.columns)\n"
            "  +wv.g = contract(x, dv.columns)\n"
            "  +wv.bias.g = sum(dv.columns)\n"
            "  +wk.g = contract(x, dv.columns)\n"
            "  +wk.bias.g = sum(dv.columns)\n"
            "  +wq.g = contract(x, dv.columns)\n"
            "  +wq.bias.g = sum(dv.columns)\n");
  const std::vector<program::Instruction>& list = m.p.bodies[0].instructions;
  const auto shape = [&](BufferId b) { return to_string(m.p.buffer(b).type.shape); };
  EXPECT_EQ(shape(list[0].outs[0]), "[batch:2 seq:32 columns:32]");
  EXPECT_EQ(list[0].absent.outs, 0b01111u);
  EXPECT_EQ(shape(list[1].outs[0]), "[embed:8448 columns:32]");
  EXPECT_EQ(shape(list[1].ins[0]), "[embed:8448 columns:16]");
  for (const auto& [at, first, count] : {std::tuple{3, 24, 8}, {5, 16, 8}, {7, 0, 16}}) {
    const program::Instruction &i = list[static_cast<size_t>(at)], &sum = list[static_cast<size_t>(at) + 1];
    EXPECT_EQ(i.attributes.integer("first"), first);
    EXPECT_EQ(sum.attributes.integer("first"), first);
    EXPECT_EQ(i.attributes.text("dims"), "embed columns");
    EXPECT_EQ(shape(i.outs[0]), fmt::format("[embed:8448 columns:{}]", count));
    EXPECT_EQ(shape(sum.outs[0]), fmt::format("[columns:{}]", count));
    EXPECT_EQ(i.accumulate, 1u);
  }
  // 64 rows, 32 columns and 8448 results: read and written once instead of three times.
  EXPECT_EQ(list[2].cost.flops, 2. * 64 * 32 * kManyTiles);
  EXPECT_EQ(list[2].cost.memory_bytes, 4. * (64 * 32 + 32 * kManyTiles + 64 * kManyTiles));
}

TEST(JoinColumns, SumsOfRows) {
  Layer m;
  m.term(m.dv_seq, m.wv, false), m.term(m.dk_seq, m.wk, true), m.term(m.dq, m.wq, true);
  m.call("sum", {m.dk_seq}, {m.arena("db", {{"kv_heads", 2}, {"head_dim", 4}})});
  EXPECT_TRUE(m.joined().ends_with("  db = sum(dv.columns)\n")) << text(m.p);
  EXPECT_EQ(m.p.bodies[0].instructions.back().attributes.integer("first"), 16);
}

// If the sum starts with something else, such as a residual without a following norm.
TEST(JoinColumns, AddedToWhatIsThere) {
  Layer m;
  m.call("gelu", {m.arena("y", {{"batch", 2}, {"seq", 32}, {"embed", m.embed}})}, {m.dx});
  m.term(m.dq, m.wq, true), m.term(m.dk_seq, m.wk, true), m.term(m.dv_seq, m.wv, true);
  EXPECT_EQ(m.joined(),
            "backward:\n"
            "  dq.columns = attention_grad(q, k, v, o, lse, do)\n"
            "  dx = gelu(y)\n"
            "  wq.columns = join_columns(wq, wk, wv)\n"
            "  +dx = contract(dq.columns, wq.columns)\n");
}

// If a schedule delays the gradients of weights.
TEST(JoinColumns, ColumnsInAnotherBody) {
  Layer m;
  m.term(m.dq, m.wq, false), m.term(m.dk_seq, m.wk, true), m.term(m.dv_seq, m.wv, true);
  m.body("weight");
  m.gradients("wk", m.dk_seq, m.wk);
  EXPECT_EQ(m.joined(),
            "backward:\n"
            "  dq.columns = attention_grad(q, k, v, o, lse, do)\n"
            "  wq.columns = join_columns(wq, wk, wv)\n"
            "  dx = contract(dq.columns, wq.columns)\n"
            "weight:\n"
            "  +wk.g = contract(x, dq.columns)\n"
            "  +wk.bias.g = sum(dq.columns)\n");
}

// Optional: the gradient of sinks, which is kept, and added to.
TEST(JoinColumns, WithAnotherOutput) {
  Layer m;
  const BufferId sinks = m.state("sinks.g", {{"kv_heads", 2}, {"group", 2}}, program::StateKind::gradient);
  program::Instruction& grad = m.p.bodies[0].instructions[0];
  grad.outs.push_back(sinks), grad.accumulate = 8, grad.absent.outs = 0b10000;
  m.all();
  EXPECT_TRUE(m.joined().starts_with("backward:\n  +sinks.g, dv.columns = attention_grad(")) << text(m.p);
}

TEST(JoinColumns, NotWhereItWouldBeWrongOrSlower) {
  struct Case {
    const char* why;
    void (*make)(Layer&);
  };
  const Case cases[] = {
      {"of the processor",
       [](Layer& m) {
         m.p.on_device = false;
         m.all();
       }},
      {"something else reads one",
       [](Layer& m) {
         m.all();
         m.call("gelu", {m.dq}, {m.arena("y", m.q_shape)});
       }},
      {"another body does",
       [](Layer& m) {
         m.all();
         m.body("weight");
         m.call("gelu", {m.dq}, {m.arena("y", m.q_shape)});
       }},
      {"a message has it",
       [](Layer& m) {
         m.collective(program::Collective::all_reduce, {m.dk}, {m.dk});
         m.all();
       }},
      {"it is read after the step",
       [](Layer& m) {
         m.p.buffer(m.dq).output = "dq";
         m.all();
       }},
      {"a term is missing",
       [](Layer& m) {
         m.term(m.dv_seq, m.wv, false);
         m.term(m.dk_seq, m.wk, true);
         m.gradients("wq", m.dq, m.wq);
       }},
      {"a term goes elsewhere",
       [](Layer& m) {
         m.term(m.dv_seq, m.wv, false);
         m.term(m.dk_seq, m.wk, true);
         m.call("contract", {m.dq, m.wq}, {m.arena("other", {{"batch", 2}, {"seq", 32}, {"embed", m.embed}})});
       }},
      {"the last replaces what was added up",
       [](Layer& m) {
         m.term(m.dv_seq, m.wv, false);
         m.term(m.dk_seq, m.wk, true);
         m.term(m.dq, m.wq, false);
       }},
      {"another layer's",
       [](Layer& m) {
         m.all();
         m.p.bodies[0].instructions.back().layer = 1;
       }},
      {"an activation follows",
       [](Layer& m) {
         m.all();
         m.p.bodies[0].instructions[1].attributes.set("epilogue", "gelu");
       }},
      {"the sum is read before it is whole",
       [](Layer& m) {
         m.term(m.dv_seq, m.wv, false);
         m.term(m.dk_seq, m.wk, true);
         m.call("gelu", {m.dx}, {m.arena("y", {{"batch", 2}, {"seq", 32}, {"embed", m.embed}})});
         m.term(m.dq, m.wq, true);
       }},
      {"a sum keeps positions",
       [](Layer& m) {
         m.all();
         m.call("sum", {m.dk_seq}, {m.arena("y", {{"seq", 32}, {"kv_heads", 2}, {"head_dim", 4}})});
       }},
      {"a weight comes between",
       [](Layer& m) {
         m.term(m.dv_seq, m.wv, false);
         m.term(m.dk_seq, m.wk, true);
         m.collective(program::Collective::all_gather, {m.wq}, {m.wq});
         m.term(m.dq, m.wq, true);
       }},
      {"a weight has its columns first",
       [](Layer& m) {
         m.p.buffer(m.wk).type.shape = {{"kv_heads", 2}, {"head_dim", 4}, {"embed", m.embed}};
         m.all();
       }},
      {"few positions: the weights are larger than what is saved",
       [](Layer& m) {
         for (const BufferId b : {m.q, m.dq, m.dk, m.dv, m.dk_seq, m.dv_seq, m.x, m.dx}) {
           std::vector<tensor::Dim> dims = m.p.buffer(b).type.shape.dims();
           dims[0].size = 1, dims[1].size = 16;
           m.p.buffer(b).type.shape = Shape(dims);
         }
         m.all();
       }},
  };
  for (const Case& c : cases) {
    Layer m;
    c.make(m);
    const std::string before = text(m.p);
    EXPECT_EQ(m.joined(), before) << c.why;
  }
}

}  // namespace kintsugi::lower::join_columns_test
