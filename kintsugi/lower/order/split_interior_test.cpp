#include "kintsugi/lower/order/split_interior.h"

#include <gtest/gtest.h>

#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/lower/order/overlap.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/program/halo.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::lower::split_interior_test {
namespace {

using tensor::Window;

// A value of 16 samples and 3 channels, whose dims are split and convolved to 5 filters of the same window.
struct Convolved : Maker {
  // dims: name, positions, window; ranks that split it, or 1.
  struct Axis {
    std::string name;
    int64_t positions = 0;
    Window window = {};
    int64_t ranks = 1;
  };

  explicit Convolved(const std::vector<Axis>& axes) {
    std::vector<mesh::Axis> of_mesh;
    for (const Axis& a : axes)
      if (a.ranks > 1) of_mesh.push_back({.name = "space_" + a.name, .size = a.ranks});
    p.mesh = mesh::Mesh(of_mesh);
    body("forward");
    std::vector<tensor::Dim> block = {{"batch", 16}}, w, y = {{"batch", 16}};
    std::vector<tensor::DimWindow> windows;
    for (const Axis& a : axes) {
      const std::vector<mesh::Factor> factors = factors_of(a);
      const int64_t outputs = a.window.outputs(a.positions);
      block.push_back({a.name, mesh::local_length(p.mesh, a.name, a.positions, factors)});
      w.push_back({tensor::kernel_dim(a.name), a.window.kernel});
      y.push_back({a.name, mesh::local_length(p.mesh, a.name, outputs, factors)});
      Window local = a.window;
      if (a.ranks > 1) local.low = local.high = 0;
      windows.push_back({a.name, local});
    }
    block.push_back({"channel", 3}), w.push_back({"channel", 3});
    w.push_back({"filter", 5}), y.push_back({"filter", 5});
    BufferId x = arena("x", Shape(block));
    for (const Axis& a : axes)
      if (a.ranks > 1) x = exchange(a, x);
    program::Instruction& product = call("convolution", {x, state("w", Shape(w))}, {arena("y", Shape(y))});
    tensor::set_windows(product.attributes, windows);
    product.windowed.ins = 1;
    product.cost = {.flops = 1e9, .memory_bytes = 1e6, .cost_class = tensor::CostClass::product};
  }

  std::vector<mesh::Factor> factors_of(const Axis& a) const {
    return a.ranks > 1 ? p.mesh.expand(tensor::words("space_" + a.name)) : std::vector<mesh::Factor>();
  }

  // The block with halo.
  BufferId exchange(const Axis& a, BufferId x) {
    const Shape block = p.buffer(x).type.shape;
    const std::string name = p.buffer(x).name;
    const program::Cuts cuts = {.dim = a.name,
                                .length = a.positions,
                                .factors = factors_of(a),
                                .halo = mesh::Halo{.outputs = a.window.outputs(a.positions),
                                                   .stride = a.window.stride,
                                                   .extent = a.window.extent(),
                                                   .low = a.window.low},
                                .exchanges = true};
    const program::HaloSizes sizes = program::halo_sizes(p.mesh, cuts);
    std::vector<tensor::Dim> wide = block.dims();
    for (tensor::Dim& d : wide)
      if (d.name == a.name) d.size = mesh::local_length(p.mesh, a.name, a.positions, cuts.factors, &*cuts.halo);
    const BufferId sent = arena(name + ".sent", program::packed_shape(block, a.name, sizes.sent)),
                   received = arena(name + ".received", program::packed_shape(block, a.name, sizes.received)),
                   placed = arena(name + "h", Shape(wide));
    call("halo_pack", {x}, {sent}).cuts = cuts;
    program::Instruction& halo = collective(program::Collective::halo, {sent}, {received});
    halo.group = cuts.factors, halo.cuts = cuts;
    program::Instruction& place = call("halo_place", {x, received}, {placed});
    place.cuts = cuts, place.cost.memory_bytes = 1e5;
    return placed;
  }

  const program::Instruction& product() const {
    for (const program::Instruction& i : p.bodies[0].instructions)
      if (i.kernel == "convolution") return i;
    throw base::InternalError("test", "no convolution");
  }
};

// The reference kernels, all of whose convolutions compute parts along any dim.
class AnyDim : public kernels::KernelSet {
 public:
  AnyDim() : convolution_(reference_->find("convolution")) {
    static constexpr kernels::Ability kAny[] = {{kernels::Capability::parts}};
    convolution_.abilities = kAny;
  }
  std::string_view name() const override { return "any dim"; }
  const kernels::Kernel& find(std::string_view kind) const override {
    return kind == "convolution" ? convolution_ : reference_->find(kind);
  }

 private:
  std::unique_ptr<kernels::KernelSet> reference_ = kernels::reference_kernels();
  kernels::Kernel convolution_;
};

// "height 2 to 30 of 32", or "whole".
std::string interior(std::vector<Convolved::Axis> axes, const kernels::KernelSet& set) {
  Convolved m(axes);
  split_interior(m.p, set, {.fewest_positions = 0, .fewest_flops = 0});
  const auto part = tensor::output_part(m.product().attributes);
  if (!part) return "whole";
  return fmt::format("{} {} to {} of {}", part->dim, part->begin, part->end,
                     m.p.buffer(m.product().outs[0]).type.shape.size(part->dim));
}
std::string interior(std::vector<Convolved::Axis> axes) {
  return interior(std::move(axes), *kernels::reference_kernels());
}

const Window kThree = {.kernel = 3, .low = 1, .high = 1};

}  // namespace

TEST(SplitInterior, WhatNeedsNoHaloIsComputedBeforeTheWait) {
  Convolved m({{"height", 64, kThree, 2}, {"width", 8, kThree}});
  split_interior(m.p, *kernels::reference_kernels(), {.fewest_positions = 0});
  const std::vector<program::Instruction>& list = m.p.bodies[0].instructions;
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(to_string(list[2].attributes), "place=own");
  EXPECT_EQ(list[2].absent.ins, 2u);
  EXPECT_EQ(to_string(list[4].attributes), "place=received rows=32");
  for (const size_t i : {3, 5}) {
    const auto part = tensor::output_part(list[i].attributes);
    EXPECT_EQ(part, (tensor::OutputPart{.dim = "height", .begin = 2, .end = 30, .outer = i == 5}));
  }
  for (const size_t i : {2, 3, 4, 5}) {
    EXPECT_EQ(list[i].begins, i < 4 ? 1u : 0u);
    EXPECT_EQ(list[i].completes, i < 4 ? 0u : 1u);
  }
  // 28 and 4 of 32 rows; the weights, of 3 x 3 x 3 x 5 numbers, are read twice.
  const double weights = 3 * 3 * 3 * 5 * 4;
  EXPECT_DOUBLE_EQ(list[3].cost.flops, 1e9 * 28 / 32);
  EXPECT_DOUBLE_EQ(list[5].cost.flops, 1e9 * 4 / 32);
  EXPECT_DOUBLE_EQ(list[3].cost.memory_bytes + list[5].cost.memory_bytes, 1e6 + weights);
  EXPECT_DOUBLE_EQ(list[4].cost.memory_bytes, 2 * 1 * 16 * 8 * 3 * 4);
  EXPECT_DOUBLE_EQ(list[2].cost.memory_bytes + list[4].cost.memory_bytes, 1e5);
  overlap(m.p);
  EXPECT_EQ(text(m.p),
            "forward:\n"
            "  x.sent = halo_pack(x)\n"
            "  x.received = halo over space_height(x.sent)\n"
            "  xh = halo_place(x)\n"
            "  y = convolution(xh, w)\n"
            "  wait x.received = halo(x.sent)\n"
            "  xh = halo_place(xh, x.received)\n"
            "  y = convolution(xh, w)\n");
}

// On each rank, a window reaches received rows at other positions; ranges end at even ones.
TEST(SplitInterior, PositionsThatNeedNoHalo) {
  EXPECT_EQ(interior({{"width", 64, kThree, 2}}), "width 2 to 30 of 32");
  EXPECT_EQ(interior({{"depth", 64, kThree, 4}, {"height", 4, kThree}, {"width", 4, kThree}}), "depth 2 to 14 of 16");
  // The last window of a rank ends in its own rows.
  EXPECT_EQ(interior({{"height", 64, {.kernel = 3, .stride = 2, .low = 1, .high = 1}, 2}}), "height 2 to 16 of 16");
  EXPECT_EQ(interior({{"height", 64, {.kernel = 3, .dilation = 2, .low = 2, .high = 2}, 2}}), "height 2 to 30 of 32");
  EXPECT_EQ(interior({{"height", 64, {.kernel = 7, .stride = 2, .low = 3, .high = 3}, 2}}), "height 2 to 14 of 16");
  EXPECT_EQ(interior({{"height", 64, {.kernel = 2, .high = 1}, 2}}), "height 0 to 30 of 32");
  // 61 outputs of 61 rows in blocks of 21: the last rank has 19. Every block of the first two lacks a row below.
  EXPECT_EQ(interior({{"height", 61, kThree, 3}}), "height 2 to 20 of 21");
  // Without padding ranks have fewer outputs than rows: rank 0 has rows 0 to 15 and needs up to 17, rank 1 from 14.
  EXPECT_EQ(interior({{"height", 32, {.kernel = 5}, 2}}), "height 2 to 12 of 14");
}

TEST(SplitInterior, WhereItDoesNotPay) {
  // Fewer than half of the positions.
  EXPECT_EQ(interior({{"height", 8, kThree, 2}}), "whole");
  // Windows wider than a rank's rows: several hops.
  EXPECT_EQ(interior({{"height", 24, {.kernel = 13, .low = 6, .high = 6}, 4}}), "whole");
  // Too few positions or FLOPs.
  const auto parts = [](const InteriorRule& rule, double flops, bool on_device = false) {
    Convolved m({{"height", 64, kThree, 2}});
    m.p.bodies[0].instructions.back().cost.flops = flops;
    m.p.on_device = on_device;
    split_interior(m.p, *kernels::reference_kernels(), rule);
    return m.p.bodies[0].instructions.size() - 3;
  };
  EXPECT_EQ(parts({.fewest_positions = 16 * 32}, 3e7), 3u);
  EXPECT_EQ(parts({.fewest_positions = 16 * 32 + 1}, 3e7), 1u);
  EXPECT_EQ(parts({.fewest_positions = 0}, 2.9e7), 1u);
  EXPECT_EQ(parts({.fewest_positions = 0}, 9e8, true), 1u);
  EXPECT_EQ(parts({.fewest_positions = 0}, 1e9, true), 3u);
}

// The exchange along the second dim sends rows that the first received; its interior overlaps with it alone.
TEST(SplitInterior, TheLastOfTwoSplitDims) {
  const std::vector<Convolved::Axis> axes = {{"height", 32, kThree, 2}, {"width", 64, kThree, 2}};
  EXPECT_EQ(interior(axes), "whole");  // the kernel computes parts along the first dim only
  EXPECT_EQ(interior(axes, AnyDim()), "width 2 to 30 of 32");
  Convolved m(axes);
  split_interior(m.p, AnyDim(), {.fewest_positions = 0});
  overlap(m.p);
  EXPECT_EQ(text(m.p),
            "forward:\n"
            "  x.sent = halo_pack(x)\n"
            "  x.received = halo over space_height(x.sent)\n"
            "  wait x.received = halo(x.sent)\n"
            "  xh = halo_place(x, x.received)\n"
            "  xh.sent = halo_pack(xh)\n"
            "  xh.received = halo over space_width(xh.sent)\n"
            "  xhh = halo_place(xh)\n"
            "  y = convolution(xhh, w)\n"
            "  wait xh.received = halo(xh.sent)\n"
            "  xhh = halo_place(xhh, xh.received)\n"
            "  y = convolution(xhh, w)\n");
}

TEST(SplitInterior, OnlyTheFirstReader) {
  const auto instructions = [](auto&& change) {
    Convolved m({{"height", 64, kThree, 2}});
    const BufferId with_halo = m.p.bodies[0].instructions[2].outs[0], received = m.p.bodies[0].instructions[2].ins[1];
    change(m, m.p.bodies[0].instructions, with_halo, received);
    split_interior(m.p, *kernels::reference_kernels(), {.fewest_positions = 0});
    return m.p.bodies[0].instructions.size();
  };
  const auto before = [](auto& list, program::Instruction i) { list.insert(list.begin() + 3, std::move(i)); };
  EXPECT_EQ(instructions([](auto&...) {}), 6u);
  // Another operation reads the block, or something overwrites what is placed in it.
  EXPECT_EQ(instructions([&](auto& m, auto& list, BufferId with_halo, BufferId) {
              before(list,
                     {.kernel = "relu", .ins = {with_halo}, .outs = {m.arena("z", m.p.buffer(with_halo).type.shape)}});
            }),
            5u);
  EXPECT_EQ(instructions([&](auto& m, auto& list, BufferId, BufferId received) {
              before(list,
                     {.kernel = "relu", .ins = {m.arena("z", m.p.buffer(received).type.shape)}, .outs = {received}});
            }),
            5u);
  EXPECT_EQ(instructions([&](auto& m, auto& list, BufferId, BufferId) {
              before(list, {.kernel = "relu", .ins = {0}, .outs = {m.arena("z", m.p.buffer(0).type.shape)}});
            }),
            7u);
  EXPECT_EQ(instructions([](auto&, auto& list, BufferId, BufferId) { list.back().accumulate = 1; }), 4u);
}

// A set whose kernels compute whole outputs keeps the program.
TEST(SplitInterior, KernelsThatCannot) {
  class Whole : public AnyDim {
    const kernels::Kernel& find(std::string_view) const override {
      static const kernels::Kernel kernel = {.kind = "convolution", .ins = {}, .outs = {}};
      return kernel;
    }
  };
  EXPECT_EQ(interior({{"height", 64, kThree, 2}}, Whole()), "whole");
}

}  // namespace kintsugi::lower::split_interior_test
