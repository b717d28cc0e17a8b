#include "kintsugi/lower/order/overlap.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::overlap_test {
namespace {

const Shape kX = {{"embed", 8}}, kPart = {{"embed", 4}};

struct Overlapped : Maker {
  Overlapped() {
    p.mesh = mesh::Mesh({{.name = "data", .size = 2}});
    body("forward");
  }
  void collective(const std::string& kind, BufferId in, BufferId out, int layer = 0) {
    Maker::collective(program::collective_named(kind), {in}, {out}, layer).group = {0};
  }
  BufferId x(const std::string& name) { return arena(name, kX); }
};

std::string overlapped(Maker& m) {
  overlap(m.p);
  return text(m.p);
}

std::string prefetched(Maker& m) {
  prefetch(m.p, ops::operations());
  return text(m.p);
}

// Blocks of 4 of 8 rows, and a window of 3 rows.
struct Exchanged : Overlapped {
  const Shape block = {{"height", 4}, {"width", 2}}, wide = {{"height", 6}, {"width", 2}},
              rows = {{"halo", 1}, {"width", 2}};

  // received [halo width], of the rows of x that the other rank needs; packs them first.
  BufferId exchange(BufferId x) {
    const BufferId packed = arena("packed", rows), received = arena("received", rows);
    cut(call("halo_pack", {x}, {packed}));
    collective("halo", packed, received);
    cut(p.bodies.back().instructions.back());
    return received;
  }
  void product(BufferId x, BufferId y, int layer = 0) {
    call("convolution", {x, state("w", {{"kernel_height", 3}})}, {y}, layer).cost.cost_class =
        tensor::CostClass::product;
  }
  static void cut(program::Instruction& i) {
    i.cuts = {.dim = "height", .length = 8, .factors = {0}, .halo = mesh::Halo{.outputs = 8, .extent = 3, .low = 1}};
    i.cuts.exchanges = true;
  }
};

}  // namespace

// A residual, whose shortcut is computed while the halo of its branch travels.
TEST(Overlap, AHaloTravelsWhileWhatDoesNotNeedItIsComputed) {
  Exchanged m;
  const BufferId x = m.arena("x", m.block), with_halo = m.arena("with_halo", m.wide), y = m.arena("y", m.block),
                 z = m.arena("z", m.block), shortcut = m.arena("shortcut", m.block), next = m.arena("next", m.block);
  m.call("relu", {m.arena("before", m.block)}, {x});
  m.call("relu", {m.arena("other", m.block)}, {m.arena("unrelated", m.block)});
  const BufferId received = m.exchange(x);
  Exchanged::cut(m.call("halo_place", {x, received}, {with_halo}));
  m.product(with_halo, y);
  m.call("relu", {y}, {z});
  m.product(x, shortcut);
  m.product(shortcut, next, 1);  // of another layer
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  x = relu(before)\n"
            "  packed = halo_pack(x)\n"
            "  received = halo over data(packed)\n"
            "  unrelated = relu(other)\n"
            "  shortcut = convolution(x, w)\n"
            "  wait received = halo(packed)\n"
            "  with_halo = halo_place(x, received)\n"
            "  y = convolution(with_halo, w)\n"
            "  z = relu(y)\n"
            "  next = convolution(shortcut, w)\n");
}

// The gradient of a convolution's input, whose outer rows travel while that of its weights is computed; what reads the
// sum, or overwrites an operand of what is in between, stays.
TEST(Overlap, AHaloTravelsDuringTheGradientOfTheWeights) {
  Exchanged m;
  const BufferId dx = m.arena("dx", m.wide), sum = m.arena("sum", m.block), dy = m.arena("dy", m.block),
                 dw = m.arena("dw", {{"kernel_height", 3}}), x = m.arena("x", m.wide),
                 after = m.arena("after", m.block);
  m.product(dy, dx);
  m.product(x, dw);
  const BufferId received = m.exchange(dx);
  Exchanged::cut(m.call("halo_add", {dx, received}, {sum}));
  m.product(sum, after);
  m.product(after, dx);
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  dx = convolution(dy, w)\n"
            "  packed = halo_pack(dx)\n"
            "  received = halo over data(packed)\n"
            "  dw = convolution(x, w)\n"
            "  wait received = halo(packed)\n"
            "  sum = halo_add(dx, received)\n"
            "  after = convolution(sum, w)\n"
            "  dx = convolution(after, w)\n");
}

TEST(Overlap, WaitsForWhatIsRead) {
  Overlapped m;
  const BufferId a = m.x("a"), b = m.x("b"), c = m.x("c"), d = m.x("d");
  m.collective("all_reduce", a, b);
  m.call("gelu", {c}, {d});
  m.call("gelu", {a}, {c});  // reading what a collective reads is no hazard
  m.call("gelu", {b}, {d});
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  b = all_reduce over data(a)\n"
            "  d = gelu(c)\n"
            "  c = gelu(a)\n"
            "  wait b = all_reduce(a)\n"
            "  d = gelu(b)\n");
  EXPECT_EQ(m.p.bodies[0].instructions[0].event, 0);
  EXPECT_EQ(m.p.bodies[0].instructions[3].event, 0);
  EXPECT_EQ(m.p.bodies[0].instructions[3].cost.wire_bytes, 0);
}

TEST(Overlap, WaitsBeforeItsOperandIsOverwritten) {
  Overlapped m;
  const BufferId a = m.x("a"), b = m.x("b"), c = m.x("c");
  m.collective("all_reduce", a, b);
  m.call("gelu", {c}, {a});
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  b = all_reduce over data(a)\n"
            "  wait b = all_reduce(a)\n"
            "  a = gelu(c)\n");
}

TEST(Overlap, WaitsBeforeItsResultIsOverwritten) {
  Overlapped m;
  const BufferId a = m.x("a"), b = m.x("b"), c = m.x("c");
  m.collective("all_reduce", a, b);
  m.call("gelu", {c}, {b});
  m.call("gelu", {c}, {a});
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  b = all_reduce over data(a)\n"
            "  wait b = all_reduce(a)\n"
            "  b = gelu(c)\n"
            "  a = gelu(c)\n");
}

// A view, and a part whose offset depends on the rank, alias their memory.
TEST(Overlap, OtherNamesOfOneMemory) {
  Overlapped m;
  const BufferId a = m.x("a"), b = m.x("b"), c = m.x("c"), d = m.x("d");
  const BufferId view = m.view("view", b), part = m.view("part", c), other = m.view("other", d);
  m.p.buffer(part).type.shape = kPart;
  m.p.buffer(part).part = {0};
  m.p.buffer(other).type.shape = kPart;
  const BufferId rest = m.view("rest", d);
  m.p.buffer(rest).type.shape = kPart;
  m.p.buffer(rest).shift = 16;
  m.collective("all_reduce", a, b);
  m.collective("all_gather", part, c);
  m.collective("shift", other, a);
  m.call("gelu", {d}, {rest});  // the other half of what the shift reads
  m.call("gelu", {view}, {d});
  m.call("gelu", {c}, {c});
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  b = all_reduce over data(a)\n"
            "  c = all_gather over data(part)\n"
            "  wait b = all_reduce(a)\n"
            "  a = shift over data(other)\n"
            "  rest = gelu(d)\n"
            "  wait a = shift(other)\n"
            "  d = gelu(view)\n"
            "  wait c = all_gather(part)\n"
            "  c = gelu(c)\n");
}

// A collective on the result of another waits for it; unused results are awaited at the end of their body.
TEST(Overlap, CollectivesInARow) {
  Overlapped m;
  const BufferId a = m.x("a"), b = m.x("b"), c = m.x("c"), d = m.x("d");
  m.collective("all_reduce", a, b);
  m.collective("all_reduce", c, d);
  m.collective("all_reduce", b, c);
  m.body("backward");
  m.call("gelu", {c}, {a});
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  b = all_reduce over data(a)\n"
            "  d = all_reduce over data(c)\n"
            "  wait b = all_reduce(a)\n"
            "  wait d = all_reduce(c)\n"
            "  c = all_reduce over data(b)\n"
            "  wait c = all_reduce(b)\n"
            "backward:\n"
            "  a = gelu(c)\n");
}

TEST(Overlap, AWorkspaceIsWritten) {
  Overlapped m;
  const BufferId a = m.x("a"), b = m.x("b"), c = m.x("c"), d = m.x("d");
  m.collective("all_reduce", a, b);
  m.call("gelu", {c}, {d}).workspace = m.view("workspace", b);
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  b = all_reduce over data(a)\n"
            "  wait b = all_reduce(a)\n"
            "  d = gelu(c)\n");
}

// No instruction uses memory that a collective in flight writes, or writes what it reads; each collective is awaited
// once; and instructions keep their order.
TEST(Overlap, RandomBodiesHaveNoHazard) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    Overlapped m;
    std::vector<BufferId> b;
    for (int i = 0; i < 6; ++i) b.push_back(m.x("b" + std::to_string(i)));
    for (int i = 0; i < 3; ++i) b.push_back(m.view("v" + std::to_string(i), b[static_cast<size_t>(i)]));
    const auto any = [&] { return b[random() % b.size()]; };
    for (int i = 0; i < 30; ++i) {
      const BufferId in = any(), out = any();
      if (random() % 3 == 0 && m.p.root(in) != m.p.root(out)) {
        m.collective("all_reduce", in, out);
      } else {
        m.call("add", {in, any()}, {out});
      }
    }
    std::vector<std::string> before, after;
    for (const auto& i : m.p.bodies[0].instructions)
      before.push_back(std::string(name_of(i)) + std::to_string(i.outs[0]));
    overlap(m.p);
    std::map<int, program::Instruction> under_way;
    for (const auto& i : m.p.bodies[0].instructions) {
      if (i.kind == program::Kind::wait) {
        ASSERT_EQ(under_way.erase(i.event), 1u) << trial;
        continue;
      }
      after.push_back(std::string(name_of(i)) + std::to_string(i.outs[0]));
      for (const auto& [event, c] : under_way) {
        std::vector<BufferId> written = i.outs, touched = i.ins;
        touched.insert(touched.end(), written.begin(), written.end());
        for (BufferId t : touched) ASSERT_FALSE(m.p.overlap(t, c.outs[0])) << trial;
        for (BufferId w : written) ASSERT_FALSE(m.p.overlap(w, c.ins[0])) << trial;
      }
      ASSERT_TRUE(i.kind != program::Kind::collective || under_way.emplace(i.event, i).second) << trial;
    }
    ASSERT_TRUE(under_way.empty()) << trial;
    ASSERT_EQ(after, before) << trial;
  }
}

// The gathers of a layer's weights start with the previous layer, after that layer's.
TEST(Prefetch, OneLayerEarly) {
  Overlapped m;
  std::vector<BufferId> shard, whole;
  for (int i = 0; i < 3; ++i) {
    shard.push_back(m.state("w" + std::to_string(i), kPart));
    whole.push_back(m.x("whole" + std::to_string(i)));
  }
  const BufferId a = m.x("a"), b = m.x("b");
  for (int i = 0; i < 3; ++i) {
    const auto at = static_cast<size_t>(i);
    m.call("gelu", {a}, {b}, i);
    m.collective("all_gather", shard[at], whole[at], i);
    m.call("contract", {b, whole[at]}, {a}, i);
  }
  EXPECT_EQ(prefetched(m),
            "forward:\n"
            "  whole0 = all_gather over data(w0)\n"
            "  whole1 = all_gather over data(w1)\n"
            "  b = gelu(a)\n"
            "  a = contract(b, whole0)\n"
            "  whole2 = all_gather over data(w2)\n"
            "  b = gelu(a)\n"
            "  a = contract(b, whole1)\n"
            "  b = gelu(a)\n"
            "  a = contract(b, whole2)\n");
}

TEST(Prefetch, NotBeforeItsOperandIsThere) {
  Overlapped m;
  const BufferId shard = m.state("w", kPart), whole = m.x("whole"), a = m.x("a"), part = m.arena("part", kPart);
  m.call("gelu", {a}, {a}, 0);
  m.call("accumulate", {part}, {shard}, 0);  // the shard changes
  m.call("gelu", {a}, {a}, 0);
  m.collective("all_gather", shard, whole, 1);
  m.call("contract", {a, whole}, {a}, 1);
  EXPECT_EQ(prefetched(m),
            "forward:\n"
            "  a = gelu(a)\n"
            "  w = accumulate(part)\n"
            "  whole = all_gather over data(w)\n"
            "  a = gelu(a)\n"
            "  a = contract(a, whole)\n");
}

// Only gathers of states: those of activations need values just computed, and a gather into a state is an update.
TEST(Prefetch, OthersStay) {
  Overlapped m;
  const BufferId part = m.arena("part", kPart), whole = m.x("whole"), state = m.state("w", kX), a = m.x("a");
  const BufferId mine = m.view("mine", state);
  m.p.buffer(mine).type.shape = kPart;
  m.p.buffer(mine).part = {0};
  m.call("gelu", {a}, {a}, 0);
  m.collective("all_gather", part, whole, 1);
  m.collective("all_gather", mine, state, 1);
  m.collective("all_reduce", state, a, 1);
  const std::string before = text(m.p);
  EXPECT_EQ(prefetched(m), before);
}

// A reduced gradient is added to its accumulator one layer later, so that its reduction overlaps that layer; in the
// last layer at the end of the body.
TEST(Prefetch, ReducedGradientsAreAddedOneLayerLate) {
  Overlapped m;
  const BufferId a = m.x("a");
  for (int layer : {2, 1, 0}) {
    const std::string name = std::to_string(layer);
    const BufferId whole = m.x("whole" + name), part = m.arena("part" + name, kPart),
                   g = m.state("g" + name, kPart, program::StateKind::gradient);
    m.call("contract", {a}, {whole}, layer);
    m.collective("reduce_scatter", whole, part, layer);
    m.call("accumulate", {part}, {g}, layer, 1);
    m.call("gelu", {a}, {a}, layer);
  }
  EXPECT_EQ(prefetched(m),
            "forward:\n"
            "  whole2 = contract(a)\n"
            "  part2 = reduce_scatter over data(whole2)\n"
            "  a = gelu(a)\n"
            "  whole1 = contract(a)\n"
            "  part1 = reduce_scatter over data(whole1)\n"
            "  a = gelu(a)\n"
            "  +g2 = accumulate(part2)\n"
            "  whole0 = contract(a)\n"
            "  part0 = reduce_scatter over data(whole0)\n"
            "  a = gelu(a)\n"
            "  +g0 = accumulate(part0)\n"
            "  +g1 = accumulate(part1)\n");
}

// Including the cast after communication; not past other uses of the accumulator; and prefetched gathers belong to no
// layer.
TEST(Prefetch, AddedLateWithItsCast) {
  Overlapped m;
  const BufferId a = m.x("a"), narrow = m.arena("narrow", kX, DType::bf16), wide = m.x("wide"),
                 g = m.state("g", kX, program::StateKind::gradient), w = m.state("w", kPart), whole = m.x("whole");
  m.collective("all_reduce", narrow, narrow, 2);
  m.call("cast", {narrow}, {wide}, 2);
  m.call("accumulate", {wide}, {g}, 2, 1);
  m.call("gelu", {a}, {a}, 1);
  m.collective("all_gather", w, whole, 0);
  m.call("gelu", {a}, {a}, 1);
  m.call("sum", {a}, {g}, 1, 1);
  m.call("gelu", {a}, {a}, 1);
  m.call("contract", {a, whole}, {a}, 0);
  EXPECT_EQ(prefetched(m),
            "forward:\n"
            "  narrow = all_reduce over data(narrow)\n"
            "  whole = all_gather over data(w)\n"
            "  a = gelu(a)\n"
            "  a = gelu(a)\n"
            "  wide = cast(narrow)\n"
            "  +g = accumulate(wide)\n"
            "  +g = sum(a)\n"
            "  a = gelu(a)\n"
            "  a = contract(a, whole)\n");
}

// A gradient that is not reduced is added at once, and one that is reduced and used is not moved.
TEST(Prefetch, OtherAdditionsStay) {
  Overlapped m;
  const BufferId a = m.x("a"), b = m.x("b"), g = m.state("g", kX, program::StateKind::gradient), c = m.x("c");
  m.call("gelu", {a}, {b}, 1);
  m.call("accumulate", {b}, {g}, 1, 1);
  m.collective("all_reduce", b, a, 1);
  m.call("accumulate", {a}, {c}, 1, 1);
  m.call("gelu", {c}, {a}, 0);
  const std::string before = text(m.p);
  EXPECT_EQ(prefetched(m), before);
}

void message(Maker& m, const std::string& kind, BufferId b, const std::string& channel) {
  const bool sends = kind == "send";
  program::Instruction& i =
      m.collective(program::collective_named(kind), sends ? std::vector<BufferId>{b} : std::vector<BufferId>{},
                   sends ? std::vector<BufferId>{} : std::vector<BufferId>{b});
  i.group = {0};
  i.peer = sends ? 2 : 0;
  i.channel = channel;
}

std::string calls_of(const program::Program& p) {
  std::string calls;
  for (const program::Call& c : p.lists[0].calls)
    calls += fmt::format("{}({}) ", p.bodies[static_cast<size_t>(c.body)].name, c.micro_batch);
  return calls;
}

// The receives of a call are started one call earlier; a send starts as soon as its value is available and is awaited
// after the next call; variants share these bodies.
TEST(Overlap, MessagesFromCallToCall) {
  Maker m;
  m.p.mesh = mesh::Mesh({{.name = "pipe", .size = 3, .cuts_layers = true}});
  const BufferId got = m.arena("got", kX), y = m.arena("y", kX), z = m.arena("z", kX);
  m.body("forward");
  m.call("gelu", {y}, {y});
  message(m, "receive", got, "in");
  m.call("gelu", {got}, {z});
  m.call("gelu", {y}, {y});
  message(m, "send", z, "out");
  program::Body first = m.p.bodies[0];
  first.name = "forward.first";
  first.variant_of = 0;
  m.p.bodies.push_back(first);
  m.p.lists = {{.step = program::Step::train, .calls = {{1, 0}, {0, 1}, {0, 2}}}};
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  y = gelu(y)\n"
            "  wait got = receive()\n"
            "  z = gelu(got)\n"
            "   = send over pipe(z)\n"
            "  y = gelu(y)\n"
            "forward.first:\n"
            "  y = gelu(y)\n"
            "  wait got = receive()\n"
            "  z = gelu(got)\n"
            "   = send over pipe(z)\n"
            "  y = gelu(y)\n"
            "forward.receive:\n"
            "  got = receive over pipe()\n"
            "forward.sent:\n"
            "  wait  = send(z)\n");
  EXPECT_EQ(calls_of(m.p),
            "forward.receive(0) forward.receive(1) forward.first(0) forward.receive(2) forward(1) forward.sent(0) "
            "forward(2) forward.sent(1) forward.sent(2) ");
}

// Other passes run concurrently. Whatever remains is awaited at the end of its body.
TEST(Overlap, SumsOfAStepAreAwaitedBeforeTheUpdate) {
  Maker m;
  m.p.mesh = mesh::Mesh({{.name = "data", .size = 2}});
  const BufferId g = m.state("g", kX, program::StateKind::gradient), w = m.state("w", kX), y = m.arena("y", kX),
                 z = m.arena("z", kX);
  const auto sum = [&](BufferId b, program::Phase phase) {
    program::Instruction& i = m.collective(program::Collective::all_reduce, {b}, {b});
    i.group = {0};
    i.phase = phase;
  };
  m.body("backward");
  sum(g, program::Phase::update);
  m.call("gelu", {y}, {y});
  sum(z, program::Phase::backward);
  m.body("forward");
  m.call("gelu", {y}, {y});
  m.body("update");
  m.call("accumulate", {g}, {w});
  m.p.lists = {{.step = program::Step::train, .calls = {{0, 0}, {1, 1}, {2, -1}}}};
  EXPECT_EQ(overlapped(m),
            "backward:\n"
            "  g = all_reduce over data(g)\n"
            "  y = gelu(y)\n"
            "  z = all_reduce over data(z)\n"
            "  wait z = all_reduce(z)\n"
            "forward:\n"
            "  y = gelu(y)\n"
            "update:\n"
            "  w = accumulate(g)\n"
            "backward.summed:\n"
            "  wait g = all_reduce(g)\n");
  EXPECT_EQ(calls_of(m.p), "backward(0) forward(1) backward.summed(0) update(-1) ");
}

// Sums over ranks that hold the same weights, and also exchange activations, have a separate channel. Those over ranks
// that split weights do not, nor those whose group only gathers weights.
TEST(Overlap, SumsOfReplicasHaveAChannel) {
  for (const std::string_view what : {"exchange", "exchange of split weights", "gather"}) {
    Maker m;
    m.p.mesh = mesh::Mesh({{.name = "context", .size = 2}});
    const BufferId g = m.state("g", kX, program::StateKind::gradient), w = m.state("w", kX), y = m.arena("y", kX);
    if (what == "exchange of split weights") m.p.states[1].layout = layout_of(m.p.mesh, "a/context");
    m.body("backward");
    program::Instruction& sum = m.collective(program::Collective::all_reduce, {g}, {g});
    sum.group = {0};
    sum.phase = program::Phase::update;
    m.collective(program::Collective::all_gather, {what == "gather" ? w : y}, {m.arena("z", kX)}).group = {0};
    m.body("update");
    m.call("accumulate", {g}, {w});
    m.p.lists = {{.step = program::Step::train, .calls = {{0, 0}, {1, -1}}}};
    overlap(m.p);
    const program::Body& backward = m.p.bodies[0];
    EXPECT_EQ(backward.instructions[0].channel, what == "exchange" ? "gradient sums" : "") << what;
    EXPECT_EQ(backward.instructions[1].channel, "") << what;
    EXPECT_EQ(m.p.bodies[2].instructions[0].channel, backward.instructions[0].channel) << what;
  }
}

// Of several in one channel the first is started early, each other one when the previous has ended; and the first of
// the next call after all of this one.
TEST(Overlap, SeveralMessagesOfAChannel) {
  Maker m;
  m.p.mesh = mesh::Mesh({{.name = "pipe", .size = 3, .cuts_layers = true}});
  const BufferId a = m.arena("a", kX), b = m.arena("b", kX), c = m.arena("c", kX), y = m.arena("y", kX);
  m.body("forward");
  message(m, "receive", a, "in");
  message(m, "receive", b, "in");
  message(m, "receive", c, "other");
  m.call("gelu", {y}, {y});
  m.call("add", {b, c}, {y});
  m.call("gelu", {a}, {a});
  m.p.lists = {{.step = program::Step::train, .calls = {{0, 0}, {0, 1}}}};
  EXPECT_EQ(overlapped(m),
            "forward:\n"
            "  wait a = receive()\n"
            "  b = receive over pipe()\n"
            "  y = gelu(y)\n"
            "  wait c = receive()\n"
            "  wait b = receive()\n"
            "  y = add(b, c)\n"
            "  a = gelu(a)\n"
            "forward.receive:\n"
            "  a = receive over pipe()\n"
            "  c = receive over pipe()\n");
  EXPECT_EQ(calls_of(m.p), "forward.receive(0) forward(0) forward.receive(1) forward(1) ");
}

}  // namespace kintsugi::lower::overlap_test
