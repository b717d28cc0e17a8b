// Each operation alone: the claims of its row about splits, sums, accumulation and memory sharing hold for its
// reference kernel. Whole models do not reveal a wrong row, and the partitioner relies on all of it.
#include <gtest/gtest.h>

#include <map>

#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "tests/row_trials.h"

namespace kintsugi::tests::rows_test {
namespace {

const RowTrials& trials() {
  static const RowTrials all;
  return all;
}

const RowTrial& one_of(std::string_view kind) {
  for (const RowTrial& t : trials().list())
    if (t.row.kind == kind) return t;
  throw std::runtime_error("no trial");
}

std::vector<Cut> cuts(int64_t n) {
  std::vector<Cut> list = {halves(n), padded(n)};
  if (n >= 4) list.push_back(zigzag(n));
  return list;
}

// Squares are summed per block of local elements, so the number of blocks depends on the split: only their sum is
// invariant.
void sum_blocks(std::vector<Tensor>& outs) {
  for (Tensor& y : outs) {
    double sum = 0;
    for (double x : y.values()) sum += x;
    y = kernels::test::filled({}, tensor::DType::f64, sum);
  }
}

std::string check_all_splits(const RowTrial& t) {
  const std::vector<Tensor> ins = draw(t, 1, RowTrials::kVocab), whole = run_row(t, ins, t.outs);
  for (const std::string& dim : splittable(t)) {
    if (window_of(t, dim)) {
      for (const int ranks : {2, 3})
        if (std::string wrong = check_window_split(t, dim, ranks, ins, whole, run_row); !wrong.empty()) return wrong;
      continue;
    }
    for (const Cut& cut : cuts(size_of_dim(t, dim)))
      if (std::string wrong = check_split(t, dim, cut, ins, whole); !wrong.empty()) return wrong;
  }
  return "";
}

std::string check_sums(const RowTrial& t) {
  if (t.row.additive)
    if (std::string wrong = check_sum(t, std::vector<bool>(t.ins.size(), false), RowTrials::kVocab); !wrong.empty())
      return wrong;
  if (!t.row.linear) return "";
  for (size_t i = 0; i < t.ins.size(); ++i) {
    if (!tensor::is_floating(t.ins[i].dtype)) continue;
    std::vector<bool> held(t.ins.size(), true);
    held[i] = false;
    if (std::string wrong = check_sum(t, held, RowTrials::kVocab); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

TEST(Rows, EveryOperationHasATrial) {
  const std::set<std::string_view> without = {"state", "input", "output", "rename", "stack", "unstack", "join_columns",
                                              "split_columns", "halo_pack", "halo_place", "halo_add", "reshape",
                                              "from_bucket", "to_bucket", "adamw8", "adamw16",
                                              // Their padding is a reference of NaN, not zeros.
                                              "preference_loss", "preference_loss_grad"};
  for (const graph::OpRow& row : ops::operations().rows()) {
    size_t count = 0;
    for (const RowTrial& t : trials().list()) count += t.row.kind == row.kind;
    EXPECT_EQ(count == 0, without.contains(row.kind)) << row.kind;
  }
}

TEST(Rows, EveryOperationHasItsKernels) {
  const std::set<std::string_view> without = {"state",   "input",  "output",      "rename",
                                              "reshape", "assign", "from_bucket", "to_bucket"};
  const auto reference = kernels::reference_kernels(), cpu = kernels::cpu_kernels();
  for (const graph::OpRow& row : ops::operations().rows()) {
    if (without.contains(row.kind)) continue;
    EXPECT_EQ(reference->find(row.kind).kind, row.kind);
    EXPECT_EQ(cpu->find(row.kind).kind, row.kind);
    for (const auto* set : {&reference, &cpu}) {
      const kernels::Kernel& kernel = (*set)->find(row.kind);
      EXPECT_NE(kernel.run, nullptr) << row.kind;
      EXPECT_EQ(to_string(kernel.ins), to_string(row.ins)) << row.kind << " of " << (*set)->name();
      EXPECT_EQ(to_string(kernel.outs), to_string(row.outs)) << row.kind << " of " << (*set)->name();
    }
  }
}

TEST(Rows, SplitAlongEachDimAsWhole) {
  std::map<std::string, int> dims;
  for (const RowTrial& t : trials().list()) {
    if (t.row.kind == "sum_squares") continue;
    EXPECT_EQ(check_all_splits(t), "");
    for (const std::string& d : splittable(t)) ++dims[d];
  }
  for (const char* d : {"batch", "seq", "embed", "ffn", "vocab", "kv_heads", "group", "head_dim"})
    EXPECT_GT(dims[d], 3) << d;
}

TEST(Rows, SquaresOfPartsAddUp) {
  for (const RowTrial& t : trials().list()) {
    if (t.row.kind != "sum_squares") continue;
    const std::vector<Tensor> ins = draw(t, 1, RowTrials::kVocab);
    std::vector<Tensor> whole = run_row(t, ins, t.outs);
    sum_blocks(whole);
    for (const tensor::Dim& d : t.ins[0].shape) {
      std::vector<Tensor> sum = {kernels::test::filled({}, tensor::DType::f64, 0)};
      for (const auto& segments : padded(d.size)) {
        const Tensor part = part_of(ins[0], d.name, segments);
        std::vector<Tensor> outs =
            run_row(t, {part}, {{{{"block", (part.elements() + 1023) / 1024}}, tensor::DType::f64}});
        sum_blocks(outs);
        add_to(sum[0], outs[0], graph::Combiner::sum);
      }
      EXPECT_EQ(difference(sum[0], whole[0]), "") << t.text() << " along " << d.name;
    }
  }
}

TEST(Rows, SumsOfOperands) {
  int additive = 0, linear = 0;
  for (const RowTrial& t : trials().list()) {
    EXPECT_EQ(check_sums(t), "");
    additive += t.row.additive;
    linear += t.row.linear;
  }
  EXPECT_GE(additive, 20);
  EXPECT_GE(linear, 10);
}

// A flat row applies to any piece of its operands; squares to any that starts at a block.
TEST(Rows, AnyFlatPiece) {
  int checked = 0;
  for (const RowTrial& t : trials().list()) {
    std::set<int64_t> sizes;
    for (const Type& type : t.ins)
      if (type.shape.rank() > 0) sizes.insert(type.shape.elements());
    if (!t.row.flat || sizes.size() != 1) continue;  // a sum with broadcast has no flat pieces
    const int64_t n = *sizes.begin(), cut = t.row.kind == "sum_squares" ? 1024 : n / 3;
    if (cut == 0 || cut >= n) continue;
    const std::vector<Tensor> ins = draw(t, 1, RowTrials::kVocab), whole = run_row(t, ins, t.outs);
    std::vector<std::vector<double>> joined(whole.size());
    for (const auto& [begin, end] : {std::pair{int64_t{0}, cut}, std::pair{cut, n}}) {
      std::vector<Tensor> parts;
      for (const Tensor& x : ins) {
        if (x.type().shape.rank() == 0) {
          parts.push_back(x);
          continue;
        }
        const std::vector<double> all = x.values();
        parts.emplace_back(Shape{{"flat", end - begin}}, x.type().dtype,
                           std::vector<double>(all.begin() + begin, all.begin() + end));
      }
      std::vector<Type> types;
      for (const Type& type : t.outs)
        types.push_back(type.shape.has("block") ? Type{{{"block", (end - begin + 1023) / 1024}}, type.dtype}
                                                : Type{{{"flat", end - begin}}, type.dtype});
      const std::vector<Tensor> outs = run_row(t, parts, types);
      for (size_t j = 0; j < outs.size(); ++j)
        for (double x : outs[j].values()) joined[j].push_back(x);
    }
    for (size_t j = 0; j < whole.size(); ++j) EXPECT_EQ(joined[j], whole[j].values()) << t.text();
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

// Keys in two steps: the outputs of each are combined by its statistics.
TEST(Rows, AttentionTakesKeysInSteps) {
  int checked = 0;
  for (const RowTrial& t : trials().list()) {
    if (t.row.steps.empty()) continue;
    const std::vector<Tensor> whole_ins = draw(t, 1, RowTrials::kVocab), whole = run_row(t, whole_ins, t.outs);
    const int64_t keys = size_of_dim(t, "key_seq");
    RowTrial free = t;
    free.row.whole = {"head_dim"};
    if (t.row.kind == "attention_grad") {
      // With the global lse, the gradients of the steps are added (dq) or concatenated (dk, dv).
      for (const Cut& cut : cuts(keys)) EXPECT_EQ(check_split(free, "key_seq", cut, whole_ins, whole), "");
      ++checked;
      continue;
    }
    for (const Cut& cut : cuts(keys)) {
      std::vector<Tensor> joined;
      for (const auto& segments : cut) {
        std::vector<Tensor> parts;
        for (const Tensor& x : whole_ins) parts.push_back(part_of(x, "key_seq", segments));
        const std::vector<Tensor> step =
            run_row(t, parts, t.outs, {.indices = {{"key_seq", tensor::DimIndex(segments, keys)}}});
        if (!joined.empty()) {
          RowTrial join = one_of("attention_join");
          join.outs = t.outs;
          joined = run_row(join, {joined[0], joined[1], step[0], step[1]}, t.outs);
        } else {
          joined = step;
        }
      }
      for (size_t j : {0, 1}) EXPECT_EQ(difference(joined[j], whole[j]), "") << t.text();
    }
    ++checked;
  }
  EXPECT_GE(checked, 4);
}

TEST(Rows, OutputsAreAddedToWhatIsThere) {
  for (const RowTrial& t : trials().list()) {
    uint32_t all = 0;  // by position
    for (std::string_view output : t.row.accumulates) all |= 1u << t.row.outs.position(output);
    if (!all) continue;
    const std::vector<Tensor> ins = draw(t, 1, RowTrials::kVocab);
    std::vector<Tensor> alone = run_row(t, ins, t.outs);
    const std::vector<Tensor> added = run_row(t, ins, t.outs, {.accumulate = all, .before = 0.25});
    for (size_t j = 0; j < alone.size(); ++j) {
      if (t.row.can_accumulate(t.row.outs.at(j, t.absent.outs).name))
        add_to(alone[j], kernels::test::filled(alone[j].type().shape, alone[j].type().dtype, 0.25),
               graph::Combiner::sum);
      EXPECT_EQ(difference(added[j], alone[j]), "") << t.text() << " output " << j;
    }
  }
}

TEST(Rows, OutputsInTheMemoryOfInputs) {
  static const auto reference = kernels::reference_kernels();
  int checked = 0;
  for (const RowTrial& t : trials().list()) {
    std::vector<Tensor> ins = draw(t, 1, RowTrials::kVocab);
    const std::vector<Tensor> apart = run_row(t, ins, t.outs);
    std::vector<Tensor> made;
    for (const Type& type : t.outs) made.emplace_back(type);
    std::vector<Tensor*> in_pointers = by_position(ins, t.absent.ins), out_pointers = by_position(made, t.absent.outs);
    bool shares = false;
    for (const auto& [output, input] : t.row.in_place) {
      const std::optional<size_t> out = t.row.outs.place(output, t.absent.outs),
                                  in = t.row.ins.place(input, t.absent.ins);
      ASSERT_TRUE(out && *out < t.outs.size() && in && *in < t.ins.size()) << t.text();
      if (t.ins[*in] != t.outs[*out]) {
        EXPECT_EQ(t.row.kind, "add") << t.text();  // whose first operand may lack dims of the sum
        continue;
      }
      out_pointers[t.row.outs.position(output)] = in_pointers[t.row.ins.position(input)];
      shares = true;
    }
    if (!shares) continue;
    kernels::test::run_kernel(*reference, {.kind = t.kernel, .attributes = t.attributes, .numbers = numbers_of(t)},
                              in_pointers, out_pointers);
    for (size_t j = 0; j < apart.size(); ++j)
      EXPECT_EQ(out_pointers[tensor::position_of(j, t.absent.outs)]->values(), apart[j].values())
          << t.text() << " output " << j;
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

// The test detects a row that claims too much.
TEST(Rows, AWrongRowIsSeen) {
  const auto splits_wrongly = [](RowTrial t) { return !check_all_splits(t).empty(); };
  const auto adds_wrongly = [](RowTrial t) { return !check_sums(t).empty(); };
  RowTrial t = one_of("layer_norm");
  t.attributes.set("whole", "");
  EXPECT_TRUE(splits_wrongly(t));
  t = one_of("attention");
  t.row.whole = {"key_seq"};
  EXPECT_TRUE(splits_wrongly(t));
  t = one_of("head");
  t.row.combine = {};
  EXPECT_TRUE(splits_wrongly(t));
  t = one_of("take");
  t.row.whole = {};
  EXPECT_TRUE(splits_wrongly(t));
  for (const char* kind : {"gelu", "rms_norm", "attention", "gated", "contract", "fill"}) {
    t = one_of(kind);
    t.row.additive = true;
    EXPECT_TRUE(adds_wrongly(t)) << kind;
  }
  for (const char* kind : {"gelu", "silu_grad", "layer_norm", "attention"}) {
    t = one_of(kind);
    t.row.linear = true;
    EXPECT_TRUE(adds_wrongly(t)) << kind;
  }
}

}  // namespace kintsugi::tests::rows_test
