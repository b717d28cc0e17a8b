// Kernels of experts on a device: exact choices and slots, and products of slots in use only.
#include <limits>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/refuse_token.h"

namespace kintsugi::kernels::gpu_experts_test {
namespace {

using namespace test;

constexpr int64_t kBatch = 3, kSeq = 40, kChoice = 2, kExperts = 5;

Attributes places(int64_t capacity, int64_t drop = 1) {
  return {{"experts", kExperts}, {"capacity", capacity}, {"drop", drop}, {"layer", int64_t{3}}};
}

// All tokens use expert 1 and one of 3 others; expert 4 has none.
Tensor choices() {
  Tensor experts = random_integers({{"batch", kBatch}, {"seq", kSeq}, {"choice", kChoice}}, 1, 2, 4);
  for (int64_t i = 0; i < experts.elements(); i += 2) experts.set(i, i % 6 == 0 ? 0 : 1);
  return experts;
}

// Slots as made by assign_slots.
struct Assigned {
  Tensor slots = Tensor({{"batch", kBatch}, {"seq", kSeq}, {"choice", kChoice}}, DType::i32),
         counts = Tensor({{"batch", kBatch}, {"expert", kExperts}}, DType::i32);

  explicit Assigned(int64_t capacity) {
    Tensor experts = choices();
    run_kernel(*reference_kernels(), {.kind = "assign_slots", .attributes = places(capacity)}, {&experts},
               {&slots, &counts});
  }
};

Shape slot_rows(int64_t slots, const std::string& last, int64_t size, int64_t experts = kExperts) {
  return {{"batch", kBatch}, {"expert", experts}, {"slot", slots}, {last, size}};
}

// Slots [first, first + local) of an expert; those after the last are padding.
DimIndex part_of(int64_t first, int64_t local, int64_t whole) {
  const int64_t there = std::clamp<int64_t>(whole - first, 0, local);
  std::vector<tensor::Segment> segments = {{there > 0 ? first : -1, there > 0 ? there : local}};
  if (there > 0 && there < local) segments.push_back({-1, local - there});
  return DimIndex(segments, whole);
}

// Kernels of devices store only the slots in use; the reference stores zeros in the others.
Tensor zeros(const Type& type) {
  return Tensor(type.shape, type.dtype, std::vector<double>(static_cast<size_t>(type.shape.elements())));
}

// x [batch expert slot wide], of which the local slots begin at `first`, with NaN in slots without a token.
Tensor poisoned(Tensor x, const Tensor& counts, int64_t first = 0) {
  const Shape& shape = x.type().shape;
  const int64_t slots = shape[2].size, wide = shape[3].size;
  for (int64_t row = 0; row < x.elements() / wide; ++row)
    if (first + row % slots >= static_cast<int64_t>(counts.get(row / slots)))
      for (int64_t i = 0; i < wide; ++i) x.set(row * wide + i, std::numeric_limits<double>::quiet_NaN());
  return x;
}

Attributes routing(const char* scores, int64_t top_k, int64_t groups, bool normalize) {
  Attributes a = {{"top_k", top_k}, {"scores", scores}, {"normalize", int64_t{normalize}}, {"scale", 1.5}};
  if (groups > 1) a.set("groups", groups), a.set("groups_per_token", groups / 2);
  return a;
}

}  // namespace

// Also equal logits and biased scores, positions that are padding, and more candidates than lanes.
TEST(ExpertsOnDevice, ChoicesAreThoseOfTheReference) {
  for (const int64_t candidates : {4, 72})
    for (const char* scores : {"softmax", "sigmoid"})
      for (const int64_t groups : {1, 4})
        for (const bool biased : {false, true}) {
          const Shape shape = {{"batch", 2}, {"seq", 7}, {"candidate", candidates}},
                      chosen = {{"batch", 2}, {"seq", 7}, {"choice", 2}};
          Tensor logits = random_tensor(shape, DType::f32, 1, -3, 3),
                 bias = random_tensor({{"candidate", candidates}}, DType::f32, 2, -0.2, 0.2),
                 experts = Tensor(chosen, DType::i32), weights = Tensor(chosen, DType::f32),
                 dweights = random_tensor(chosen, DType::f32, 3);
          for (int64_t i = 0; i < 3 * candidates; ++i) logits.set(i, i < candidates ? 0.5 : i % 3);
          const Trial trial = {.kind = "route",
                               .attributes = routing(scores, 2, groups, groups > 1),
                               .indices = {{"seq", DimIndex({{4, 6}, {-1, 1}}, 10)}}};
          compare_on_device(trial, {&logits, biased ? &bias : nullptr}, {weights, experts}, {1e-5, 1e-6});
          run_kernel(*reference_kernels(), trial, {&logits, biased ? &bias : nullptr}, {&weights, &experts});
          Trial back = trial;
          back.kind = "route_grad";
          compare_on_device(back, {&logits, &experts, &dweights}, {Tensor(logits.type())}, {1e-4, 1e-5});
        }
}

TEST(ExpertsOnDevice, LossesOfRouters) {
  const Shape shape = {{"batch", 3}, {"seq", 70}, {"candidate", 40}};
  Tensor logits = random_tensor(shape, DType::f32, 1, -3, 3),
         counts = random_integers({{"batch", 3}, {"expert", 40}}, 2, 0, 9),
         labels = random_integers({{"batch", 3}, {"label_seq", 70}}, 3, -3, 9),
         load = random_tensor({{"candidate", 40}}, DType::f64, 4, 0, 50), none = zeros(load.type()),
         dloss = Tensor(Shape(), DType::f64, {0.7});
  const Tensor sum = Tensor(Shape(), DType::f64, {1.25});
  for (const char* scores : {"softmax", "sigmoid"})
    for (Tensor* given : {static_cast<Tensor*>(nullptr), &load, &none})
      for (Tensor* of : {static_cast<Tensor*>(nullptr), &labels}) {
        Trial trial = {.kind = "balance_loss",
                       .attributes = routing(scores, 2, 1, false),
                       .indices = {{"seq", DimIndex({{4, 69}, {-1, 1}}, 100)}},
                       .accumulate = of != nullptr};
        compare_on_device(trial, {&logits, &counts, given, of}, {sum}, {1e-5, 0});
        trial.kind = "balance_loss_grad", trial.accumulate = 0;
        compare_on_device(trial, {&logits, &counts, &dloss, given, of}, {Tensor(logits.type())}, {1e-4, 1e-6});
        trial.kind = "router_z_loss";
        compare_on_device(trial, {&logits, of}, {sum}, {1e-5, 0});
        trial.kind = "router_z_loss_grad";
        compare_on_device(trial, {&logits, &dloss, of}, {Tensor(logits.type())}, {1e-4, 1e-6});
      }
}

TEST(ExpertsOnDevice, LoadsAndBiases) {
  for (const int64_t experts : {5, 300}) {
    Tensor counts = random_integers({{"batch", 4}, {"expert", experts}}, 1, 0, 9),
           load = random_integers({{"candidate", experts}}, 2, 0, 900).as(DType::f64), none = zeros(load.type()),
           bias = random_tensor({{"candidate", experts}}, DType::f32, 3);
    load.set(0, load.get(1));
    for (const uint32_t accumulate : {0u, 1u})
      compare_on_device({.kind = "expert_load", .accumulate = accumulate}, {&counts}, {load}, {0, 0});
    for (Tensor* x : {&load, &none}) {
      compare_on_device({.kind = "expert_balance"}, {x}, {Tensor(Shape(), DType::f64)}, {1e-12, 0});
      for (const double finite : {0.0, 1.0}) {
        Tensor is_finite(Shape(), DType::f64, {finite});
        compare_on_device({.kind = "balance_bias", .attributes = {{"rate", 0.01}}}, {&bias, x, &is_finite},
                          {Tensor(bias.type())}, {1e-6, 0});
      }
    }
  }
}

// In chunks that do not end with a sample's choices, with and without a bound that is exceeded, and for a sample that
// is padding.
TEST(ExpertsOnDevice, SlotsFollowTheOrderOfTokens) {
  for (const int64_t seq : {40, 700})
    for (const int64_t capacity : {seq, int64_t{13}}) {
      Tensor experts = random_integers({{"batch", kBatch}, {"seq", seq}, {"choice", 3}}, 1, 0, kExperts - 1);
      for (int64_t i = 0; i < seq; ++i) experts.set(i, 2);
      const Trial trial = {.kind = "assign_slots",
                           .attributes = places(capacity),
                           .indices = {{"batch", DimIndex({{4, 2}, {-1, 1}}, 6)}}};
      compare_on_device(trial, {&experts},
                        {Tensor(experts.type()), Tensor({{"batch", kBatch}, {"expert", kExperts}}, DType::i32)},
                        {0, 0});
    }
}

// The report is that of the processor, which throws it.
TEST(ExpertsOnDevice, TokensWithoutASlotAreReported) {
  Tensor experts = choices(), slots(experts.type()), counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32);
  for (const int64_t capacity : {int64_t{13}, int64_t{24}, kSeq}) {
    const Trial trial = {.kind = "assign_slots", .attributes = places(capacity, 0)};
    std::string want, got;
    try {
      run_kernel(*reference_kernels(), trial, {&experts}, {&slots, &counts});
    } catch (const base::UserError& e) {
      want = e.what();
    }
    EXPECT_EQ(want.empty(), capacity == kSeq);
    const auto stream = device_under_test().stream();
    const auto report = device_under_test().allocate_pinned(sizeof(RefusedTokens));
    auto& refused = *new (report->data()) RefusedTokens();
    DeviceCall one(trial, {&experts}, {&slots, &counts}, *stream, 0);
    KernelCall call = one.call();
    call.refused = &refused;
    for (int i = 0; i < 2; ++i) kernels_under_test().find(trial.kind).run(call);
    stream->synchronize();
    try {
      require_slots(refused);
    } catch (const base::UserError& e) {
      got = e.what();
    }
    EXPECT_EQ(got, want);
  }
}

TEST(ExpertsOnDevice, RowsToSlotsAndBack) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t embed : {37, 48})
      for (const int64_t capacity : {kSeq, int64_t{13}}) {
        Assigned assigned(capacity);
        Tensor x = random_tensor({{"batch", kBatch}, {"seq", kSeq}, {"embed", embed}}, dtype, 1),
               y = poisoned(random_tensor(slot_rows(capacity, "embed", embed), dtype, 2), assigned.counts),
               weights = random_tensor(assigned.slots.type().shape, DType::f32, 3);
        const auto trial = [&](const char* kind) { return Trial{.kind = kind, .attributes = places(capacity)}; };
        compare_on_device(trial("dispatch"), {&x, &assigned.slots}, {zeros(y.type())}, {0, 0});
        compare_on_device(trial("dispatch"), {&x, &assigned.slots, &weights}, {zeros(y.type())});
        compare_on_device(trial("combine"), {&y, &assigned.slots}, {Tensor(x.type())});
        compare_on_device(trial("combine"), {&y, &assigned.slots, &weights}, {Tensor(x.type())});
        compare_on_device(trial("weigh"), {&y, &assigned.slots, &x}, {Tensor(weights.type())}, {1e-4, 1e-4});
      }
}

TEST(ExpertsOnDevice, SomeExpertsAndSlots) {
  constexpr int64_t kCapacity = 25, kLocal = 7, kEmbed = 37;
  Assigned assigned(kCapacity);
  for (const int64_t first : {0, 14, 21, 28}) {
    Tensor x = random_tensor({{"batch", kBatch}, {"seq", kSeq}, {"embed", kEmbed}}, DType::f32, 1),
           y = random_tensor(slot_rows(kLocal, "embed", kEmbed, 2), DType::f32, 2),
           weights = random_tensor(assigned.slots.type().shape, DType::f32, 3);
    const auto trial = [&](const char* kind) {
      return Trial{.kind = kind,
                   .attributes = places(kCapacity),
                   .indices = {{"expert", DimIndex({{1, 2}}, kExperts)}, {"slot", part_of(first, kLocal, kCapacity)}}};
    };
    compare_on_device(trial("dispatch"), {&x, &assigned.slots}, {zeros(y.type())});
    compare_on_device(trial("combine"), {&y, &assigned.slots, &weights}, {Tensor(x.type())});
    compare_on_device(trial("weigh"), {&y, &assigned.slots, &x}, {Tensor(weights.type())}, {1e-4, 1e-4});
  }
}

// Forward, input and weight gradients, stored and added, with experts without rows, more rows than a tile, a further
// term, weights in codes, and slots without a token that are not numbers.
TEST(ExpertsOnDevice, Products) {
  struct Sizes {
    int64_t slots, embed, ffn;
  };
  for (const DType dtype : kDeviceTypes)
    for (const Sizes& z : {Sizes{9, 37, 29}, Sizes{50, 40, 72}}) {
      const auto all = static_cast<double>(z.slots);
      Tensor counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32,
                    {0, 1, 3, 9, all, 0, 4, 2, 1, all, 0, 0, 9, 1, all});
      const auto draw = [&](const std::string& last, int64_t size, uint64_t seed) {
        return poisoned(random_tensor(slot_rows(z.slots, last, size), dtype, seed), counts);
      };
      Tensor x = draw("embed", z.embed, 1), dy = draw("ffn", z.ffn, 2), more = draw("ffn", z.ffn, 3),
             w = random_tensor({{"expert", kExperts}, {"embed", z.embed}, {"ffn", z.ffn}}, dtype, 4);
      const auto trial = [&](const std::string& dims, uint32_t accumulate = 0) {
        return Trial{.kind = "grouped",
                     .attributes = {{"dims", dims}, {"dtype", "fp32"}, {"filled", 0.5}},
                     .accumulate = accumulate};
      };
      const DeviceTolerance loose = {1e-4, 1e-3};
      for (Tensor* term : {static_cast<Tensor*>(nullptr), &more})
        compare_on_device(trial("batch expert slot ffn"), {&x, &w, &counts, nullptr, term}, {zeros(dy.type())}, loose);
      compare_on_device(trial("batch expert slot embed"), {&dy, &w, &counts}, {zeros(x.type())}, loose);
      for (const DType of_sums : {DType::f32, dtype})
        for (const uint32_t accumulate : {0u, 1u})
          compare_on_device(trial("expert embed ffn", accumulate), {&x, &dy, &counts},
                            {random_tensor(w.type().shape, of_sums, 5)}, loose);
      compare_on_device(trial("expert embed ffn"), {&x, &dy, &counts, nullptr, &w}, {Tensor(w.type())}, loose);
    }
}

// Weights that are converted: rounded to the type of the products.
TEST(ExpertsOnDevice, ProductsWithWeightsOfAnotherType) {
  constexpr int64_t kSlots = 9, kEmbed = 40, kFfn = 37;
  Tensor counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32, {0, 1, 3, 9, 9, 0, 4, 2, 1, 9, 0, 0, 9, 1, 9});
  Tensor codes = random_tensor({{"expert", kExperts}, {"embed", kEmbed}, {"ffn", kFfn}}, DType::i8, 5, -127.5, 127.5),
         scale = random_tensor({{"expert", kExperts}, {"ffn", kFfn}}, DType::f32, 6, 0.001, 0.01),
         narrow = random_tensor(codes.type().shape, DType::bf16, 7);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor x = random_tensor(slot_rows(kSlots, "embed", kEmbed), dtype, 1),
           dy = random_tensor(slot_rows(kSlots, "ffn", kFfn), dtype, 2);
    const DeviceTolerance loose = {1e-4, dtype == DType::f32 ? 1e-4 : 3e-2};
    const auto trial = [&](const std::string& dims) {
      return Trial{.kind = "grouped", .attributes = {{"dims", dims}, {"dtype", "fp32"}, {"filled", 0.5}}};
    };
    compare_on_device(trial("batch expert slot ffn"), {&x, &codes, &counts, &scale}, {zeros(dy.type())}, loose);
    compare_on_device(trial("batch expert slot embed"), {&dy, &codes, &counts, &scale}, {zeros(x.type())}, loose);
    compare_on_device(trial("batch expert slot ffn"), {&x, &narrow, &counts}, {zeros(dy.type())}, loose);
    compare_on_device(trial("batch expert slot embed"), {&dy, &narrow, &counts}, {zeros(x.type())}, loose);
  }
}

// Tiles of 128 x 128, which need many experts, of some of the slots.
TEST(ExpertsOnDevice, LargeProducts) {
  constexpr int64_t kMany = 112, kSlots = 100, kEmbed = 96, kFfn = 104;
  std::vector<double> filled(kMany, 0.0);
  filled[3] = 105, filled[64] = 12;
  Tensor counts({{"batch", 1}, {"expert", kMany}}, DType::i32, filled);
  const auto shape = [&](const std::string& last, int64_t size) {
    return Shape{{"batch", 1}, {"expert", kMany}, {"slot", kSlots}, {last, size}};
  };
  Tensor x = random_tensor(shape("embed", kEmbed), DType::bf16, 1),
         dy = random_tensor(shape("ffn", kFfn), DType::bf16, 2),
         w = random_tensor({{"expert", kMany}, {"embed", kEmbed}, {"ffn", kFfn}}, DType::bf16, 3);
  const auto trial = [&](const std::string& dims) {
    return Trial{.kind = "grouped",
                 .attributes = {{"dims", dims}, {"dtype", "fp32"}, {"filled", 1.3}},
                 .indices = {{"slot", part_of(5, kSlots, 105)}}};
  };
  compare_on_device(trial("batch expert slot ffn"), {&x, &w, &counts}, {zeros(dy.type())}, {1e-4, 1e-3});
  compare_on_device(trial("expert ffn embed"), {&dy, &x, &counts},
                    {Tensor({{"expert", kMany}, {"ffn", kFfn}, {"embed", kEmbed}}, DType::f32)}, {1e-4, 1e-3});
}

TEST(ExpertsOnDevice, BiasesAndGatesOfSlotsInUse) {
  constexpr int64_t kSlots = 25;
  Tensor counts({{"batch", kBatch}, {"expert", kExperts}}, DType::i32,
                {0, 25, 3, 16, 8, 0, 4, 2, 1, 22, 0, 0, 9, 1, 25});
  struct Part {
    int64_t local, first, wide;
  };
  for (const DType dtype : kDeviceTypes)
    for (const Part& p :
         {Part{kSlots, 0, 29}, Part{kSlots, 0, 48}, Part{7, 14, 48}, Part{7, 21, 29}, Part{7, 28, 29}}) {
      const std::vector<NamedIndex> indices = {{"slot", part_of(p.first, p.local, kSlots)}};
      const auto draw = [&](uint64_t seed) {
        return poisoned(random_tensor(slot_rows(p.local, "ffn", p.wide), dtype, seed, -9, 9), counts, p.first);
      };
      Tensor gate = draw(1), up = draw(2), dy = draw(3),
             bias = random_tensor({{"expert", kExperts}, {"ffn", p.wide}}, dtype, 4);
      const Tensor zero = zeros(gate.type());
      compare_on_device({.kind = "expert_bias", .indices = indices}, {&gate, &bias, &counts}, {zero});
      for (const uint32_t accumulate : {0u, 1u})
        compare_on_device({.kind = "expert_bias_grad", .indices = indices, .accumulate = accumulate}, {&dy, &counts},
                          {random_tensor(bias.type().shape, DType::f32, 5)}, {1e-5, 1e-3});
      for (const char* kind : {"gated", "clamped_gated"}) {
        Trial trial = {.kind = kind, .attributes = {{"activation", "silu"}, {"filled", 0.5}}, .indices = indices};
        if (trial.kind == "clamped_gated") trial.attributes.set("clamp", 7.0), trial.attributes.set("slope", 1.702);
        compare_on_device(trial, {&gate, &up, &counts}, {zero}, {1e-5, 1e-5});
        trial.kind += "_grad";
        compare_on_device(trial, {&gate, &up, &dy, &counts}, {zero, zero}, {1e-5, 1e-5});
      }
    }
}

TEST(ExpertsOnDevice, ClampedGatesWithoutSlots) {
  const Shape shape = {{"batch", 3}, {"ffn", 41}};
  Tensor gate = random_tensor(shape, DType::bf16, 1, -9, 9), up = random_tensor(shape, DType::bf16, 2, -9, 9),
         dy = random_tensor(shape, DType::bf16, 3);
  const Attributes attributes = {{"clamp", 7.0}, {"slope", 1.702}};
  compare_on_device({.kind = "clamped_gated", .attributes = attributes}, {&gate, &up}, {Tensor(gate.type())});
  compare_on_device({.kind = "clamped_gated_grad", .attributes = attributes}, {&gate, &up, &dy},
                    {Tensor(gate.type()), Tensor(gate.type())});
}

TEST(ExpertsOnDevice, HeadsOfTwoParts) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t unit : {1, 8})
      for (const bool shared : {false, true}) {
        Shape part = {{"batch", 2}, {"seq", 5}, {"turned", 2 * unit}};
        if (!shared) part = {{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"turned", 2 * unit}};
        Tensor a = random_tensor({{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"content", 3 * unit}}, dtype, 1),
               b = random_tensor(part, dtype, 2),
               y = random_tensor({{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"head_dim", 6 * unit}}, dtype, 3);
        const Attributes attributes = {{"width", 6 * unit}, {"whole", "content turned head_dim"}};
        compare_on_device({.kind = "join_head_dims", .attributes = attributes}, {&a, &b}, {Tensor(y.type())}, {0, 0});
        compare_on_device({.kind = "join_head_dims", .attributes = attributes}, {&a}, {Tensor(y.type())}, {0, 0});
        compare_on_device({.kind = "join_head_dims_grad", .attributes = attributes}, {&y},
                          {Tensor(a.type()), Tensor(b.type())});
        compare_on_device({.kind = "join_head_dims_grad", .attributes = attributes}, {&y}, {Tensor(a.type()), absent()},
                          {0, 0});
      }
}

}  // namespace kintsugi::kernels::gpu_experts_test
