#include "kintsugi/lower/order/offload.h"

#include <gtest/gtest.h>

#include <set>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::offload_test {
namespace {

constexpr Offload kOptimizer = {.optimizer = true}, kActivations = {.activations = true};

// An update of weights of these sizes with one moment each.
struct Update : Maker {
  explicit Update(const std::vector<int64_t>& sizes) {
    const BufferId factor = arena("factor", {}, DType::f64);
    body("update");
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Shape shape = {{"shard", 1}, {"flat", sizes[i]}};
      const BufferId w = state(fmt::format("w{}", i), shape),
                     g = state(fmt::format("g{}", i), shape, program::StateKind::gradient);
      const BufferId m = state(fmt::format("m{}", i), shape, program::StateKind::optimizer);
      call("sgd", {w, g, m, factor, factor}, {w, m}, static_cast<int>(i));
    }
  }
  std::string offloaded() {
    offload(p, ops::operations(), kOptimizer);
    return text(p);
  }
  const program::Buffer& of_state(std::string_view name) const { return p.buffer(p.state(name)->buffer); }
};

// 64 KiB.
const Shape kLarge = {{"embed", 16384}};

// Four layers forward, each from the previous one, and back.
struct Step : Maker {
  explicit Step(const Shape& shape) {
    const auto x = [&](const char* name) { return arena(name, shape); };
    const BufferId tokens = x("tokens");
    p.buffer(tokens).input = "tokens";
    body("forward");
    std::vector<BufferId> a = {tokens};
    for (const char* name : {"a0", "a1", "a2", "a3"}) {
      a.push_back(x(name));
      call("gelu", {a[a.size() - 2]}, {a.back()}, static_cast<int>(a.size()) - 2);
    }
    body("backward");
    BufferId b = x("b3");
    call("gelu", {a[4]}, {b}, 3);
    for (const int layer : {2, 1, 0}) {
      const BufferId next = x(fmt::format("b{}", layer).c_str());
      call("add", {a[static_cast<size_t>(layer) + 1], b}, {next}, layer);
      b = next;
    }
  }
  void calls(const std::vector<std::pair<int, int64_t>>& list) {
    p.lists.push_back({.step = program::Step::train, .calls = {}});
    for (const auto& [b, micro_batch] : list) p.lists[0].calls.push_back({b, micro_batch});
  }
  std::string offloaded() {
    offload(p, ops::operations(), kActivations);
    return text(p);
  }
};

}  // namespace

// While one is computed, the previous one is stored and the next one fetched.
TEST(Offload, OptimizerStateOfOneAfterTheOther) {
  Update m({8, 8, 8, 8});
  EXPECT_EQ(m.offloaded(),
            "update:\n"
            "  m0.staged = fetch(m0)\n"
            "  m1.staged = fetch(m1)\n"
            "  m2.staged = fetch(m2)\n"
            "  wait m0.staged = fetch(m0)\n"
            "  w0, m0.staged = sgd(w0, g0, m0.staged, factor, factor)\n"
            "  m0 = store(m0.staged)\n"
            "  wait m1.staged = fetch(m1)\n"
            "  w1, m1.staged = sgd(w1, g1, m1.staged, factor, factor)\n"
            "  m1 = store(m1.staged)\n"
            "  wait m0 = store(m0.staged)\n"
            "  m3.staged = fetch(m3)\n"
            "  wait m2.staged = fetch(m2)\n"
            "  w2, m2.staged = sgd(w2, g2, m2.staged, factor, factor)\n"
            "  m2 = store(m2.staged)\n"
            "  wait m3.staged = fetch(m3)\n"
            "  w3, m3.staged = sgd(w3, g3, m3.staged, factor, factor)\n"
            "  m3 = store(m3.staged)\n"
            "  wait m1 = store(m1.staged)\n"
            "  wait m2 = store(m2.staged)\n"
            "  wait m3 = store(m3.staged)\n");
  EXPECT_EQ(m.of_state("m0").region, program::Region::file);
  EXPECT_EQ(m.of_state("m0").copies, 0);
  EXPECT_EQ(m.of_state("w0").region, program::Region::state);
  EXPECT_EQ(m.of_state("g0").region, program::Region::state);
}

// A piece has 2^20 elements; weight and gradient are views.
TEST(Offload, OptimizerStateInPieces) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  Update m({2 * kPiece + 5});
  EXPECT_EQ(m.offloaded(),
            "update:\n"
            "  m0.staged = fetch(m0)\n"
            "  m0.staged = fetch(m0)\n"
            "  m0.staged = fetch(m0)\n"
            "  wait m0.staged = fetch(m0)\n"
            "  w0, m0.staged = sgd(w0, g0, m0.staged, factor, factor)\n"
            "  m0 = store(m0.staged)\n"
            "  wait m0.staged = fetch(m0)\n"
            "  w0, m0.staged = sgd(w0, g0, m0.staged, factor, factor)\n"
            "  m0 = store(m0.staged)\n"
            "  wait m0.staged = fetch(m0)\n"
            "  w0, m0.staged = sgd(w0, g0, m0.staged, factor, factor)\n"
            "  m0 = store(m0.staged)\n"
            "  wait m0 = store(m0.staged)\n"
            "  wait m0 = store(m0.staged)\n"
            "  wait m0 = store(m0.staged)\n");
  int64_t next = 0;
  std::set<BufferId> staged;
  for (const program::Instruction& i : m.p.bodies[0].instructions) {
    if (i.kernel != "sgd") continue;
    const int64_t elements = std::min(kPiece, 2 * kPiece + 5 - next);
    for (const BufferId b : {i.ins[0], i.ins[1], i.ins[2], i.outs[0], i.outs[1]})
      EXPECT_EQ(m.p.buffer(b).type.shape.elements(), elements);
    EXPECT_EQ(m.p.buffer(i.ins[0]).name, "w0");
    EXPECT_EQ(m.p.begin(i.ins[0], 0), 4 * next);
    EXPECT_EQ(m.p.begin(i.ins[1], 0), 4 * next);
    EXPECT_EQ(m.p.root(i.ins[2]), i.ins[2]);
    EXPECT_EQ(i.ins[2], i.outs[1]);
    EXPECT_TRUE(staged.insert(i.ins[2]).second);
    next += elements;
  }
  EXPECT_EQ(next, 2 * kPiece + 5);
  EXPECT_EQ(m.of_state("m0").region, program::Region::file);
  EXPECT_EQ(m.of_state("m0").type.shape.elements(), 2 * kPiece + 5);
}

// State used by more than one operation is staged whole, with its views.
TEST(Offload, OptimizerStateThatSeveralTouch) {
  Update m({8});
  const BufferId m0 = m.p.state("m0")->buffer, part = m.view("part", m0);
  m.call("scale", {part}, {part});
  EXPECT_EQ(m.offloaded(),
            "update:\n"
            "  m0.staged = fetch(m0)\n"
            "  wait m0.staged = fetch(m0)\n"
            "  w0, m0.staged = sgd(w0, g0, m0.staged, factor, factor)\n"
            "  part = scale(part)\n"
            "  m0 = store(m0.staged)\n"
            "  wait m0 = store(m0.staged)\n");
  EXPECT_EQ(m.p.root(part), m0);
  EXPECT_EQ(m.p.buffer(m0).region, program::Region::arena);
}

TEST(Offload, OptimizerStateOutsideOfTheUpdate) {
  Update m({8});
  const BufferId m0 = m.p.state("m0")->buffer;
  m.body("forward");
  m.call("scale", {m0}, {m.arena("x", {{"flat", 8}})});
  try {
    m.offloaded();
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_STREQ(e.what(), "[offload] internal error: forward uses optimizer state");
  }
}

// Stored after the last use, awaited a layer later; fetched a layer ahead. The buffers of the last two layers stay in
// memory, since backward follows directly.
TEST(Offload, ActivationsOfOneMicroBatch) {
  Step m(kLarge);
  m.calls({{0, 0}, {1, 0}, {0, 1}, {1, 1}});
  EXPECT_EQ(m.offloaded(),
            "forward:\n"
            "  a0 = gelu(tokens)\n"
            "  a1 = gelu(a0)\n"
            "  a0.kept = store(a0)\n"
            "  a2 = gelu(a1)\n"
            "  a1.kept = store(a1)\n"
            "  wait a0.kept = store(a0)\n"
            "  a3 = gelu(a2)\n"
            "  wait a1.kept = store(a1)\n"
            "backward:\n"
            "  b3 = gelu(a3)\n"
            "  a1.fetched = fetch(a1.kept)\n"
            "  b2 = add(a2, b3)\n"
            "  a0.fetched = fetch(a0.kept)\n"
            "  wait a1.fetched = fetch(a1.kept)\n"
            "  b1 = add(a1.fetched, b2)\n"
            "  wait a0.fetched = fetch(a0.kept)\n"
            "  b0 = add(a0.fetched, b1)\n");
  for (const program::Buffer& b : m.p.buffers)
    if (b.region == program::Region::file) {
      EXPECT_EQ(b.copies, 1) << b.name;
    }
}

// With several in flight all are stored, each in its slot.
TEST(Offload, ActivationsOfSeveralMicroBatches) {
  Step m(kLarge);
  m.calls({{0, 0}, {0, 1}, {0, 2}, {1, 0}, {0, 3}, {1, 1}, {1, 2}, {1, 3}});
  const std::string all = m.offloaded();
  EXPECT_EQ(all.substr(all.find("backward:")),
            "backward:\n"
            "  a3.fetched = fetch(a3.kept)\n"
            "  a2.fetched = fetch(a2.kept)\n"
            "  wait a3.fetched = fetch(a3.kept)\n"
            "  b3 = gelu(a3.fetched)\n"
            "  a1.fetched = fetch(a1.kept)\n"
            "  wait a2.fetched = fetch(a2.kept)\n"
            "  b2 = add(a2.fetched, b3)\n"
            "  a0.fetched = fetch(a0.kept)\n"
            "  wait a1.fetched = fetch(a1.kept)\n"
            "  b1 = add(a1.fetched, b2)\n"
            "  wait a0.fetched = fetch(a0.kept)\n"
            "  b0 = add(a0.fetched, b1)\n");
  int files = 0;
  for (const program::Buffer& b : m.p.buffers) {
    files += b.region == program::Region::file;
    EXPECT_EQ(b.copies, b.region == program::Region::file ? 3 : 0) << b.name;
  }
  EXPECT_EQ(files, 4);
}

TEST(Offload, LeavesWhatIsSmallOrRead) {
  Step small({{"embed", 16383}});
  small.calls({{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  const std::string before = text(small.p);
  EXPECT_EQ(small.offloaded(), before);
  Step read(kLarge);  // what the run reads at the end
  for (program::Buffer& b : read.p.buffers) b.output = b.name;
  read.calls({{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  EXPECT_EQ(read.offloaded(), before);
}

}  // namespace kintsugi::lower::offload_test
