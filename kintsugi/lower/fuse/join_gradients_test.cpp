#include "kintsugi/lower/fuse/join_gradients.h"

#include "kintsugi/kernels/gpu/device_kernels.h"
#include "kintsugi/lower/fuse/growth_test.h"
#include "kintsugi/lower/fuse/join_columns_test.h"

namespace kintsugi::lower::join_gradients_test {
namespace {

using join_columns_test::kManyTiles;
using join_columns_test::Layer;

// The rewritten gradient of attention and sum of its matmuls.
constexpr const char* kBegin =
    "backward:\n"
    "  dv.columns = attention_grad(q, k, v, o, lse, do)\n"
    "  wv.columns = join_columns(wq, wk, wv)\n"
    "  dx = contract(dv.columns, wv.columns)\n";

void terms(Layer& m) {
  m.term(m.dv_seq, m.wv, false), m.term(m.dk_seq, m.wk, true), m.term(m.dq, m.wq, true);
}
void all_gradients(Layer& m) {
  m.gradients("wv", m.dv_seq, m.wv), m.gradients("wk", m.dk_seq, m.wk), m.gradients("wq", m.dq, m.wq);
}
// Between the second and the last, that of queries.
template <typename F>
void with_between(Layer& m, F&& between) {
  terms(m);
  all_gradients(m);
  std::vector<program::Instruction>& list = m.p.bodies[0].instructions;
  std::vector<program::Instruction> last(list.end() - 2, list.end());
  list.resize(list.size() - 2);
  between();
  for (program::Instruction& i : last) m.add(std::move(i));
}
void read(Layer& m, BufferId b) {
  m.call("gelu", {b}, {m.arena("y", m.p.buffer(b).type.shape)});
}

}  // namespace

TEST(JoinGradients, OneProductForAllColumns) {
  Layer m;
  m.all();
  EXPECT_EQ(m.joined(), std::string(kBegin) +
                            "  wq.g.columns = contract(x, dv.columns)\n"
                            "  wq.bias.g.columns = sum(dv.columns)\n"
                            "  +wq.g, +wk.g, +wv.g, +wq.bias.g, +wk.bias.g, +wv.bias.g = "
                            "split_columns(wq.g.columns, wq.bias.g.columns)\n");
  const std::vector<program::Instruction>& list = m.p.bodies[0].instructions;
  const program::Instruction &product = list[3], &sum = list[4], &split = list[5];
  const auto type = [&](BufferId b) {
    return fmt::format("{} {}", to_string(m.p.buffer(b).type.shape), name_of(m.p.buffer(b).type.dtype));
  };
  EXPECT_EQ(type(product.outs[0]), "[embed:16 columns:32] fp32");
  EXPECT_EQ(type(sum.outs[0]), "[columns:32] fp32");
  EXPECT_EQ(m.p.buffer(product.outs[0]).region, program::Region::arena);
  EXPECT_EQ(to_string(product.attributes), "dims=\"embed columns\"");
  EXPECT_FALSE(sum.attributes.has("first"));
  EXPECT_EQ(product.cost.memory_bytes, 4. * (64 * 16 + 64 * 32 + 16 * 32));
  EXPECT_EQ(sum.cost.memory_bytes, 4. * (64 * 32 + 32));
  EXPECT_EQ(type(split.outs[0]), "[embed:16 columns:16] fp32");
  EXPECT_EQ(type(split.outs[5]), "[columns:8] fp32");
  EXPECT_EQ(split.cost.memory_bytes, 2 * 4. * (16 * 32 + 32));
  EXPECT_EQ(split.cost.flops, 0);
}

// Products without sums of rows, as of a model without biases.
TEST(JoinGradients, ManyLayersTakeTimeInProportion) {
  const auto seconds = [](int layers) {
    Layer m;
    m.p.bodies[0].instructions.clear();
    for (int layer = 0; layer < layers; ++layer) {
      m.call("contract", {m.x, m.dq}, {m.wq}, layer, 1).attributes = {{"first", int64_t{0}}};
      m.call("contract", {m.x, m.dk}, {m.wk}, layer, 1).attributes = {{"first", int64_t{0}}};
    }
    return seconds_of([&] { join_gradients(m.p, ops::operations(), *kernels::planned_device_kernels()); });
  };
  EXPECT_LT(growth(seconds), 24);
}

// As many as the three had.
TEST(JoinGradients, ItsFlops) {
  Layer apart(kManyTiles), together;
  for (Layer* m : {&apart, &together}) {
    m->all();
    for (program::Instruction& i : m->p.bodies[0].instructions) i.cost.flops = 10;
    m->joined();
  }
  EXPECT_EQ(together.p.bodies[0].instructions[3].cost.flops, 30);
  EXPECT_EQ(together.p.bodies[0].instructions[4].cost.flops, 30);
  EXPECT_EQ(apart.p.bodies[0].instructions[3].cost.flops, 10);
}

// Some are stored, and there are no biases; results narrower than fp32 are rounded once.
TEST(JoinGradients, StoredOrAddedAsBefore) {
  Layer m;
  terms(m);
  all_gradients(m);
  std::vector<program::Instruction>& list = m.p.bodies[0].instructions;
  std::erase_if(list, [](const program::Instruction& i) { return i.kernel == "sum"; });
  for (program::Instruction& i : list)
    if (i.ins[0] == m.x) {
      i.accumulate = i.ins[1] == m.dk_seq ? 1 : 0;
      m.p.buffer(i.outs[0]).type.dtype = DType::bf16;
    }
  EXPECT_EQ(m.joined(), std::string(kBegin) +
                            "  wq.g.columns = contract(x, dv.columns)\n"
                            "  wq.g, +wk.g, wv.g = split_columns(wq.g.columns)\n");
  EXPECT_EQ(m.p.buffer(m.p.bodies[0].instructions[3].outs[0]).type.dtype, DType::f32);
}

TEST(JoinGradients, InABodyOfTheirOwn) {
  Layer m;
  terms(m);
  m.body("weight");
  all_gradients(m);
  EXPECT_EQ(m.joined(), std::string(kBegin) +
                            "weight:\n"
                            "  wq.g.columns = contract(x, dv.columns)\n"
                            "  wq.bias.g.columns = sum(dv.columns)\n"
                            "  +wq.g, +wk.g, +wv.g, +wq.bias.g, +wk.bias.g, +wv.bias.g = "
                            "split_columns(wq.g.columns, wq.bias.g.columns)\n");
}

// Readers of earlier results may be in between, and find them.
TEST(JoinGradients, AtThePlaceOfTheFirst) {
  Layer m;
  with_between(m, [&] {
    const BufferId g = m.p.state("wv.g")->buffer;
    m.collective(program::Collective::all_reduce, {g}, {g});
    read(m, m.x);
  });
  EXPECT_EQ(m.joined(), std::string(kBegin) +
                            "  wq.g.columns = contract(x, dv.columns)\n"
                            "  wq.bias.g.columns = sum(dv.columns)\n"
                            "  +wq.g, +wk.g, +wv.g, +wq.bias.g, +wk.bias.g, +wv.bias.g = "
                            "split_columns(wq.g.columns, wq.bias.g.columns)\n"
                            "  wv.g = all_reduce over (wv.g)\n"
                            "  y = gelu(x)\n");
}

// With biases in a bucket that is reduced when the last of them is computed: before its matmul.
TEST(JoinGradients, WithASumAheadOfItsProduct) {
  Layer m;
  BufferId bias = program::kNoBuffer;
  with_between(m, [&] {
    bias = m.state("wq.b", {{"kv_heads", 2}, {"group", 2}, {"head_dim", 4}}, program::StateKind::gradient);
    m.call("sum", {m.dq}, {bias}).cost.flops = 5;
    m.collective(program::Collective::all_reduce, {bias}, {bias});
  });
  m.p.bodies[0].instructions.pop_back();
  EXPECT_EQ(m.joined(), std::string(kBegin) +
                            "  wq.g.columns = contract(x, dv.columns)\n"
                            "  wq.b.columns = sum(dv.columns)\n"
                            "  +wq.g, +wk.g, +wv.g, wq.b, +wk.bias.g, +wv.bias.g = "
                            "split_columns(wq.g.columns, wq.b.columns)\n"
                            "  wq.b = all_reduce over (wq.b)\n");
  EXPECT_EQ(m.p.bodies[0].instructions[4].cost.flops, 5);
}

// If the other operand of the matmuls is computed only after the first sum, as ranks that split rows gather it.
TEST(JoinGradients, BehindTheFirstSum) {
  Layer m;
  terms(m);
  all_gradients(m);
  std::vector<program::Instruction> products, sums;
  std::vector<program::Instruction>& list = m.p.bodies[0].instructions;
  for (program::Instruction& i : list)
    if (i.kernel == "sum" || i.ins[0] == m.x) (i.kernel == "sum" ? sums : products).push_back(i);
  std::erase_if(list, [&](const program::Instruction& i) { return i.kernel == "sum" || i.ins[0] == m.x; });
  m.add(sums[0]);
  m.call("gelu", {m.arena("y", m.p.buffer(m.x).type.shape)}, {m.x});
  for (const auto* some : {&products[0], &sums[1], &products[1], &products[2], &sums[2]}) m.add(*some);
  EXPECT_EQ(m.joined(), std::string(kBegin) +
                            "  x = gelu(y)\n"
                            "  wq.g.columns = contract(x, dv.columns)\n"
                            "  wq.bias.g.columns = sum(dv.columns)\n"
                            "  +wq.g, +wk.g, +wv.g, +wq.bias.g, +wk.bias.g, +wv.bias.g = "
                            "split_columns(wq.g.columns, wq.bias.g.columns)\n");

  Layer read_before;  // a bias
  terms(read_before);
  all_gradients(read_before);
  std::vector<program::Instruction>& all = read_before.p.bodies[0].instructions;
  std::swap(*(all.end() - 6), *(all.end() - 5));  // the first product and its sum
  const BufferId bias = (all.end() - 6)->outs[0];
  const std::vector<program::Instruction> behind(all.end() - 5, all.end());
  all.resize(all.size() - 5);
  read(read_before, bias);
  for (const program::Instruction& i : behind) read_before.add(i);
  EXPECT_EQ(read_before.joined().find("split_columns"), std::string::npos);
}

// As long as each of them alone has few tiles of 128 x 256.
TEST(JoinGradients, OnlySmallOnes) {
  for (const auto& [embed, splits] : {std::pair<int64_t, bool>{65 * 128, true}, {65 * 128 + 1, false}}) {
    Layer m(embed);
    m.all();
    EXPECT_EQ(m.joined().find("split_columns") != std::string::npos, splits) << embed;
  }
}

TEST(JoinGradients, NotWhereTheyAreNotAllOrNotAlike) {
  struct Case {
    const char* why;
    void (*make)(Layer&);
  };
  const Case cases[] = {
      {"one is missing",
       [](Layer& m) {
         terms(m);
         m.gradients("wv", m.dv_seq, m.wv), m.gradients("wq", m.dq, m.wq);
       }},
      {"the last columns are missing",
       [](Layer& m) {
         terms(m);
         m.gradients("wk", m.dk_seq, m.wk), m.gradients("wq", m.dq, m.wq);
       }},
      {"one is in another body",
       [](Layer& m) {
         terms(m);
         m.gradients("wv", m.dv_seq, m.wv), m.gradients("wk", m.dk_seq, m.wk);
         m.body("weight");
         m.gradients("wq", m.dq, m.wq);
       }},
      {"of another value",
       [](Layer& m) {
         m.all();
         (m.p.bodies[0].instructions.end() - 2)->ins[0] = m.arena("other", m.p.buffer(m.x).type.shape);
       }},
      {"of another dtype",
       [](Layer& m) {
         m.all();
         m.p.buffer((m.p.bodies[0].instructions.end() - 2)->outs[0]).type.dtype = DType::bf16;
       }},
      {"one has no bias",
       [](Layer& m) {
         m.all();
         m.p.bodies[0].instructions.pop_back();
       }},
      {"of another phase",
       [](Layer& m) {
         m.all();
         (m.p.bodies[0].instructions.end() - 2)->phase = tensor::Phase::update;
       }},
      {"one is read before it is made", [](Layer& m) { with_between(m, [&] { read(m, m.p.state("wq.g")->buffer); }); }},
      {"and a bias", [](Layer& m) { with_between(m, [&] { read(m, m.p.state("wq.bias.g")->buffer); }); }},
      {"one is written",
       [](Layer& m) {
         with_between(m, [&] { m.call("fill", {}, {m.p.state("wq.g")->buffer}).attributes = {{"value", 0.0}}; });
       }},
      {"a message has one",
       [](Layer& m) {
         with_between(m, [&] {
           const BufferId g = m.p.state("wq.g")->buffer;
           m.collective(program::Collective::all_reduce, {g}, {g});
         });
       }},
      {"one has no bias, but another has two",
       [](Layer& m) {
         with_between(m, [&] { m.call("sum", {m.dk_seq}, {m.p.state("wk.bias.g")->buffer}); });
         m.p.bodies[0].instructions.pop_back();
       }},
      {"what they read is written",
       [](Layer& m) { with_between(m, [&] { m.call("gelu", {m.arena("y", m.p.buffer(m.x).type.shape)}, {m.x}); }); }},
      {"two go to one place",
       [](Layer& m) {
         m.all();
         std::vector<program::Instruction>& list = m.p.bodies[0].instructions;
         list[list.size() - 4].outs[0] = list[list.size() - 7].outs[0];
       }},
  };
  for (const Case& c : cases) {
    Layer m;
    c.make(m);
    const std::string after = m.joined();
    EXPECT_NE(after.find("  dx = contract(dv.columns, wv.columns)\n"), std::string::npos) << c.why;
    EXPECT_EQ(after.find("split_columns"), std::string::npos) << c.why << "\n" << after;
  }
}

// The kernels of a device, except one.
class Lacks : public kernels::KernelSet {
 public:
  std::string_view name() const override { return set_->name(); }
  bool on_device() const override { return true; }
  bool has(std::string_view kind) const override { return kind != "split_columns" && set_->has(kind); }
  const kernels::Kernel& find(std::string_view kind) const override { return set_->find(kind); }

 private:
  std::unique_ptr<KernelSet> set_ = kernels::planned_device_kernels();
};

TEST(JoinGradients, NotWithoutItsKernel) {
  EXPECT_TRUE(kernels::planned_device_kernels()->has("split_columns"));
  EXPECT_FALSE(kernels::planned_device_kernels()->has("nothing"));
  Layer m;
  m.all();
  join_columns(m.p, ops::operations(), Lacks());
  EXPECT_TRUE(text(m.p).ends_with("  +wq.g = contract(x, dv.columns)\n  +wq.bias.g = sum(dv.columns)\n")) << text(m.p);
}

}  // namespace kintsugi::lower::join_gradients_test
