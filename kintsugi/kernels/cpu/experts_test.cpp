#include <limits>
#include <vector>

#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::cpu::experts_test {
namespace {

using namespace test;

constexpr int64_t kBatch = 3, kSeq = 40, kChoice = 2, kExperts = 5, kEmbed = 37, kFfn = 29;

Attributes places(int64_t capacity) {
  return {{"experts", kExperts}, {"capacity", capacity}, {"drop", int64_t{1}}, {"layer", int64_t{0}}};
}

// Slots as made by assign_slots for tokens that all use expert 1 and one of 3 others; expert 4 has none.
struct Assigned {
  Tensor slots = Tensor({{"batch", kBatch}, {"seq", kSeq}, {"choice", kChoice}}, DType::i32),
         counts = Tensor({{"batch", kBatch}, {"expert", kExperts}}, DType::i32);

  explicit Assigned(int64_t capacity) {
    Tensor experts = random_integers(slots.type().shape, 1, 2, 4);
    for (int64_t i = 0; i < experts.elements(); i += 2) experts.set(i, i % 6 == 0 ? 0 : 1);
    run_kernel(*reference_kernels(), {.kind = "assign_slots", .attributes = places(capacity)}, {&experts},
               {&slots, &counts});
  }
};

Shape rows(int64_t slots, const std::string& last, int64_t size, int64_t experts = kExperts) {
  return {{"batch", kBatch}, {"expert", experts}, {"slot", slots}, {last, size}};
}

// Slots [first, first + local) of an expert; those after the last are padding.
tensor::DimIndex part_of(int64_t first, int64_t local, int64_t whole) {
  const int64_t there = std::clamp<int64_t>(whole - first, 0, local);
  std::vector<tensor::Segment> segments = {{there > 0 ? first : -1, there > 0 ? there : local}};
  if (there > 0 && there < local) segments.push_back({-1, local - there});
  return tensor::DimIndex(segments, whole);
}

// Kernels store only the slots in use; the reference stores zeros in the others.
Tensor zeros(const Type& type) {
  return Tensor(type.shape, type.dtype, std::vector<double>(static_cast<size_t>(type.shape.elements())));
}

// x [batch expert slot wide], of which the local slots begin at `first`, with `value` in slots without a token.
Tensor with_unused(Tensor x, const Tensor& counts, double value, int64_t first = 0) {
  const Shape& shape = x.type().shape;
  const int64_t slots = shape[2].size, wide = shape[3].size;
  for (int64_t row = 0; row < x.elements() / wide; ++row)
    if (first + row % slots >= static_cast<int64_t>(counts.get(row / slots)))
      for (int64_t i = 0; i < wide; ++i) x.set(row * wide + i, value);
  return x;
}

}  // namespace

TEST(CpuExperts, RowsToSlotsAndBack) {
  with_each_target([] {
    for (const DType dtype : kFastTypes)
      for (const int threads : {1, 3})
        for (const int64_t capacity : {kSeq, int64_t{13}}) {
          Assigned assigned(capacity);
          Tensor x = random_tensor({{"batch", kBatch}, {"seq", kSeq}, {"embed", kEmbed}}, dtype, 1),
                 y = random_tensor(rows(capacity, "embed", kEmbed), dtype, 2),
                 weights = random_tensor(assigned.slots.type().shape, DType::f32, 3);
          const auto trial = [&](const char* kind) {
            return Trial{.kind = kind, .attributes = places(capacity), .threads = threads};
          };
          compare(trial("dispatch"), {&x, &assigned.slots}, {zeros(y.type())});
          compare(trial("dispatch"), {&x, &assigned.slots, &weights}, {zeros(y.type())});
          compare(trial("combine"), {&y, &assigned.slots}, {Tensor(x.type())});
          compare(trial("combine"), {&y, &assigned.slots, &weights}, {Tensor(x.type())});
          compare(trial("weigh"), {&y, &assigned.slots, &x}, {Tensor(weights.type())}, {1e-5, 1e-4});
        }
  });
}

TEST(CpuExperts, SomeExpertsAndSlots) {
  constexpr int64_t kCapacity = 25, kLocal = 7;
  Assigned assigned(kCapacity);
  for (const int64_t first : {0, 14, 21, 28}) {
    Tensor x = random_tensor({{"batch", kBatch}, {"seq", kSeq}, {"embed", kEmbed}}, DType::f32, 1),
           y = random_tensor(rows(kLocal, "embed", kEmbed, 2), DType::f32, 2),
           weights = random_tensor(assigned.slots.type().shape, DType::f32, 3);
    const std::vector<NamedIndex> indices = {{"expert", tensor::DimIndex({{1, 2}}, kExperts)},
                                             {"slot", part_of(first, kLocal, kCapacity)}};
    const auto trial = [&](const char* kind) {
      return Trial{.kind = kind, .attributes = places(kCapacity), .indices = indices};
    };
    compare(trial("dispatch"), {&x, &assigned.slots}, {zeros(y.type())});
    compare(trial("combine"), {&y, &assigned.slots, &weights}, {Tensor(x.type())});
    compare(trial("weigh"), {&y, &assigned.slots, &x}, {Tensor(weights.type())}, {1e-5, 1e-4});
  }
}

// Matmuls of experts: forward, input and weight gradients, stored and added, with experts without rows and with more
// rows than a block.
TEST(CpuExperts, Products) {
  for (const DType dtype : kFastTypes)
    for (const int64_t slots : {int64_t{9}, int64_t{300}})
      for (const int threads : {1, 2}) {
        Tensor counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32,
                      {0, 1, 3, 9, double(slots), 0, 4, 2, 1, double(slots), 0, 0, 9, 1, double(slots)});
        Tensor x = random_tensor(rows(slots, "embed", kEmbed), dtype, 1),
               dy = random_tensor(rows(slots, "ffn", kFfn), dtype, 2),
               w = random_tensor({{"expert", kExperts}, {"embed", kEmbed}, {"ffn", kFfn}}, dtype, 3);
        const auto trial = [&](const std::string& dims, uint32_t accumulate = 0) {
          return Trial{.kind = "grouped",
                       .attributes = {{"dims", dims}, {"dtype", "fp32"}, {"filled", 0.5}},
                       .accumulate = accumulate,
                       .threads = threads};
        };
        const Tolerance loose = {1e-4, 1e-3};
        compare(trial("batch expert slot ffn"), {&x, &w, &counts}, {zeros(dy.type())}, loose);
        compare(trial("batch expert slot embed"), {&dy, &w, &counts}, {zeros(x.type())}, loose);
        Tensor codes = random_tensor(w.type().shape, DType::i8, 5, -127.5, 127.5),
               scale = random_tensor({{"expert", kExperts}, {"ffn", kFfn}}, DType::f32, 6, 0.001, 0.01);
        compare(trial("batch expert slot ffn"), {&x, &codes, &counts, &scale}, {zeros(dy.type())}, loose);
        compare(trial("batch expert slot embed"), {&dy, &codes, &counts, &scale}, {zeros(x.type())}, loose);
        const Tensor sums = random_tensor(w.type().shape, DType::f32, 4);
        for (const uint32_t accumulate : {0u, 1u})
          compare(trial("expert embed ffn", accumulate), {&x, &dy, &counts}, {sums}, loose);
      }
}

// With more columns than are multiplied together, a further term, and slots without a token that are not numbers.
TEST(CpuExperts, WideProducts) {
  constexpr int64_t kWide = 530;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : kFastTypes)
    for (const int64_t slots : {int64_t{9}, int64_t{60}}) {
      const auto all = double(slots);
      Tensor counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32,
                    {0, 1, all, 9, all, 0, 4, 2, 1, all, 0, 0, 9, 1, all});
      const auto draw = [&](const std::string& last, int64_t size, uint64_t seed) {
        return with_unused(random_tensor(rows(slots, last, size), dtype, seed), counts, nan);
      };
      Tensor x = draw("embed", kEmbed, 1), dy = draw("ffn", kWide, 2), more = draw("ffn", kWide, 3),
             dx = draw("embed", kEmbed, 4),
             w = random_tensor({{"expert", kExperts}, {"embed", kEmbed}, {"ffn", kWide}}, dtype, 5);
      const auto trial = [&](const std::string& dims, int threads) {
        return Trial{
            .kind = "grouped", .attributes = {{"dims", dims}, {"dtype", "fp32"}, {"filled", 0.5}}, .threads = threads};
      };
      const Tolerance loose = {1e-4, 1e-3};
      for (const int threads : {1, 3})
        for (const bool adds : {false, true}) {
          Tensor *const term = adds ? &more : nullptr, *const term_of_x = adds ? &dx : nullptr;
          compare(trial("batch expert slot ffn", threads), {&x, &w, &counts, nullptr, term}, {zeros(dy.type())}, loose);
          compare(trial("batch expert slot embed", threads), {&dy, &w, &counts, nullptr, term_of_x}, {zeros(x.type())},
                  loose);
          compare(trial("expert embed ffn", threads), {&x, &dy, &counts, nullptr, adds ? &w : nullptr},
                  {Tensor(w.type())}, loose);
        }
    }
}

TEST(CpuExperts, Biases) {
  constexpr int64_t kSlots = 25;
  Tensor counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32,
                {0, 25, 3, 16, 8, 0, 4, 2, 1, 22, 0, 0, 9, 1, 25});
  for (const DType dtype : kFastTypes) {
    Tensor bias = random_tensor({{"expert", kExperts}, {"ffn", kFfn}}, dtype, 1);
    const auto check = [&](int64_t local, int64_t first, const std::vector<NamedIndex>& indices) {
      Tensor x = with_unused(random_tensor(rows(local, "ffn", kFfn), dtype, 2), counts, 0.0, first);
      const Trial forward = {.kind = "expert_bias", .indices = indices, .threads = 2};
      compare(forward, {&x, &bias, &counts}, {zeros(x.type())});
      compare_in_place(forward, {&x, &bias, &counts}, 0);
      const Tensor sums = random_tensor(bias.type().shape, DType::f32, 3);
      for (const uint32_t accumulate : {0u, 1u})
        compare({.kind = "expert_bias_grad", .indices = indices, .accumulate = accumulate, .threads = 2}, {&x, &counts},
                {sums}, {1e-5, 1e-4});
    };
    check(kSlots, 0, {});
    for (const int64_t first : {0, 14, 21, 28}) check(7, first, {{"slot", part_of(first, 7, kSlots)}});
  }
}

TEST(CpuExperts, ClampedGates) {
  with_each_target([] {
    for (const DType dtype : kFastTypes) {
      const Shape shape = {{"batch", 3}, {"ffn", 41}};
      Tensor gate = random_tensor(shape, dtype, 1, -9, 9), up = random_tensor(shape, dtype, 2, -9, 9),
             dy = random_tensor(shape, dtype, 3);
      const Attributes attributes = {{"clamp", 7.0}, {"slope", 1.702}};
      const Tolerance tolerance = {1e-5, dtype == DType::bf16 ? 8e-3 : 1e-5};
      compare({.kind = "clamped_gated", .attributes = attributes, .threads = 2}, {&gate, &up}, {Tensor(gate.type())},
              tolerance);
      compare({.kind = "clamped_gated_grad", .attributes = attributes, .threads = 2}, {&gate, &up, &dy},
              {Tensor(gate.type()), Tensor(gate.type())}, tolerance);
    }
  });
}

// Slots without a token are neither computed nor read.
TEST(CpuExperts, GatesOfSlotsInUse) {
  constexpr int64_t kSlots = 25;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32,
                {0, 25, 3, 16, 8, 0, 4, 2, 1, 22, 0, 0, 9, 1, 25});
  with_each_target([&] {
    for (const DType dtype : kFastTypes)
      for (const auto& [local, first] :
           {std::pair{kSlots, int64_t{0}}, {int64_t{7}, int64_t{0}}, {7, 14}, {7, 21}, {7, 28}})
        for (const char* kind : {"gated", "clamped_gated"}) {
          const auto draw = [&](uint64_t seed) {
            return with_unused(random_tensor(rows(local, "ffn", kFfn), dtype, seed, -9, 9), counts, nan, first);
          };
          Tensor gate = draw(1), up = draw(2), dy = draw(3);
          const Tensor zero = zeros(gate.type());
          Trial trial = {.kind = kind,
                         .attributes = {{"activation", "silu"}, {"clamp", 7.0}, {"slope", 1.702}, {"filled", 0.5}},
                         .indices = {{"slot", part_of(first, local, kSlots)}},
                         .threads = 2};
          const Tolerance tolerance = {1e-5, dtype == DType::bf16 ? 8e-3 : 1e-5};
          compare(trial, {&gate, &up, &counts}, {zero}, tolerance);
          trial.kind += "_grad";
          compare(trial, {&gate, &up, &dy, &counts}, {zero, zero}, tolerance);
        }
  });
}

TEST(CpuExperts, HeadsOfTwoParts) {
  for (const DType dtype : kFastTypes)
    for (const bool shared : {false, true}) {
      Shape part = {{"batch", 2}, {"seq", 5}, {"turned", 6}};
      if (!shared) part = {{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"turned", 6}};
      Tensor a = random_tensor({{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"content", 7}}, dtype, 1),
             b = random_tensor(part, dtype, 2),
             y = random_tensor({{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"head_dim", 16}}, dtype, 3);
      const Attributes attributes = {{"width", int64_t{16}}, {"whole", "content turned head_dim"}};
      compare({.kind = "join_head_dims", .attributes = attributes, .threads = 2}, {&a, &b}, {Tensor(y.type())}, {0, 0});
      compare({.kind = "join_head_dims", .attributes = attributes}, {&a}, {Tensor(y.type())}, {0, 0});
      compare({.kind = "join_head_dims_grad", .attributes = attributes, .threads = 2}, {&y},
              {Tensor(a.type()), Tensor(b.type())}, {1e-6, dtype == DType::bf16 ? 8e-3 : 1e-6});
      compare({.kind = "join_head_dims_grad", .attributes = attributes}, {&y}, {Tensor(a.type())}, {0, 0});
    }
}

TEST(CpuExperts, ProductsOfSomeSlots) {
  constexpr int64_t kSlots = 25, kLocal = 7;
  Tensor counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32,
                {0, 25, 3, 16, 8, 0, 4, 2, 1, 22, 0, 0, 9, 1, 25});
  for (const int64_t first : {0, 14, 21, 28}) {
    Tensor x = random_tensor(rows(kLocal, "embed", kEmbed), DType::f32, 1),
           w = random_tensor({{"expert", kExperts}, {"embed", kEmbed}, {"ffn", kFfn}}, DType::f32, 3);
    compare({.kind = "grouped",
             .attributes = {{"dims", "batch expert slot ffn"}, {"dtype", "fp32"}, {"filled", 0.5}},
             .indices = {{"slot", part_of(first, kLocal, kSlots)}}},
            {&x, &w, &counts}, {zeros(Type{rows(kLocal, "ffn", kFfn), DType::f32})}, {1e-4, 1e-4});
  }
}

}  // namespace kintsugi::kernels::cpu::experts_test
