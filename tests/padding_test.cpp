// How operations treat padding: the claim of the row about zeros (keeps_zero), that padding contributes to nothing, and
// that no kernel turns it into NaN.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "tests/row_trials.h"

namespace kintsugi::tests::padding_test {
namespace {

const RowTrials& trials() {
  static const RowTrials all;
  return all;
}

// The log-sum-exp of a row without visible keys, as for padding, or without a vocabulary; and its largest logit.
bool may_be_minus_infinity(const RowTrial& t, size_t output) {
  const bool attention = (t.row.kind == "attention" || t.row.kind == "attention_join") && output == 1;
  if (t.row.kind == "head" && t.row.outs.at(output, t.absent.outs).name == "top") return true;
  return attention || ((t.row.kind == "head" || t.row.kind == "head_with_grad") && output == 0);
}

// A rank with padding after its positions, and one with nothing else.
std::vector<std::vector<Segment>> padded_parts(int64_t n) {
  return {padded(n)[1], {{0, n}, {-1, 2}}, {{-1, 3}}};
}

std::vector<Segment> without_padding(std::vector<Segment> segments) {
  std::erase_if(segments, [](const Segment& s) { return s.global < 0; });
  return segments;
}

bool all_have(const RowTrial& t, const std::string& dim) {
  return std::all_of(t.ins.begin(), t.ins.end(), [&](const Type& type) { return type.shape.has(dim); });
}

struct Padded {
  const RowTrial& t;
  std::string dim;
  std::vector<Segment> segments;
  double id;  // of tokens and labels at padding: 0 or -1

  tensor::DimIndex index() const { return {segments, size_of_dim(t, dim)}; }
  std::string text() const {
    std::string text = t.text() + ": " + dim + " of";
    for (const Segment& s : segments) text += fmt::format(" {}+{}", s.global, s.count);
    return text;
  }

  std::vector<Tensor> ins(const std::vector<Tensor>& whole) const {
    std::vector<Tensor> parts;
    for (const Tensor& x : whole) {
      parts.push_back(part_of(x, dim, segments));
      const bool statistics = t.row.kind == "attention_join" && parts.size() % 2 == 0;  // as attention gives them
      if ((x.type().dtype != tensor::DType::i32 && !statistics) || !x.type().shape.has(dim)) continue;
      const std::string_view operand = t.row.ins.at(parts.size() - 1, t.absent.ins).name;
      // Padding tokens have no slot, and padding samples count no tokens.
      const double none = operand == "slots" ? -1.0 : operand == "counts" ? 0.0 : id;
      for_each_of_part(x.type().shape, dim, segments, [&](int64_t to, int64_t from) {
        if (from < 0) parts.back().set(to, statistics ? -INFINITY : none);
      });
    }
    return parts;
  }
  std::vector<Type> outs() const {
    std::vector<Type> types = t.outs;
    for (Type& type : types) type.shape = resized(type.shape, dim, count(segments));
    return types;
  }
  bool keeps_zero() const { return t.row.keeps_zero && (!t.row.variadic || all_have(t, dim)); }

  std::string check(const std::vector<Tensor>& made) const {
    for (size_t j = 0; j < made.size(); ++j) {
      const bool minus = may_be_minus_infinity(t, j);
      for (const double y : made[j].values())
        if (!std::isfinite(y) && !(minus && y == -INFINITY)) return fmt::format("{}, output {}: {}", text(), j, y);
      if (!keeps_zero() || !t.outs[j].shape.has(dim)) continue;
      std::string wrong;
      for_each_of_part(t.outs[j].shape, dim, segments, [&](int64_t at, int64_t from) {
        const double y = made[j].get(at);
        if (from < 0 && y != 0 && !(minus && y == -INFINITY))
          wrong = fmt::format("{}, output {}: {} at padding", text(), j, y);
      });
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
};

// Calls f for every padded part of every trial, along each dim that may be split.
template <typename F>
void for_all_padded(const F& f) {
  for (const RowTrial& t : trials().list()) {
    if (t.row.kind == "sum_squares") continue;
    const std::vector<tensor::DimWindow> windows = tensor::windows_of(t.attributes);
    for (const std::string& dim : splittable(t)) {
      // Outputs at padding may read real inputs through their windows; the partitioner clears them. See
      // FastKernelsAgreeWithinWindows.
      if (std::ranges::find(windows, dim, &tensor::DimWindow::dim) != windows.end()) continue;
      if (follower(t, dim)) continue;  // the partitioner splits it without padding
      for (const auto& segments : padded_parts(size_of_dim(t, dim)))
        for (const double id : {0.0, -1.0}) f(Padded{t, dim, segments, id});
    }
  }
}

// In fp32, except scalars, block sums, batch moments and expert balance, as in a run.
Type narrow(Type type) {
  const Shape& s = type.shape;
  const bool number = s.rank() == 0 || s.has("block") || s.has("moment") || s.has("group_moment") || s.has("candidate");
  if (tensor::is_floating(type.dtype) && !number) type.dtype = tensor::DType::f32;
  return type;
}

std::string far(const Tensor& got, const Tensor& want) {
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.get(i), w = want.get(i);
    if (g != w && !(std::abs(g - w) <= 1e-5 + 1e-5 * std::abs(w)))
      return fmt::format("element {} is {}, not {}", i, g, w);
  }
  return "";
}

}  // namespace

TEST(Padding, StaysZeroWhereTheRowSaysSo) {
  std::set<std::string_view> kept;
  for_all_padded([&](const Padded& p) {
    const std::vector<Tensor> ins = p.ins(draw(p.t, 1, RowTrials::kVocab));
    EXPECT_EQ(p.check(run_row(p.t, ins, p.outs(), {.indices = {{p.dim, p.index()}}})), "");
    if (p.keeps_zero()) kept.insert(p.t.row.kind);
  });
  EXPECT_GE(kept.size(), 30);
}

TEST(Padding, AddsNothing) {
  int checked = 0;
  for_all_padded([&](const Padded& p) {
    Padded bare = p;
    bare.segments = without_padding(p.segments);
    if (bare.segments.empty() || !p.keeps_zero()) return;
    const std::vector<Tensor> whole = draw(p.t, 1, RowTrials::kVocab);
    const std::vector<Tensor> with = run_row(p.t, p.ins(whole), p.outs(), {.indices = {{p.dim, p.index()}}}),
                              without =
                                  run_row(p.t, bare.ins(whole), bare.outs(), {.indices = {{p.dim, bare.index()}}});
    for (size_t j = 0; j < with.size(); ++j) {
      if (p.t.outs[j].shape.has(p.dim)) continue;
      EXPECT_EQ(difference(with[j], without[j]), "") << p.text() << ", output " << j;
      ++checked;
    }
  });
  EXPECT_GE(checked, 200);
}

TEST(Padding, FastKernelsAgree) {
  const auto cpu = kernels::cpu_kernels();
  for_all_padded([&](const Padded& p) {
    const RowCall call = {.indices = {{p.dim, p.index()}}};
    std::vector<Tensor> ins = p.ins(draw(p.t, 1, RowTrials::kVocab));
    const std::vector<Tensor> want = run_row(p.t, ins, p.outs(), call);
    for (Tensor& x : ins)
      if (const Type type = narrow(x.type()); type != x.type()) x = x.as(type.dtype);
    std::vector<Type> types = p.outs();
    if (p.t.row.kind != "sample_scores")  // whose outputs are in fp64
      for (Type& type : types) type = narrow(type);
    std::vector<Tensor> got = run_row_on(*cpu, p.t, ins, types, call);
    // Slots without a token, of which the reference makes zeros, are undefined.
    for (size_t j = 0; j < got.size(); ++j)
      for (int64_t i = 0; i < got[j].elements() && got[j].type().shape.has("slot"); ++i)
        if (want[j].get(i) == 0.0) got[j].set(i, 0.0);
    EXPECT_EQ(p.check(got), "");
    for (size_t j = 0; j < got.size(); ++j) EXPECT_EQ(far(got[j], want[j]), "") << p.text() << ", output " << j;
  });
}

// Blocks with halos: positions at their ends may be absent, and outputs there are padding.
TEST(Padding, FastKernelsAgreeWithinWindows) {
  const auto cpu = kernels::cpu_kernels();
  int absent = 0, padded = 0;
  for (const RowTrial& t : trials().list()) {
    const std::vector<Tensor> whole = draw(t, 1, RowTrials::kVocab);
    for (const std::string& dim : splittable(t)) {
      if (!window_of(t, dim)) continue;
      for (const int ranks : {2, 3})
        for (int rank = 0; rank < ranks; ++rank) {
          WindowPart part = window_part(t, dim, ranks, rank, whole);
          for (const kernels::NamedIndex& index : part.indices)
            for (const Segment& s : index.index.segments()) (index.windowed ? absent : padded) += s.global < 0;
          const RowCall call = {.indices = part.indices};
          const std::vector<Tensor> want = run_row(part.local, part.ins, part.outs, call);
          for (Tensor& x : part.ins)
            if (const Type type = narrow(x.type()); type != x.type()) x = x.as(type.dtype);
          for (Type& type : part.outs) type = narrow(type);
          const std::vector<Tensor> got = run_row_on(*cpu, part.local, part.ins, part.outs, call);
          // Outputs at absent positions are never read.
          for (size_t j = 0; j < got.size(); ++j) {
            std::string wrong;
            const auto look = [&](int64_t at, int64_t from) {
              if (from >= 0 && wrong.empty() &&
                  std::abs(got[j].get(at) - want[j].get(at)) > 1e-5 + 1e-5 * std::abs(want[j].get(at)))
                wrong = fmt::format("element {} is {}, not {}", at, got[j].get(at), want[j].get(at));
            };
            if (t.outs[j].shape.has(dim)) {
              for_each_of_part(t.outs[j].shape, dim, part.of_outs[j].segments(), look);
            } else {
              for (int64_t i = 0; i < want[j].elements(); ++i) look(i, i);
            }
            EXPECT_EQ(wrong, "") << t.text() << ": " << dim << ", rank " << rank << " of " << ranks << ", output " << j;
          }
        }
    }
  }
  EXPECT_GE(absent, 50);
  EXPECT_GE(padded, 10);
}

// Blocks of a bucket are split along its flat dim; padding blocks are zero.
TEST(Padding, BlocksOfABucketFollowItsFlatDim) {
  const Shape bucket = {{"shard", 2}, {"flat", 3072}};
  for (const char* name : {"reference", "cpu"}) {
    const tensor::DType dtype = std::string(name) == "cpu" ? tensor::DType::f32 : tensor::DType::f64;
    const auto set = dtype == tensor::DType::f64 ? kernels::reference_kernels() : kernels::cpu_kernels();
    Tensor x = kernels::test::random_tensor(bucket, dtype, 1), whole({{"shard", 2}, {"block", 3}}, tensor::DType::f64);
    kernels::test::run_kernel(*set, {.kind = "sum_squares"}, {&x}, {&whole});
    Tensor part = part_of(x, "flat", {{1024, 2048}, {-1, 1024}}),
           blocks({{"shard", 2}, {"block", 3}}, tensor::DType::f64);
    kernels::test::run_kernel(*set, {.kind = "sum_squares"}, {&part}, {&blocks});
    for (int64_t shard : {0, 1}) {
      EXPECT_EQ(blocks.get(shard * 3), whole.get(shard * 3 + 1));
      EXPECT_EQ(blocks.get(shard * 3 + 1), whole.get(shard * 3 + 2));
      EXPECT_EQ(blocks.get(shard * 3 + 2), 0);
    }
  }
}

// The test detects a row that claims too much.
TEST(Padding, AWrongRowIsSeen) {
  for (const char* kind : {"layer_norm", "fill", "logsumexp", "head", "broadcast"}) {
    bool seen = false;
    for (const RowTrial& original : trials().list()) {
      if (original.row.kind != kind) continue;
      EXPECT_FALSE(original.row.keeps_zero) << kind;
      RowTrial t = original;
      t.row.keeps_zero = true;
      for (const std::string& dim : splittable(t)) {
        const Padded p{t, dim, padded_parts(size_of_dim(t, dim))[1], 0};
        seen |= !p.check(run_row(t, p.ins(draw(t, 1, RowTrials::kVocab)), p.outs(), {.indices = {{dim, p.index()}}}))
                     .empty();
      }
    }
    EXPECT_TRUE(seen) << kind;
  }
}

}  // namespace kintsugi::tests::padding_test
