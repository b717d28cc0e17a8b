#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test {
namespace {

using Segments = std::vector<tensor::Segment>;

Tensor counting(Shape shape, DType dtype) {
  Tensor x(std::move(shape), dtype);
  for (int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i % 251 + 1));
  return x;
}

struct StackCase {
  Shape shape;
  const char* dim;
  std::vector<Segments> parts;
  bool alone = false;  // one part without a dim `part`
};

std::vector<StackCase> stack_cases() {
  const Shape x({{"batch", 3}, {"seq", 8}, {"embed", 5}}), wide({{"batch", 3}, {"seq", 8}, {"embed", 16}});
  std::vector<Segments> many;  // more than one launch takes
  for (int64_t i = 0; i < 50; ++i) many.push_back({{(i * 7) % 50, 1}});
  return {
      {x, "seq", {{{0, 4}}, {{4, 4}}}},
      {wide, "seq", {{{0, 4}}, {{4, 4}}}},
      {wide, "seq", {{{0, 2}, {6, 2}}, {{2, 2}, {4, 2}}}},
      {x, "batch", {{{0, 2}}, {{2, 1}, {-1, 1}}}},
      {x, "embed", {{{0, 2}}, {{2, 2}}, {{4, 1}, {-1, 1}}, {{-1, 2}}}},
      {x, "seq", {{{3, 2}, {7, 1}, {-1, 1}}}, true},
      {x, "seq", {{{0, 8}}}},
      {x, "seq", {{{5, 1}}, {{3, 1}}, {{0, 1}}, {{1, 1}}, {{2, 1}}, {{4, 1}}, {{7, 1}}, {{6, 1}}}},
      {Shape({{"flat", 9001}}), "flat", {{{0, 4501}}, {{4501, 4500}, {-1, 1}}}},
      {Shape({{"batch", 2}, {"flat", 5000}}), "batch", {{{1, 1}}, {{0, 1}}}},
      {Shape({{"batch", 700}, {"flat", 3}}), "flat", {{{1, 2}}, {{0, 1}, {-1, 1}}}},
      {Shape({{"batch", 2}, {"expert", 50}, {"embed", 3}}), "expert", many},
  };
}

TEST(OnDevice, StackAndBack) {
  for (const StackCase& c : stack_cases())
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
      const auto axis = static_cast<size_t>(c.shape.find(c.dim));
      Trial trial{.kind = "stack", .attributes = {{"dim", std::string(c.dim)}}};
      for (const Segments& s : c.parts) trial.indices.push_back({c.dim, DimIndex(s, c.shape[axis].size)});
      std::vector<tensor::Dim> dims = c.shape.dims();
      dims[axis].size = trial.indices[0].index.local();
      if (!c.alone) dims.insert(dims.begin(), {"part", static_cast<int64_t>(c.parts.size())});
      Tensor x = counting(c.shape, dtype), y = counting(Shape(dims), dtype);
      compare_on_device(trial, {&x}, {Tensor(Shape(dims), dtype)}, {0, 0});
      trial.kind = "unstack";
      compare_on_device(trial, {&y}, {counting(c.shape, dtype)}, {0, 0});
    }
}

TEST(OnDevice, HalosPackedPlacedAndAdded) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const int64_t embed : {5, 16, 300}) {
      const Shape block({{"batch", 3}, {"seq", 8}, {"embed", embed}}),
          longer({{"batch", 3}, {"seq", 11}, {"embed", embed}}), two({{"halo", 2}, {"batch", 3}, {"embed", embed}}),
          three({{"halo", 3}, {"batch", 3}, {"embed", embed}});
      Tensor x = counting(block, dtype), received = counting(two, dtype), wide = counting(longer, dtype);
      Trial trial{.kind = "halo_pack", .attributes = {{"dim", "seq"}}};
      trial.indices = {{"seq", DimIndex({{6, 2}, {0, 1}}, 8)}};
      compare_on_device(trial, {&x}, {Tensor(three, dtype)}, {0, 0});
      trial.kind = "halo_place";
      trial.indices = {{"seq", DimIndex({{-1, 1}, {9, 1}, {0, 8}, {8, 1}}, 10)}};
      compare_on_device(trial, {&x, &received}, {Tensor(longer, dtype)}, {0, 0});
      trial.attributes.set("place", "own");
      compare_on_device(trial, {&x}, {counting(longer, dtype)}, {0, 0});
      trial.attributes.set("place", "received");
      trial.attributes.set("rows", int64_t{8});
      compare_on_device(trial, {&wide, &received}, {counting(longer, dtype)}, {0, 0});
      trial.attributes = {{"dim", "seq"}};
      trial.indices = {{"seq", DimIndex({{-1, 2}, {0, 8}, {-1, 1}}, 8)}};
      compare_on_device(trial, {&x}, {Tensor(longer, dtype)}, {0, 0});
      trial.kind = "halo_add";
      trial.indices = {{"seq", DimIndex({{-1, 1}, {0, 8}, {-1, 2}, {7, 1}, {7, 1}}, 8)}};
      compare_on_device(trial, {&wide, &received}, {Tensor(block, dtype)}, {0, 0});
      trial.indices = {{"seq", DimIndex({{-1, 1}, {0, 8}, {-1, 2}}, 8)}};
      compare_on_device(trial, {&wide}, {Tensor(block, dtype)}, {0, 0});
    }
}

TEST(OnDevice, JoinColumns) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const auto& [above, of] : std::initializer_list<std::pair<int64_t, std::vector<int64_t>>>{
             {7, {8, 8, 8}}, {64, {1, 2}}, {3, {5}}, {700, {64, 16, 16}}, {2, {3000, 1}}}) {
      std::vector<Tensor> parts;
      int64_t all = 0;
      for (const int64_t count : of) {
        parts.push_back(counting({{"embed", above}, {"columns", 2 * count}}, dtype));
        all += 2 * count;
      }
      std::vector<Tensor*> ins;
      for (Tensor& part : parts) ins.push_back(&part);
      compare_on_device({.kind = "join_columns"}, ins, {Tensor({{"embed", above}, {"columns", all}}, dtype)}, {0, 0});
    }
}

// Stored and added, and for two values at once.
TEST(OnDevice, SplitColumns) {
  for (const DType dtype : kDeviceTypes)
    for (const DType to : kDeviceTypes)
      for (const auto& [above, of] : std::initializer_list<std::pair<int64_t, std::vector<int64_t>>>{{7, {8, 8, 8}},
                                                                                                     {64, {1, 2}},
                                                                                                     {3, {5}},
                                                                                                     {70, {64, 16, 12}},
                                                                                                     {2, {3000, 1}},
                                                                                                     {5, {6, 3, 7}},
                                                                                                     {0, {4, 8}}}) {
        int64_t all = 0;
        std::vector<Tensor> outs;
        for (const int64_t count : of) {
          all += count;
          outs.push_back(random_tensor({{"embed", above}, {"columns", count}}, to, 3));
        }
        for (const int64_t count : of) outs.push_back(random_tensor({{"columns", count}}, to, 4));
        Tensor x = random_tensor({{"embed", above}, {"columns", all}}, dtype, 1),
               sums = random_tensor({{"columns", all}}, dtype, 2);
        for (const uint32_t accumulate : {0u, 0b101010u, 0b111111u}) {
          const Trial trial{.kind = "split_columns", .accumulate = accumulate};
          compare_on_device(trial, {&x, &sums}, outs, {0, 0});
          compare_on_device(trial, {&x}, std::vector<Tensor>(outs.begin(), outs.begin() + std::ssize(of)), {0, 0});
        }
      }
}

TEST(OnDevice, TakeFollowsWhatTheDeviceReads) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t embed : {7, 64})
      for (const int64_t last : {0, 3, 4}) {
        Tensor x = random_tensor({{"batch", 3}, {"seq", 5}, {"embed", embed}}, dtype, 3);
        compare_on_device({.kind = "take", .numbers = {.last = last}}, {&x},
                          {Tensor({{"batch", 3}, {"embed", embed}}, dtype)}, {0, 0});
      }
}

TEST(OnDevice, CacheWriteDropsWhatIsOutside) {
  static const auto reference = reference_kernels();
  for (const DType dtype : kDeviceTypes)
    for (const int64_t head_dim : {5, 16}) {
      const Shape cache_shape({{"batch", 2}, {"key_seq", 12}, {"kv_heads", 2}, {"head_dim", head_dim}});
      Tensor cache = random_tensor(cache_shape, dtype, 1);
      Tensor x = random_tensor({{"batch", 2}, {"seq", 4}, {"kv_heads", 2}, {"head_dim", head_dim}}, dtype, 2);
      const std::vector<std::vector<NamedIndex>> placements = {
          {{"seq", DimIndex({{10, 3}, {-1, 1}}, 100)}},
          {{"seq", DimIndex({{3, 4}}, 12)}},
          {{"seq", DimIndex({{22, 4}}, 24)}, {"key_seq", DimIndex({{4, 6}, {20, 4}, {-1, 2}}, 24)}},
          {{"seq", DimIndex({{8, 4}}, 24)}, {"key_seq", DimIndex({{4, 5}, {11, 7}}, 24)}}};
      for (const auto& indices : placements) {
        const Trial trial{.kind = "cache_write", .indices = indices};
        compare_on_device(trial, {&cache, &x}, {Tensor(cache_shape, dtype)}, {0, 0});
        Tensor want = cache, got = cache;
        run_kernel(*reference, trial, {&want, &x}, {&want});
        run_on_device(trial, {&got, &x}, {&got}, 1);
        EXPECT_EQ(got.values(), want.values());
      }
    }
}

// Keys and values; values have another width.
TEST(OnDevice, CacheWriteTogether) {
  const Trial trial{.kind = "cache_write", .indices = {{"seq", DimIndex({{7, 2}}, 12)}}};
  for (const int64_t shift : {0, 1}) {
    std::vector<Tensor> alone, caches, added;
    for (const int64_t head_dim : {16, 5}) {
      caches.push_back(random_tensor({{"batch", 2}, {"key_seq", 12}, {"head_dim", head_dim}}, DType::bf16, 1));
      added.push_back(random_tensor({{"batch", 2}, {"seq", 2}, {"head_dim", head_dim}}, DType::bf16, 2));
    }
    alone = caches;
    const auto stream = device_under_test().stream();
    std::vector<std::unique_ptr<DeviceCall>> made;
    std::vector<KernelCall> calls;
    for (size_t i = 0; i < 2; ++i) {
      run_on_device(trial, {&alone[i], &added[i]}, {&alone[i]}, shift);
      made.push_back(std::make_unique<DeviceCall>(trial, std::vector{&caches[i], &added[i]}, std::vector{&caches[i]},
                                                  *stream, shift));
      calls.push_back(made.back()->call());
    }
    const Kernel& kernel = kernels_under_test().find("cache_write");
    EXPECT_EQ(kernel.together(calls), shift == 1);  // where the place is known on the device
    if (shift == 0)
      for (const KernelCall& call : calls) kernel.run(call);
    stream->synchronize();
    for (size_t i = 0; i < 2; ++i) {
      made[i]->take();
      EXPECT_EQ(caches[i].values(), alone[i].values());
    }
  }
}

TEST(OnDevice, FirstPosition) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t embed : {7, 64})
      for (const DimIndex& seq : {DimIndex(5), DimIndex({{5, 5}}, 10), DimIndex({{8, 2}, {0, 2}, {-1, 1}}, 10),
                                  DimIndex({{-1, 1}, {6, 3}, {0, 1}}, 10)}) {
        const Shape x_shape({{"batch", 3}, {"seq", 5}, {"embed", embed}}), y_shape({{"batch", 3}, {"embed", embed}});
        Tensor x = random_tensor(x_shape, dtype, 3), dy = random_tensor(y_shape, dtype, 4);
        compare_on_device({.kind = "first", .indices = {{"seq", seq}}}, {&x}, {Tensor(y_shape, dtype)}, {0, 0});
        compare_on_device({.kind = "first_grad", .indices = {{"seq", seq}}}, {&dy}, {Tensor(x_shape, dtype)}, {0, 0});
      }
}

}  // namespace
}  // namespace kintsugi::kernels::test
