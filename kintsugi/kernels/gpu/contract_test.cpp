#include <set>

#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/operands.h"

namespace kintsugi::kernels::test::device_contract_test {
namespace {

using tensor::Dim;

struct Case {
  Shape a, b, y;
  Shape bias = {};
};

const Case kCases[] = {
    {{{"batch", 3}, {"seq", 7}, {"embed", 19}},
     {{"embed", 19}, {"ffn", 37}},
     {{"batch", 3}, {"seq", 7}, {"ffn", 37}},
     {{"ffn", 37}}},
    // Whole runs of 16 bytes, and several blocks of c and of k.
    {{{"batch", 2}, {"seq", 40}, {"embed", 104}},
     {{"embed", 104}, {"ffn", 72}},
     {{"batch", 2}, {"seq", 40}, {"ffn", 72}},
     {{"ffn", 72}}},
    // dx = dy W^T, dW = x^T dy, and with swapped operands.
    {{{"batch", 3}, {"seq", 7}, {"ffn", 37}}, {{"embed", 19}, {"ffn", 37}}, {{"batch", 3}, {"seq", 7}, {"embed", 19}}},
    {{{"batch", 3}, {"seq", 7}, {"embed", 19}}, {{"batch", 3}, {"seq", 7}, {"ffn", 37}}, {{"embed", 19}, {"ffn", 37}}},
    {{{"batch", 3}, {"seq", 7}, {"ffn", 37}}, {{"batch", 3}, {"seq", 7}, {"embed", 19}}, {{"embed", 19}, {"ffn", 37}}},
    {{{"embed", 19}, {"ffn", 37}}, {{"batch", 3}, {"seq", 7}, {"embed", 19}}, {{"batch", 3}, {"seq", 7}, {"ffn", 37}}},
    {{{"batch", 4}, {"seq", 24}, {"embed", 72}},
     {{"batch", 4}, {"seq", 24}, {"ffn", 80}},
     {{"embed", 72}, {"ffn", 80}}},
    {{{"batch", 4}, {"seq", 24}, {"ffn", 80}},
     {{"embed", 72}, {"ffn", 80}},
     {{"batch", 4}, {"seq", 24}, {"embed", 72}}},
    // Several own and summed dims.
    {{{"batch", 2}, {"seq", 5}, {"embed", 12}},
     {{"embed", 12}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 8}},
     {{"batch", 2}, {"seq", 5}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 8}},
     {{"kv_heads", 2}, {"group", 3}, {"head_dim", 8}}},
    {{{"batch", 2}, {"seq", 5}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 8}},
     {{"kv_heads", 2}, {"group", 3}, {"head_dim", 8}, {"embed", 12}},
     {{"batch", 2}, {"seq", 5}, {"embed", 12}},
     {{"embed", 12}}},
    // Batch dims: experts, outside and inside; one bias per row of y.
    {{{"expert", 3}, {"token", 9}, {"embed", 8}},
     {{"expert", 3}, {"embed", 8}, {"ffn", 5}},
     {{"expert", 3}, {"token", 9}, {"ffn", 5}},
     {{"expert", 3}, {"ffn", 5}}},
    {{{"token", 9}, {"expert", 3}, {"embed", 8}},
     {{"expert", 3}, {"embed", 8}, {"ffn", 5}},
     {{"token", 9}, {"expert", 3}, {"ffn", 5}},
     {{"token", 9}}},
    // Own dims that do not merge become batch dims.
    {{{"batch", 2}, {"seq", 5}, {"embed", 12}},
     {{"kv_heads", 3}, {"embed", 12}, {"head_dim", 8}},
     {{"batch", 2}, {"kv_heads", 3}, {"seq", 5}, {"head_dim", 8}},
     {{"kv_heads", 3}, {"head_dim", 8}}},
    // Decoding: a few rows.
    {{{"batch", 2}, {"seq", 1}, {"embed", 45}},
     {{"embed", 45}, {"ffn", 131}},
     {{"batch", 2}, {"seq", 1}, {"ffn", 131}},
     {{"ffn", 131}}},
    {{{"batch", 1}, {"seq", 1}, {"ffn", 131}},
     {{"embed", 45}, {"ffn", 131}},
     {{"batch", 1}, {"seq", 1}, {"embed", 45}}},
    // Dots, outer products, an empty sum.
    {{{"a", 40}}, {{"a", 40}}, {}},
    {{{"a", 40}}, {{"b", 30}}, {{"a", 40}, {"b", 30}}},
    {{{"a", 40}}, {{"b", 30}}, {{"b", 30}, {"a", 40}}},
    {{{"a", 5}, {"none", 0}}, {{"none", 0}, {"b", 7}}, {{"a", 5}, {"b", 7}}, {{"b", 7}}},
    // Not a matmul: summed dims in another order; an innermost batch dim.
    {{{"x", 4}, {"s", 3}, {"t", 5}}, {{"t", 5}, {"s", 3}, {"z", 6}}, {{"x", 4}, {"z", 6}}},
    {{{"x", 4}, {"s", 3}, {"batch", 5}},
     {{"s", 3}, {"z", 6}, {"batch", 5}},
     {{"batch", 5}, {"x", 4}, {"z", 6}},
     {{"z", 6}}},
    {{{"x", 4}, {"s", 3}, {"t", 5}}, {{"s", 3}, {"z", 6}}, {{"x", 4}, {"z", 6}}},
};

// A library rounds the product to 16 bits before it adds 16-bit values or biases, as two operations would: products in
// these cases are below 16.
void check(const Case& c, DType dtype, DType to, bool biased, bool accumulate, DeviceTolerance tolerance = {}) {
  if ((accumulate || biased) && tensor::size_of(to) == 2 && device_under_test().kind() != "emulated")
    tolerance.absolute += 4 * device_unit_of(to);
  SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b) + " " + to_string(c.y) + (biased ? " biased" : "") +
               (accumulate ? " accumulates" : "") + " " + std::string(name_of(dtype)));
  Tensor a = random_tensor(c.a, dtype, 1), b = random_tensor(c.b, dtype, 2), bias = random_tensor(c.bias, dtype, 3);
  std::vector<Tensor*> ins = {&a, &b};
  if (biased) ins.push_back(&bias);
  compare_on_device({.kind = "contract", .accumulate = accumulate}, ins,
                    {accumulate ? random_tensor(c.y, to, 4) : Tensor(c.y, to)}, tolerance);
}

TEST(OnDevice, Contract) {
  for (const Case& c : kCases)
    for (const DType dtype : kDeviceTypes)
      for (const DType to : std::set<DType>{dtype, DType::f32})
        for (const bool biased : {false, true})
          for (const bool accumulate : {false, true})
            if (!biased || c.bias.rank() > 0) check(c, dtype, to, biased, accumulate);
}

// Few rows, as in generation: a block has 2, 4 or 8 runs of 16 bytes, more or fewer threads, and all of k or, in a
// cluster of 2, 4 or 8, a part.
TEST(OnDevice, ContractOfFewRows) {
  for (const int64_t rows : {1, 2, 3, 4, 5})
    for (const auto& [embed, ffn] : {std::pair<int64_t, int64_t>{40, 24},
                                     {1, 8},
                                     {264, 136},
                                     {24, 8640},
                                     {16, 17408},
                                     {70000, 8},
                                     {4300, 8},
                                     {9001, 24},
                                     {20000, 16},
                                     {2100, 1104}}) {
      const Case columns = {{{"batch", rows}, {"embed", embed}},
                            {{"embed", embed}, {"ffn", ffn}},
                            {{"batch", rows}, {"ffn", ffn}},
                            {{"ffn", ffn}}};
      const Case by_rows = {{{"batch", rows}, {"ffn", ffn}},
                            {{"embed", embed}, {"ffn", ffn}},
                            {{"batch", rows}, {"embed", embed}},
                            {{"embed", embed}}};
      for (const DType dtype : kDeviceTypes) {
        if (embed * ffn > 100000 && (dtype != DType::bf16 || rows > 1)) continue;
        for (const Case& c : {columns, by_rows}) {
          check(c, dtype, dtype, true, false, {1e-4, 1e-4});
          check(c, dtype, DType::f32, false, true, {1e-4, 1e-4});
        }
      }
    }
}

// If several matmuls are one launch, a block has other rows; a sum may then be rounded differently.
DeviceTolerance sums_in_another_order(DType dtype) {
  return {2 * device_unit_of(dtype), 1e-4};
}

// Matmuls of one row of a, as for query, key and value: of several widths, and what cannot be grouped.
TEST(OnDevice, ContractTogether) {
  for (const int64_t rows : {1, 2, 3, 5})
    for (const DType dtype : kDeviceTypes)
      for (const int64_t shift : {0, 1})
        for (const bool accumulate : {false, true}) {
          const Shape x = {{"batch", rows}, {"embed", 264}};
          Tensor a = random_tensor(x, dtype, 1);
          std::vector<Tensor> weights, biases;
          std::vector<std::vector<Tensor*>> ins;
          std::vector<std::vector<Tensor>> outs;
          for (const int64_t ffn : {136, 24, 2200}) {
            weights.push_back(random_tensor(Shape{{"embed", 264}, {"ffn", ffn}}, dtype, 2));
            biases.push_back(random_tensor(Shape{{"ffn", ffn}}, dtype, 3));
            outs.push_back({random_tensor(Shape{{"batch", rows}, {"ffn", ffn}}, dtype, 4)});
          }
          for (size_t i = 0; i < outs.size(); ++i) ins.push_back({&a, &weights[i], &biases[i]});
          SCOPED_TRACE(std::to_string(rows) + " rows " + std::string(name_of(dtype)));
          compare_together({.kind = "contract", .accumulate = accumulate}, ins, outs, shift,
                           sums_in_another_order(dtype));
        }
}

// The results of matmuls after a norm, separate or fused; empty if they are not fused.
std::vector<Tensor> behind_norm(const std::string& norm, const Shape& shape, DType dtype, DType of_gamma, int64_t shift,
                                bool at_once, int64_t last = 520) {
  const int64_t width = shape[1].size;
  Tensor x = random_tensor(shape, dtype, 1), y(shape, dtype), unread(shape, dtype);
  Tensor gamma = random_tensor(Shape{{"embed", width}}, of_gamma, 2);
  Tensor beta = random_tensor(Shape{{"embed", width}}, of_gamma, 3);
  CallsInARow calls(shift);
  std::vector<Tensor*> operands = {&x, &gamma};
  if (norm == "layer_norm") operands.push_back(&beta);
  calls.add({.kind = norm, .attributes = {{"epsilon", 1e-5}, {"gamma_offset", 0.5}}}, operands, {&y});
  const std::vector<int64_t> widths = {136, 24, last};
  std::vector<Tensor> weights, biases, made;
  for (const int64_t ffn : widths) {
    weights.push_back(random_tensor(Shape{{"embed", width}, {"ffn", ffn}}, dtype, 4));
    biases.push_back(random_tensor(Shape{{"ffn", ffn}}, dtype, 5));
    made.push_back(random_tensor(Shape{shape[0], {"ffn", ffn}}, dtype, 6));
  }
  for (size_t i = 0; i < widths.size(); ++i)
    calls.read(calls.add({.kind = "contract"}, {&unread, &weights[i], &biases[i]}, {&made[i]}), ContractIn::kA, 0);
  if (!calls.run(at_once, shape[0].size % 2 == 1 ? 32 : 64)) return {};
  return made;
}
void compare_behind_norm(const std::vector<Tensor>& got, const std::vector<Tensor>& want, DType dtype) {
  ASSERT_EQ(got.size(), want.size());
  const DeviceTolerance tolerance = sums_in_another_order(dtype);
  for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i], tolerance.relative, tolerance.absolute);
}

// The following matmuls compute the norm, for widths of 32 lanes, or a block with one or several runs each; not if a
// row needs more threads than these matmuls have.
TEST(OnDevice, ContractBehindNorm) {
  const SharedMemory much(kMuchShared);  // with warps of 64 too
  for (const std::string norm : {"layer_norm", "rms_norm"})
    for (const int64_t rows : {1, 2, 3, 4, 5})
      for (const int64_t width : {264, 1032, 2080})
        for (const DType dtype : kDeviceTypes)
          for (const DType of_gamma : {dtype, DType::f32})
            for (const int64_t shift : {0, 1}) {
              SCOPED_TRACE(fmt::format("{} of {} x {} in {}", norm, rows, width, name_of(dtype)));
              const Shape x = {{"batch", rows}, {"embed", width}};
              const auto at_once = behind_norm(norm, x, dtype, of_gamma, shift, true);
              const bool fits = rows <= 4 && shift == 0 && (dtype != DType::f32 || width < 2048 || rows <= 2);
              EXPECT_EQ(at_once.empty(), !fits);
              if (!fits) continue;
              compare_behind_norm(at_once, behind_norm(norm, x, dtype, of_gamma, shift, false), dtype);
            }
}

// The device has clusters, but not the memory of the kernel that uses them.
TEST(OnDevice, ContractOfFewRowsWithLittleSharedMemory) {
  const SharedMemory little(kLittleShared);
  for (const int64_t rows : {1, 3}) {
    SCOPED_TRACE(rows);
    const Shape x = {{"batch", rows}, {"embed", 264}};
    const auto at_once = behind_norm("layer_norm", x, DType::bf16, DType::f32, 0, true);
    compare_behind_norm(at_once, behind_norm("layer_norm", x, DType::bf16, DType::f32, 0, false), DType::bf16);
  }
}

// In its dtype or another, added or stored.
TEST(OnDevice, ContractOfGradients) {
  const Case cases[] = {
      {{{"batch", 3}, {"seq", 7}, {"embed", 19}},
       {{"batch", 3}, {"seq", 7}, {"ffn", 37}},
       {{"embed", 19}, {"ffn", 37}}},
      {{{"batch", 3}, {"seq", 7}, {"embed", 19}},
       {{"batch", 3}, {"seq", 7}, {"ffn", 37}},
       {{"ffn", 37}, {"embed", 19}}},
      {{{"batch", 4}, {"seq", 24}, {"embed", 72}},
       {{"batch", 4}, {"seq", 24}, {"kv_heads", 2}, {"head_dim", 40}},
       {{"embed", 72}, {"kv_heads", 2}, {"head_dim", 40}}},
      // Own dims do not merge; summed dims do not, so it is not a matmul.
      {{{"batch", 2}, {"seq", 5}, {"embed", 12}},
       {{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"head_dim", 8}},
       {{"kv_heads", 3}, {"embed", 12}, {"head_dim", 8}}},
      {{{"seq", 5}, {"batch", 3}, {"embed", 12}}, {{"batch", 3}, {"seq", 5}, {"ffn", 8}}, {{"embed", 12}, {"ffn", 8}}},
  };
  for (const Case& c : cases)
    for (const DType dtype : kDeviceTypes)
      for (const DType to : std::set<DType>{dtype, DType::f32})
        for (const uint32_t accumulate : {0u, 1u}) {
          SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b) + " " + to_string(c.y) + " " +
                       std::string(name_of(dtype)) + " " + std::string(name_of(to)) + " " + std::to_string(accumulate));
          Tensor a = random_tensor(c.a, dtype, 1), b = random_tensor(c.b, dtype, 2);
          // Products in these cases are below 16; a library rounds them before adding 16-bit values.
          DeviceTolerance tolerance;
          if (accumulate != 0 && tensor::size_of(to) == 2) tolerance.absolute += 8 * device_unit_of(to);
          compare_on_device({.kind = "contract", .accumulate = accumulate}, {&a, &b}, {random_tensor(c.y, to, 4)},
                            tolerance);
        }
}

// Some columns of a wider operand, as for joined gradients of query, key and value.
TEST(OnDevice, ContractOfColumns) {
  struct Columns {
    int64_t rows, embed, all, first, count;
  };
  for (const Columns& c : {Columns{21, 19, 37, 5, 9},
                           {96, 72, 120, 40, 40},
                           {96, 72, 120, 0, 80},
                           {96, 72, 120, 80, 40},
                           {33, 8, 48, 16, 32},
                           {4, 16, 24, 8, 1},
                           {1, 1, 3, 1, 1}})
    for (const DType dtype : kDeviceTypes)
      for (const DType to : std::set<DType>{dtype, DType::f32})
        for (const uint32_t accumulate : {0u, 1u}) {
          SCOPED_TRACE(fmt::format("{} of {} columns, {} to {}", c.count, c.all, name_of(dtype), name_of(to)));
          Tensor a = random_tensor({{"seq", c.rows}, {"embed", c.embed}}, dtype, 1),
                 b = random_tensor({{"seq", c.rows}, {"columns", c.all}}, dtype, 2);
          const Tensor y = random_tensor({{"embed", c.embed}, {"columns", c.count}}, to, 4),
                       sums = random_tensor({{"columns", c.count}}, to, 5);
          const Attributes columns = {{"first", c.first}};
          DeviceTolerance tolerance = {4e-5, 4e-5};
          if (accumulate != 0 && tensor::size_of(to) == 2) tolerance.absolute += 32 * device_unit_of(to);
          compare_on_device({.kind = "contract", .attributes = columns, .accumulate = accumulate}, {&a, &b}, {y},
                            tolerance);
          compare_on_device({.kind = "sum", .attributes = columns, .accumulate = accumulate}, {&b}, {sums}, tolerance);
        }
}

// Matmuls, sums and biases in fp64: no digits beyond fp32 are lost.
TEST(OnDevice, ContractInFp64) {
  for (const Case& c : kCases)
    for (const bool biased : {false, true})
      for (const bool accumulate : {false, true})
        if (!biased || c.bias.rank() > 0) check(c, DType::f64, DType::f64, biased, accumulate, {1e-13, 1e-13});
}

// Epilogues: the bits of both operations in sequence. A library rounds once, and so differs by the intermediate
// rounding.
void check_epilogue(const Case& c, DType dtype, DType to, const std::string& kind, const Attributes& of_kind,
                    int64_t shift = 0) {
  SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b) + " " + to_string(c.y) + " " + kind + " " +
               std::string(name_of(to)));
  const bool exact = device_under_test().kind() == "emulated" && gpu_emulated::library_gemm == nullptr;
  Tensor a = random_tensor(c.a, dtype, 1), b = random_tensor(c.b, dtype, 2), bias = random_tensor(c.bias, dtype, 3),
         given = random_tensor(c.y, to, 4, -3, 3);
  const auto same = [&](const Tensor& got, const Tensor& want) {
    if (exact) {
      EXPECT_EQ(got.values(), want.values());
    } else {
      expect_close(got, want, 2e-5 + device_unit_of(to), 2e-5 + 4 * device_unit_of(to));
    }
  };
  Attributes value = of_kind, slope = of_kind;
  value.set("epilogue", kind), slope.set("epilogue", kind + "_grad");
  for (Tensor* added : {static_cast<Tensor*>(nullptr), &bias}) {
    if (added && c.bias.rank() == 0) continue;
    Tensor x(c.y, to), y(c.y, to), got(c.y, to), beside(c.y, to), kept(c.y, to);
    run_on_device({.kind = "contract"}, {&a, &b, added}, {&x}, shift);
    run_on_device({.kind = kind, .attributes = of_kind}, {&x}, {&y}, shift);
    run_on_device({.kind = "contract", .attributes = value}, {&a, &b, added}, {&got}, shift);
    run_on_device({.kind = "contract", .attributes = value}, {&a, &b, added}, {&beside, &kept}, shift);
    same(got, y), same(beside, y), same(kept, x);
  }
  Tensor dy(c.y, to), dx(c.y, to), got(c.y, to);
  run_on_device({.kind = "contract"}, {&a, &b}, {&dy}, shift);
  run_on_device({.kind = kind + "_grad", .attributes = of_kind}, {&given, &dy}, {&dx}, shift);
  run_on_device({.kind = "contract", .attributes = slope}, {&a, &b, nullptr, &given}, {&got}, shift);
  same(got, dx);
}

TEST(OnDevice, ContractWithAnEpilogue) {
  const std::pair<std::string, Attributes> functions[] = {{"gelu", {{"form", "tanh"}}},
                                                          {"gelu", {{"form", "erf"}}},
                                                          {"silu", {}},
                                                          {"relu", {}},
                                                          {"relu2", {}},
                                                          {"tanh", {}}};
  size_t next = 0;
  for (const Case& c : kCases)
    for (const DType dtype : kDeviceTypes)
      for (const DType to : std::set<DType>{dtype, DType::f32}) {
        const auto& [kind, attributes] = functions[next++ % std::size(functions)];
        check_epilogue(c, dtype, to, kind, attributes, static_cast<int64_t>(next % 2));
      }
  const Dim expert = {"expert", 100}, token = {"token", 66}, embed = {"embed", 24}, ffn = {"ffn", 70};
  for (const auto& [kind, attributes] : functions)
    check_epilogue({{token, embed}, {embed, ffn}, {token, ffn}, {ffn}}, DType::bf16, DType::bf16, kind, attributes);
  check_epilogue({{expert, token, embed}, {expert, embed, ffn}, {expert, token, ffn}}, DType::bf16, DType::bf16, "gelu",
                 {{"form", "tanh"}});
}

// Blocks of 128 x 128, with many terms.
TEST(OnDevice, ContractInLargeBlocks) {
  const Dim expert = {"expert", 100}, token = {"token", 66}, embed = {"embed", 24}, ffn = {"ffn", 70};
  check({{expert, token, embed}, {expert, embed, ffn}, {expert, token, ffn}}, DType::bf16, DType::bf16, false, false);
  check({{expert, embed, token}, {expert, embed, ffn}, {expert, token, ffn}}, DType::bf16, DType::f32, false, true);
}

TEST(OnDevice, ContractOfSeveralTypes) {
  const Shape x = {{"batch", 3}, {"embed", 9}}, w = {{"embed", 9}, {"ffn", 5}}, y = {{"batch", 3}, {"ffn", 5}};
  Tensor a = random_tensor(x, DType::f32, 1), b = random_tensor(w, DType::bf16, 2);
  compare_on_device({.kind = "contract"}, {&a, &b}, {Tensor(y, DType::f16)});
  Tensor c = random_tensor(w, DType::f32, 2);
  compare_on_device({.kind = "contract"}, {&a, &c}, {Tensor(y, DType::bf16)});
}

// Frozen matrices: codes and scales, or 16 bits where the rest is in fp32; with what a fused matmul has, and one row.
TEST(OnDevice, ContractOfFrozenMatrices) {
  struct Frozen {
    Shape a, b, y, scale;
  };
  for (const Frozen& c :
       {Frozen{{{"batch", 3}, {"embed", 16}}, {{"embed", 16}, {"ffn", 24}}, {{"batch", 3}, {"ffn", 24}}, {{"ffn", 24}}},
        {{{"batch", 5}, {"ffn", 24}}, {{"embed", 16}, {"ffn", 24}}, {{"batch", 5}, {"embed", 16}}, {{"ffn", 24}}},
        {{{"seq", 1}, {"embed", 19}},
         {{"embed", 19}, {"heads", 3}, {"head_dim", 5}},
         {{"seq", 1}, {"heads", 3}, {"head_dim", 5}},
         {{"heads", 3}, {"head_dim", 5}}},
        {{{"batch", 9}, {"heads", 3}, {"head_dim", 5}},
         {{"heads", 3}, {"head_dim", 5}, {"embed", 7}},
         {{"batch", 9}, {"embed", 7}},
         {{"embed", 7}}}})
    for (const DType dtype : kDeviceTypes)
      for (const bool fused : {false, true}) {
        Tensor a = random_tensor(c.a, dtype, 1), added = random_tensor(c.y, dtype, 5);
        Tensor codes(c.b, DType::i8), scale = random_tensor(c.scale, DType::f32, 3, 0.001, 0.01);
        for (int64_t i = 0; i < codes.elements(); ++i) codes.set(i, static_cast<double>((i * 37) % 255 - 127));
        Trial trial = {.kind = "contract"};
        Tensor* const added_or_none = fused ? &added : nullptr;
        // Codes times scales are rounded to the dtype of a.
        DeviceTolerance tolerance;
        tolerance.absolute += 4 * device_unit_of(dtype);
        compare_on_device(trial, {&a, &codes, nullptr, nullptr, added_or_none, &scale}, {Tensor(c.y, dtype)},
                          tolerance);
        if (dtype != DType::f32) continue;
        for (const DType frozen : {DType::bf16, DType::f16}) {
          Tensor b = random_tensor(c.b, frozen, 2);
          trial.accumulate = fused ? 1 : 0;
          compare_on_device(trial, {&a, &b, nullptr, nullptr, added_or_none}, {random_tensor(c.y, dtype, 4)});
        }
      }
}

// Another value is added: by a library if supported, otherwise by a kernel after the matmul.
TEST(OnDevice, ContractThatAdds) {
  for (const Case& c : kCases)
    for (const DType dtype : kDeviceTypes)
      for (const bool biased : {false, true}) {
        if (biased && c.bias.rank() == 0) continue;
        SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b) + " " + to_string(c.y) + (biased ? " biased " : " ") +
                     std::string(name_of(dtype)));
        Tensor a = random_tensor(c.a, dtype, 1), b = random_tensor(c.b, dtype, 2),
               bias = random_tensor(c.bias, dtype, 3), added = random_tensor(c.y, dtype, 4);
        // The stored value is below 16 before the addition.
        DeviceTolerance tolerance;
        if (tensor::size_of(dtype) == 2) tolerance.absolute += 8 * device_unit_of(dtype);
        compare_on_device({.kind = "contract"}, {&a, &b, biased ? &bias : nullptr, nullptr, &added},
                          {Tensor(c.y, dtype)}, tolerance);
      }
}

}  // namespace
}  // namespace kintsugi::kernels::test::device_contract_test
