// Every row: its shape rule and FLOPs by numbers, its errors by text, and the consistency of its claims.
#include "kintsugi/ops/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kintsugi/base/error.h"

namespace kintsugi::ops::rows_test {
namespace {

constexpr DType kF = DType::f32, kB = DType::bf16, kD = DType::f64, kI = DType::i32;

Type of(const char* dims, DType dtype = kF) {
  static const std::vector<tensor::Dim> sizes = {
      {"batch", 2},    {"seq", 5},       {"key_seq", 7}, {"embed", 6},    {"ffn", 8},   {"vocab", 11},
      {"position", 9}, {"kv_heads", 3},  {"group", 2},   {"head_dim", 4}, {"block", 1}, {"class", 3},
      {"target", 4},   {"candidate", 3}, {"choice", 2},  {"expert", 3},   {"slot", 4},  {"height", 7},
      {"width", 9},    {"channel", 3},   {"filter", 4},  {"moment", 2},   {"text", 4},  {"row", 3}};
  std::vector<tensor::Dim> found;
  for (const std::string& name : tensor::words(dims))
    for (const tensor::Dim& d : sizes)
      if (d.name == name) found.push_back(d);
  return {Shape(found), dtype};
}

struct Case {
  std::string_view kind;
  std::vector<Type> ins;
  Attributes attributes;
  std::vector<Type> outs;
  double flops;
  std::vector<std::string_view> without = {};  // operands that are absent, beside those at the end

  const OpRow& row() const { return operations().find(kind); }
  tensor::Absent absent() const {
    uint32_t gaps = 0;
    for (std::string_view name : without) gaps |= 1u << row().ins.position(name);
    return {gaps | row().ins.absent_behind(ins.size() + without.size()),
            row().effect ? 0 : row().outs.absent_behind(outs.size())};
  }
  Types in_types() const { return {row().ins, ins, absent().ins}; }
};

const char* kQ = "batch seq kv_heads group head_dim";
const char* kK = "batch key_seq kv_heads head_dim";
const char* kX = "batch seq embed";
const char* kTokens = "batch seq";
const char* kImage = "batch height width channel";

// Windows over kImage: [height:3 width:5].
const Attributes kWindows = {{"window", "height width"},
                             {"kernel_height", int64_t{3}},
                             {"stride_height", int64_t{2}},
                             {"kernel_width", int64_t{5}}};
const Type kKernel = {{{"kernel_height", 3}, {"kernel_width", 5}, {"channel", 3}, {"filter", 4}}, kF};
const Type kFiltered = {{{"batch", 2}, {"height", 3}, {"width", 5}, {"filter", 4}}, kF};
const Type kPooled = {{{"batch", 2}, {"height", 3}, {"width", 5}, {"channel", 3}}, kF};

// With kWindows it computes [height:7 width:9] from kPooled.
const Type kTransposedKernel = {{{"kernel_height", 3}, {"kernel_width", 5}, {"filter", 4}, {"channel", 3}}, kF};

// kImage at twice the height and three times the width.
const Attributes kRepeated = {{"window", "height width"},      {"kernel_height", int64_t{2}},
                              {"stride_height", int64_t{2}},   {"kernel_width", int64_t{3}},
                              {"stride_width", int64_t{3}},    {"positions_height", int64_t{7}},
                              {"positions_width", int64_t{9}}, {"mode", "nearest"}};
const Attributes kInterpolated = {
    {"window", "height width"},       {"kernel_height", int64_t{4}},   {"stride_height", int64_t{2}},
    {"low_height", int64_t{1}},       {"high_height", int64_t{1}},     {"kernel_width", int64_t{5}},
    {"stride_width", int64_t{3}},     {"low_width", int64_t{1}},       {"high_width", int64_t{1}},
    {"positions_height", int64_t{7}}, {"positions_width", int64_t{9}}, {"mode", "linear"}};
const Type kUpsampled = {{{"batch", 2}, {"height", 14}, {"width", 27}, {"channel", 3}}, kF};
const Type kJoined = {{{"batch", 2}, {"height", 7}, {"width", 9}, {"joined", 7}}, kF};

// For kFiltered: 2 groups of 2 channels.
const Attributes kGroups = {{"channels", int64_t{4}}, {"groups", int64_t{2}}, {"count", int64_t{30}}};
const Type kGroupStatistics = {{{"batch", 2}, {"moment", 2}, {"norm_group", 2}}, kD};

// Sizes: batch 2, seq 5, key_seq 7, embed 6, ffn 8, vocab 11, position 9, kv_heads 3, group 2, head_dim 4.
std::vector<Case> cases() {
  const Type s = scalar();
  const std::vector<Type> attention = {of(kQ), of(kK), of(kK)},
                          attention_grad = {of(kQ), of(kK), of(kK), of(kQ), of("batch seq kv_heads group"), of(kQ)};
  const Attributes kPlaces = {{"experts", int64_t{3}}, {"capacity", int64_t{4}}};
  const Type kLongK = {{{"batch", 2}, {"key_seq", 14}, {"kv_heads", 3}, {"head_dim", 4}}, kF};
  return {
      {"add", {of(kX), of(kX), of(kX)}, {}, {of(kX)}, 120},
      {"add", {of("embed"), of(kX)}, {}, {of(kX)}, 60},  // the operand with the most dims says
      {"scale", {of(kX)}, {{"by", 2.0}}, {of(kX)}, 60},
      {"sum", {of(kX)}, {}, {of("embed")}, 60},
      {"cast", {of(kX)}, {{"dtype", "bf16"}}, {of(kX, kB)}, 60},
      {"rename",
       {of(kX)},
       {{"from", "seq"}, {"to", "key_seq"}},
       {{{{"batch", 2}, {"key_seq", 5}, {"embed", 6}}, kF}},
       0},
      {"contract",
       {of(kX), of("embed ffn")},
       {{"dims", "batch seq ffn"}, {"dtype", "fp32"}},
       {of("batch seq ffn")},
       2. * 2 * 5 * 6 * 8},
      {"contract",
       {of(kX, kB), of("batch seq ffn", kB)},
       {{"dims", "embed ffn"}, {"dtype", "fp32"}},
       {of("embed ffn")},
       2. * 2 * 5 * 6 * 8},
      {"contract",
       {of(kX), of("embed kv_heads group head_dim")},
       {{"dims", kQ}, {"dtype", "bf16"}},
       {of(kQ, kB)},
       2. * 2 * 5 * 6 * 3 * 2 * 4},
      {"embedding", {of(kTokens, kI), of("vocab embed", kB)}, {}, {of(kX, kB)}, 0},
      {"embedding_grad", {of(kTokens, kI), of(kX)}, {}, {of("vocab embed")}, 60},
      {"position", {of("position embed")}, {{"length", int64_t{5}}}, {of("seq embed")}, 0},
      {"position_grad", {of("seq embed")}, {}, {of("position embed")}, 54},
      {"layer_norm", {of(kX), of("embed"), of("embed")}, {}, {of(kX)}, 8 * 60},
      {"layer_norm_grad", {of(kX), of("embed"), of(kX)}, {}, {of(kX), of("embed"), of("embed")}, 16 * 60},
      {"rms_norm", {of(kX), of("embed")}, {}, {of(kX)}, 5 * 60},
      {"rms_norm_grad", {of(kX), of("embed"), of(kX)}, {}, {of(kX), of("embed")}, 11 * 60},
      {"gelu", {of(kX)}, {}, {of(kX)}, 10 * 60},
      {"gelu_grad", {of(kX), of(kX)}, {}, {of(kX)}, 16 * 60},
      {"silu", {of(kX)}, {}, {of(kX)}, 5 * 60},
      {"silu_grad", {of(kX), of(kX)}, {}, {of(kX)}, 8 * 60},
      {"relu", {of(kX)}, {}, {of(kX)}, 60},
      {"relu_grad", {of(kX), of(kX)}, {}, {of(kX)}, 60},
      {"relu2", {of(kX)}, {}, {of(kX)}, 2 * 60},
      {"relu2_grad", {of(kX), of(kX)}, {}, {of(kX)}, 3 * 60},
      {"tanh", {of(kX)}, {}, {of(kX)}, 10 * 60},
      {"tanh_grad", {of(kX), of(kX)}, {}, {of(kX)}, 12 * 60},
      {"gated", {of(kX), of(kX)}, {}, {of(kX)}, 6 * 60},
      {"gated_grad", {of(kX), of(kX), of(kX)}, {}, {of(kX), of(kX)}, 10 * 60},
      {"rotary", {of(kQ)}, {}, {of(kQ)}, 3 * 240},
      {"route",
       {of("batch seq candidate"), of("candidate")},
       {{"top_k", int64_t{2}}},
       {of("batch seq choice"), of("batch seq choice", kI)},
       6 * 30},
      {"route_grad",
       {of("batch seq candidate"), of("batch seq choice", kI), of("batch seq choice")},
       {{"top_k", int64_t{2}}},
       {of("batch seq candidate")},
       8 * 30},
      {"balance_loss", {of("batch seq candidate"), of("batch expert", kI)}, {}, {s}, 6 * 30},
      {"balance_loss_grad",
       {of("batch seq candidate"), of("batch expert", kI), s},
       {},
       {of("batch seq candidate")},
       8 * 30},
      {"router_z_loss", {of("batch seq candidate")}, {}, {s}, 4 * 30},
      {"router_z_loss_grad", {of("batch seq candidate"), s}, {}, {of("batch seq candidate")}, 6 * 30},
      {"expert_bias",
       {of("batch expert slot ffn"), of("expert ffn"), of("batch expert", kI)},
       {},
       {of("batch expert slot ffn")},
       192},
      {"expert_bias_grad", {of("batch expert slot ffn"), of("batch expert", kI)}, {}, {of("expert ffn")}, 192},
      {"clamped_gated", {of(kX), of(kX)}, {}, {of(kX)}, 9 * 60},
      {"clamped_gated_grad", {of(kX), of(kX), of(kX)}, {}, {of(kX), of(kX)}, 14 * 60},
      {"join_head_dims",
       {of("batch seq kv_heads embed"), of("batch seq ffn")},
       {{"width", int64_t{15}}},
       {{{{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"head_dim", 15}}, kF}},
       0},
      {"join_head_dims_grad",
       {of("batch seq kv_heads head_dim")},
       {{"width", int64_t{4}}},
       {of("batch seq kv_heads row")},
       120},
      {"expert_load", {of("batch expert", kI)}, {}, {of("candidate", DType::f64)}, 6},
      {"expert_balance", {of("candidate", DType::f64)}, {}, {s}, 3},
      {"balance_bias", {of("candidate"), of("candidate", DType::f64), s}, {{"rate", 0.1}}, {of("candidate")}, 3 * 3},
      {"assign_slots", {of("batch seq choice", kI)}, kPlaces, {of("batch seq choice", kI), of("batch expert", kI)}, 20},
      {"dispatch", {of(kX, kB), of("batch seq choice", kI)}, kPlaces, {of("batch expert slot embed", kB)}, 0},
      {"dispatch",
       {of(kX), of("batch seq choice", kI), of("batch seq choice")},
       kPlaces,
       {of("batch expert slot embed")},
       20 * 6},
      {"combine",
       {of("batch expert slot embed"), of("batch seq choice", kI), of("batch seq choice")},
       kPlaces,
       {of(kX)},
       2 * 20 * 6},
      {"weigh",
       {of("batch expert slot embed"), of("batch seq choice", kI), of(kX)},
       kPlaces,
       {of("batch seq choice")},
       2 * 20 * 6},
      {"grouped",
       {of("batch expert slot embed"), of("expert embed ffn"), of("batch expert", kI)},
       {{"dims", "batch expert slot ffn"}, {"dtype", "fp32"}, {"filled", 0.5}},
       {of("batch expert slot ffn")},
       2 * 3 * 4 * 6 * 8},
      {"dropout", {of(kX)}, {}, {of(kX)}, 20 * 60},
      {"attention", attention, {{"causal", int64_t{0}}}, {of(kQ), of("batch seq kv_heads group")}, 4. * 240 * 7},
      {"attention", attention, {{"causal", int64_t{1}}}, {of(kQ), of("batch seq kv_heads group")}, 2. * 240 * 7},
      {"attention",
       {of(kQ, kB), of(kK, kB), of(kK, kB), of(kTokens, kI)},
       {},
       {of(kQ, kB), of("batch seq kv_heads group")},
       4. * 240 * 7},
      {"attention",
       {of(kQ), of(kK), of(kK), of(kTokens, kI), of("batch key_seq", kI), of("kv_heads group")},
       {{"causal", int64_t{1}}, {"window", int64_t{7}}},
       {of(kQ), of("batch seq kv_heads group")},
       2. * 240 * 7},
      {"attention",  // 7 of 14 keys: three quarters of the pairs of whole sequences
       {of(kQ), kLongK, kLongK},
       {{"causal", int64_t{0}}, {"window", int64_t{7}}},
       {of(kQ), of("batch seq kv_heads group")},
       4. * 240 * 14 * 3 / 4},
      {"attention_grad",
       attention_grad,
       {{"causal", int64_t{1}}},
       {of(kQ), of(kK), of(kK)},
       5. * 240 * 7,
       {"starts", "key_starts", "sinks"}},
      {"head", {of(kX, kB), of("vocab embed", kB), of(kTokens, kI)}, {}, {of(kTokens), of(kTokens)}, 2. * 60 * 11},
      {"head_grad",
       {of(kX), of("vocab embed"), of(kTokens, kI), of(kTokens), of(kTokens), of(kTokens)},
       {},
       {of(kX), of("vocab embed")},
       6. * 60 * 11,
       {"bias"}},
      {"head_grad",
       {of(kX), of("vocab embed"), of(kTokens, kI), of(kTokens), of(kTokens), of(kTokens), of("batch seq vocab")},
       {},
       {of(kX), of("vocab embed")},
       4. * 60 * 11,
       {"bias"}},
      {"head", {of(kX), of("vocab embed"), of(kTokens, kI), of("vocab")}, {}, {of(kTokens), of(kTokens)}, 2. * 60 * 11},
      {"head_grad",
       {of(kX), of("vocab embed"), of(kTokens, kI), of("vocab"), of(kTokens), of(kTokens), of(kTokens)},
       {},
       {of(kX), of("vocab embed"), of("vocab")},
       6. * 60 * 11},
      {"head_with_grad",
       {of(kX), of("vocab embed"), of(kTokens, kI), of(kTokens), of(kTokens)},
       {},
       {of(kTokens), of(kTokens), of(kX), of("vocab embed")},
       6. * 60 * 11,
       {"bias"}},
      {"cross_entropy", {of(kTokens), of(kTokens), of(kTokens, kI)}, {}, {s, s}, 20},
      {"cross_entropy_grad", {of(kTokens, kI), s}, {}, {of(kTokens), of(kTokens)}, 10},
      {"sample_scores",
       {of(kTokens), of(kTokens), of(kTokens, kI), of(kTokens)},
       {},
       {of("batch", kD), of("batch", kD), of("batch", kD)},
       30},
      {"weighted_scores", {of(kTokens), of(kTokens), of(kTokens, kI), of(kTokens)}, {}, {of("batch", kD)}, 30},
      {"weighted_scores_grad", {of(kTokens, kI), of(kTokens), of("batch", kD)}, {}, {of(kTokens), of(kTokens)}, 10},
      {"preference_loss", {of("batch", kD), of("batch", kD)}, {}, {s, s, s, s}, 16},
      {"preference_loss_grad", {of("batch", kD), of("batch", kD), s}, {}, {of("batch", kD)}, 10},
      {"policy_loss", {of(kTokens), of(kTokens), of(kTokens, kI), of(kTokens), of(kTokens)}, {}, {s, s, s}, 80},
      {"policy_loss_grad",
       {of(kTokens), of(kTokens), of(kTokens, kI), of(kTokens), of(kTokens), s},
       {},
       {of(kTokens), of(kTokens)},
       60},
      {"class_loss", {of("batch class"), of("batch", kI), of("batch")}, {}, {s, s}, 24},
      {"class_loss_grad", {of("batch class"), of("batch", kI), of("batch"), s}, {}, {of("batch class")}, 6},
      {"class_hits", {of("batch class"), of("batch", kI)}, {}, {s, s}, 6},
      {"class_loss",  // of each pixel
       {of("batch height width class"), of("batch height width", kI), of("batch")},
       {},
       {s, s},
       4. * 378},
      {"class_loss_grad",
       {of("batch height width class"), of("batch height width", kI), of("batch"), s},
       {},
       {of("batch height width class")},
       378},
      {"class_hits", {of("batch height width class"), of("batch height width", kI)}, {}, {s, s}, 378},
      {"squared_error", {of("batch target"), of("batch target")}, {}, {s, s}, 24},
      {"squared_error_grad", {of("batch target"), of("batch target"), s}, {}, {of("batch target")}, 8},
      {"first", {of(kX)}, {}, {of("batch embed")}, 0},
      {"first_grad", {of("batch embed")}, {}, {of(kX)}, 0},
      {"sum_squares", {of(kX)}, {}, {{{{"block", 1}}, kD}}, 120},
      {"sum_squares", {{{{"vocab", 50}, {"embed", 41}}, kF}}, {}, {{{{"block", 3}}, kD}}, 4100},
      {"sum_squares", {{{{"shard", 2}, {"flat", 3072}}, kF}}, {}, {{{{"shard", 2}, {"block", 3}}, kD}}, 12288},
      {"sum_blocks", {s, {{{"shard", 2}, {"block", 3}}, kD}, {{{"block", 1}}, kD}}, {}, {s}, 8},
      {"update_scale", {s, s, {{{"block", 3}}, kD}, {{{"block", 1}}, kD}}, {}, {s, s, s}, 6},
      {"update_scale", {s, s, {{{"shard", 2}, {"block", 3}}, kD}, {{{"block", 1}}, kD}}, {}, {s, s, s}, 9},
      {"adamw", {of(kX), of(kX), of(kX), of(kX), s, s, s}, {}, {of(kX), of(kX), of(kX)}, 14 * 60},
      {"adamw",
       {of(kX), of(kX), of(kX), of(kX), s, s, s},
       {{"weight", "fp16"}},
       {of(kX), of(kX), of(kX), of(kX, DType::f16)},
       14 * 60},
      {"sgd", {of(kX), of(kX), of(kX), s, s}, {}, {of(kX), of(kX)}, 6 * 60},
      {"sgd", {of(kX), of(kX), of(kX), s, s}, {{"weight", "bf16"}}, {of(kX), of(kX), of(kX, kB)}, 6 * 60},
      {"lion", {of(kX), of(kX), of(kX), s, s}, {}, {of(kX), of(kX)}, 9 * 60},
      {"lion", {of(kX), of(kX), of(kX), s, s}, {{"weight", "bf16"}}, {of(kX), of(kX), of(kX, kB)}, 9 * 60},
      {"adamw8",
       {of(kX),
        of(kX),
        {of(kX).shape, DType::u8},
        {of(kX).shape, DType::u8},
        {{{"state_block", 1}}, kF},
        {{{"state_block", 1}}, kF},
        s,
        s,
        s},
       {{"weight", "bf16"}},
       {of(kX),
        {of(kX).shape, DType::u8},
        {of(kX).shape, DType::u8},
        {{{"state_block", 1}}, kF},
        {{{"state_block", 1}}, kF},
        of(kX, kB)},
       40 * 60},
      {"adadelta", {of(kX), of(kX), of(kX), of(kX), s, s}, {}, {of(kX), of(kX), of(kX)}, 16 * 60},
      {"adadelta",
       {of(kX), of(kX), of(kX), of(kX), s, s},
       {{"weight", "bf16"}},
       {of(kX), of(kX), of(kX), of(kX, kB)},
       16 * 60},
      {"adam_direction", {of(kX), of(kX), of(kX), of(kX), s, s, s}, {}, {of(kX), of(kX), of(kX)}, 13 * 60},
      {"apply_direction", {of(kX), of(kX), s}, {}, {of(kX)}, 4 * 60},
      {"apply_direction", {of(kX), of(kX), s, s, s}, {{"weight", "bf16"}}, {of(kX), of(kX, kB)}, 4 * 60},
      {"lars", {of(kX), of(kX), of(kX), s, s}, {}, {of(kX), of(kX)}, 7 * 60},
      {"lars", {of(kX), of(kX), of(kX), s, s, s, s}, {{"weight", "bf16"}}, {of(kX), of(kX), of(kX, kB)}, 7 * 60},
      {"muon_momentum", {of(kX), of(kX), s, s}, {}, {of(kX), of(kX)}, 7 * 60},
      {"orthogonalize",  // two matrices 5 x 6
       {of(kX)},
       {{"matrix_batch", int64_t{1}}, {"matrix_rows", int64_t{1}}},
       {of(kX)},
       5. * (4 * 5 * 60 + 2 * 2 * 125)},
      {"factored_sums",
       {of(kX), s},
       {{"matrix_batch", int64_t{1}}, {"matrix_rows", int64_t{1}}},
       {of("batch seq"), of("batch embed")},
       4 * 60},
      {"factored_moments",
       {of("batch seq"), of("batch embed"), of("batch seq"), of("batch embed"), s, s},
       {},
       {of("batch seq"), of("batch embed")},
       8 * 10},
      {"factored_direction", {of(kX), of("batch seq"), of("batch embed"), of("batch"), s, s}, {}, {of(kX)}, 5 * 60},
      {"unfactored_direction", {of(kX), of(kX), s, s, s}, {}, {of(kX), of(kX)}, 8 * 60},
      {"moving_average", {of(kX), of(kX), s}, {}, {of(kX)}, 3 * 60},
      {"from_bucket", {{{{"shard", 1}, {"flat", 1024}}, kF}}, {}, {of(kX)}, 60},
      {"to_bucket", {of(kX)}, {}, {{{{"shard", 1}, {"flat", 1024}}, kF}}, 1024},
      {"loss_scale", {s, s, s}, {}, {s, s}, 1},
      {"cache_write", {of(kK), of("batch seq kv_heads head_dim")}, {}, {of(kK)}, 0},
      {"take", {of(kX)}, {}, {of("batch embed")}, 0},
      {"cache_write_at",
       {of("text key_seq kv_heads head_dim"), of("batch seq kv_heads head_dim"), of("batch", kI), of("batch", kI)},
       {},
       {of("text key_seq kv_heads head_dim")},
       0},
      {"attention_at",
       {of(kQ), of("text key_seq kv_heads head_dim"), of("text key_seq kv_heads head_dim"), of("batch", kI),
        of("batch", kI)},
       {},
       {of(kQ)},
       2 * 240 * 7},
      {"rotary_at", {of(kQ), of("batch", kI)}, {}, {of(kQ)}, 3 * 240},
      {"position_at", {of("position embed"), of("batch", kI)}, {{"length", int64_t{5}}}, {of(kX)}, 0},
      {"take_rows", {of(kX), of("row", kI)}, {}, {of("row embed")}, 0},
      {"stack", {of(kX)}, {{"dim", "embed"}}, {{{{"part", 2}, {"batch", 2}, {"seq", 5}, {"embed", 3}}, kF}}, 0},
      {"unstack", {{{{"part", 2}, {"batch", 2}, {"seq", 5}, {"embed", 3}}, kI}}, {{"dim", "embed"}}, {of(kX, kI)}, 0},
      {"halo_pack", {of(kX)}, {{"dim", "seq"}}, {{{{"halo", 2}, {"batch", 2}, {"embed", 6}}, kF}}, 0},
      {"halo_place",
       {of(kX), {{{"halo", 2}, {"batch", 2}, {"embed", 6}}, kF}},
       {{"dim", "seq"}},
       {{{{"batch", 2}, {"seq", 7}, {"embed", 6}}, kF}},
       0},
      {"halo_add",
       {{{{"batch", 2}, {"seq", 7}, {"embed", 6}}, kF}, {{{"halo", 2}, {"batch", 2}, {"embed", 6}}, kF}},
       {{"dim", "seq"}},
       {of(kX)},
       60},
      {"join_columns",
       {of("embed kv_heads head_dim", kB), of("embed ffn", kB)},
       {},
       {{{{"embed", 6}, {"columns", 20}}, kB}},
       0},
      {"split_columns",
       {{{{"embed", 6}, {"columns", 20}}, kF}, {{{"columns", 20}}, kF}},
       {},
       {of("embed kv_heads head_dim"), of("embed ffn", kB), of("kv_heads head_dim"), of("ffn")},
       0},
      {"mask", {of(kX, kB)}, {}, {of(kX, kB)}, 0},
      {"logsumexp", {{{{"part", 4}, {"batch", 2}, {"seq", 5}}, kF}}, {}, {of(kTokens)}, 400},
      {"attention_join",
       {of(kQ, kB), of("batch seq kv_heads group"), of(kQ, kB), of("batch seq kv_heads group")},
       {},
       {of(kQ, kB), of("batch seq kv_heads group")},
       3 * 240},
      {"pixels",
       {{{{"batch", 2}, {"channel", 3}, {"height", 7}, {"width", 9}}, DType::u8}},
       {{"dtype", "fp32"}},
       {of(kImage)},
       2. * 378},
      {"convolution", {of(kImage), kKernel}, kWindows, {kFiltered}, 2. * 120 * 45},
      {"convolution_grad_input", {kFiltered, kKernel}, kWindows, {of(kImage)}, 2. * 120 * 45},
      {"convolution_grad_weight", {of(kImage), kFiltered}, kWindows, {kKernel}, 2. * 120 * 45},
      {"max_pool", {of(kImage)}, kWindows, {kPooled}, 90. * 15},
      {"max_pool_grad", {of(kImage), kPooled}, kWindows, {of(kImage)}, 90. * 15},
      {"average_pool", {of(kImage)}, kWindows, {kPooled}, 90. * 15},
      {"average_pool_grad", {kPooled}, kWindows, {of(kImage)}, 90. * 15},
      {"batch_statistics", {of(kImage, kB)}, {}, {of("moment channel", kD)}, 3. * 378},
      {"batch_norm", {of(kImage), of("channel"), of("channel"), of("moment channel", kD)}, {}, {of(kImage)}, 4. * 378},
      {"batch_norm_sums",
       {of(kImage), of("moment channel", kD), of(kImage)},
       {},
       {of("channel"), of("channel")},
       5. * 378},
      {"batch_norm_grad",
       {of(kImage), of("channel"), of("moment channel", kD), of("channel"), of("channel"), of(kImage)},
       {},
       {of(kImage)},
       6. * 378},
      {"running_statistics",
       {of("channel"), of("channel"), of("moment channel", kD)},
       {},
       {of("channel"), of("channel")},
       30},
      {"leaky_relu", {of(kImage)}, {{"slope", 0.1}}, {of(kImage)}, 2. * 378},
      {"leaky_relu_grad", {of(kImage), of(kImage)}, {{"slope", 0.1}}, {of(kImage)}, 2. * 378},
      {"transposed_convolution",
       {kPooled, kTransposedKernel},
       kWindows,
       {of("batch height width filter")},
       2. * 90 * 60},
      {"transposed_convolution",  // without a position at each end of the height, and two at each of the width
       {kPooled, kTransposedKernel},
       {{"window", "height width"},
        {"kernel_height", int64_t{3}},
        {"stride_height", int64_t{2}},
        {"low_height", int64_t{1}},
        {"high_height", int64_t{1}},
        {"kernel_width", int64_t{5}},
        {"low_width", int64_t{2}},
        {"high_width", int64_t{2}}},
       {{{{"batch", 2}, {"height", 5}, {"width", 5}, {"filter", 4}}, kF}},
       2. * 90 * 60},
      {"upsample", {of(kImage)}, kRepeated, {kUpsampled}, 8. * 2268},
      {"upsample", {of(kImage)}, kInterpolated, {kUpsampled}, 8. * 2268},
      {"upsample_grad", {kUpsampled}, kRepeated, {of(kImage)}, 8. * 2268},
      {"adaptive_pool", {of(kImage)}, {{"whole", "height width"}}, {kPooled}, 2. * 378},
      {"adaptive_pool_grad", {kPooled}, {{"whole", "height width"}}, {of(kImage)}, 2. * 378},
      {"concatenate",
       {of(kImage), of("batch height width filter")},
       {{"whole", "channel filter joined"}},
       {kJoined},
       0},
      {"slice", {kJoined}, {{"whole", "joined filter"}, {"first", int64_t{3}}}, {of("batch height width filter")}, 0},
      {"reshape",
       {of(kImage, kB)},
       {{"whole", "height width pixel"}},
       {{{{"batch", 2}, {"pixel", 63}, {"channel", 3}}, kB}},
       0},
      {"drop_path", {of(kImage)}, {}, {of(kImage)}, 378},
      {"channel_scale", {of(kImage), of("channel")}, {}, {of(kImage)}, 378},
      {"channel_scale_sums", {of(kImage), of(kImage)}, {}, {of("channel")}, 2. * 378},
      {"group_statistics", {kFiltered}, kGroups, {kGroupStatistics}, 3. * 120},
      {"group_norm", {kFiltered, of("filter"), of("filter"), kGroupStatistics}, kGroups, {kFiltered}, 4. * 120},
      {"group_norm_sums",
       {kFiltered, of("filter"), kGroupStatistics, kFiltered},
       kGroups,
       {of("filter"), of("filter"), kGroupStatistics},
       8. * 120},
      {"group_norm_grad",
       {kFiltered, of("filter"), kGroupStatistics, kGroupStatistics, kFiltered},
       kGroups,
       {kFiltered},
       8. * 120},
      {"state", {}, {}, {of(kX)}, 60},
      {"input", {}, {}, {of(kX)}, 60},
      {"fill", {}, {}, {of(kX)}, 60},
      {"broadcast", {of("embed")}, {}, {of(kX)}, 60},
      {"accumulate", {of(kX)}, {}, {}, 0},
      {"assign", {of(kX)}, {}, {}, 0},
      {"output", {of(kX)}, {}, {}, 0},
  };
}

std::string text(const std::vector<Type>& types) {
  std::string t;
  for (const Type& type : types) t += to_string(type.shape) + " " + std::string(name_of(type.dtype)) + "; ";
  return t;
}

std::vector<Type> types_of(const OutTypes& outs) {
  std::vector<Type> types;
  for (const OutTypes::One& one : outs.list()) types.push_back(one.type.value());
  return types;
}

std::string error_of(std::string_view kind, const std::vector<Type>& ins, const Attributes& attributes = {}) {
  try {
    const Case c = {kind, ins, attributes, {}, 0};
    c.row().infer(c.in_types(), attributes);
  } catch (const base::InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(OpRows, ShapesAndFlops) {
  std::set<std::string_view> seen;
  for (const Case& c : cases()) {
    const OpRow& row = operations().find(c.kind);
    seen.insert(row.kind);
    EXPECT_TRUE(row.ins.allows(c.ins.size(), c.absent().ins)) << c.kind;
    EXPECT_TRUE(row.effect || row.outs.allows(c.outs.size(), c.absent().outs)) << c.kind;
    if (row.infer) {
      EXPECT_EQ(text(types_of(row.infer(c.in_types(), c.attributes))), text(c.outs)) << c.kind;
    }
    EXPECT_EQ(cost(row, c.ins, c.outs, c.attributes, c.absent()).flops, c.flops) << c.kind;
    double bytes = 0;
    for (const auto* list : {&c.ins, &c.outs})
      for (const Type& t : *list) bytes += static_cast<double>(t.bytes());
    EXPECT_EQ(cost(row, c.ins, c.outs, c.attributes, c.absent()).memory_bytes, row.view ? 0 : bytes) << c.kind;
  }
  EXPECT_EQ(seen.size(), operations().rows().size());
}

TEST(OpRows, WhatDoesNotFitIsSaid) {
  EXPECT_EQ(error_of("add", {of(kX), of(kX, kB)}), "[add] internal error: bf16 and fp32");
  EXPECT_EQ(error_of("add", {of(kX), of("ffn")}), "[shape] internal error: [batch:2 seq:5 embed:6] has no dim \"ffn\"");
  EXPECT_EQ(error_of("add", {of(kX), {{{"embed", 7}}, kF}}),
            "[add] internal error: [embed:7] and [batch:2 seq:5 embed:6]");
  EXPECT_EQ(
      error_of("contract", {of(kX), {{{"embed", 7}, {"ffn", 8}}, kF}}, {{"dims", "batch seq ffn"}, {"dtype", "fp32"}}),
      "[contract] internal error: [batch:2 seq:5 embed:6] and [embed:7 ffn:8]");
  EXPECT_EQ(error_of("contract", {of(kX), of("embed ffn")}, {{"dims", "batch seq vocab"}, {"dtype", "fp32"}}),
            "[shape] internal error: [embed:6 ffn:8] has no dim \"vocab\"");
  EXPECT_EQ(error_of("sum_squares", {{{{"shard", 2}, {"flat", 1000}}, kF}}),
            "[sum_squares] internal error: [shard:2 flat:1000] is not made of blocks of 1024");
  EXPECT_EQ(error_of("rename", {of(kX)}, {{"from", "ffn"}, {"to", "key_seq"}}),
            "[rename] internal error: [batch:2 seq:5 embed:6] has no dim \"ffn\"");
  EXPECT_EQ(error_of("rename", {of(kX)}, {{"from", "seq"}, {"to", "embed"}}),
            "[shape] internal error: [batch:2 embed:5 embed:6] holds \"embed\" twice");
  EXPECT_EQ(
      error_of("convolution", {of(kImage), of("batch seq")}, kWindows),
      "[convolution] internal error: [batch:2 height:7 width:9 channel:3] and [batch:2 seq:5] with window=\"height "
      "width\" kernel_height=3 stride_height=2 kernel_width=5");
  EXPECT_EQ(error_of("max_pool", {of(kX)}, kWindows),
            "[window] internal error: [batch:2 seq:5 embed:6] has no windows window=\"height width\" kernel_height=3 "
            "stride_height=2 kernel_width=5");
  EXPECT_EQ(error_of("max_pool", {of("batch height channel")}, {{"window", "height"}, {"kernel_height", int64_t{8}}}),
            "[window] internal error: height of 7 with padding 0 and 0 is smaller than a window of 8");
}

// Names in a row exist in its operands, and a family is an operation or "optimizer".
TEST(OpRows, SayOnlyWhatFits) {
  std::set<std::string_view> kinds, dims;
  for (const OpRow& row : operations().rows())
    EXPECT_TRUE(kinds.insert(row.kind).second) << row.kind << " occurs twice";
  for (const OpRow& row : operations().rows()) {
    const std::string_view family = row.rule_family();
    EXPECT_TRUE(family == "optimizer" || (kinds.contains(family) && operations().find(family).family.empty()))
        << row.kind;
    for (std::string_view step : row.steps)
      EXPECT_EQ(std::count(row.whole.begin(), row.whole.end(), step), 1) << row.kind;
    if (row.kind.ends_with("_grad")) {
      const size_t ending = std::string_view(row.kind.ends_with("_with_grad") ? "_with_grad" : "_grad").size();
      EXPECT_EQ(family, row.kind.substr(0, row.kind.size() - ending)) << row.kind;
    }
    EXPECT_FALSE(row.view && row.must_share) << row.kind;
  }
  for (const Case& c : cases()) {
    const OpRow& row = operations().find(c.kind);
    EXPECT_TRUE(!row.effect || c.outs.empty()) << c.kind;
    for (const auto& [out, in] : row.in_place) {
      // A sum's first operand may lack dims of the sum; the memory plan then does not share.
      if (row.kind != "add") {
        EXPECT_EQ(c.outs[row.outs.place(out, c.absent().outs).value()], c.in_types()[in]) << c.kind;
      }
    }
    for (std::string_view d : row.whole) {
      bool has = false;
      for (const Case& other : cases())
        for (const auto* list : {&other.ins, &other.outs})
          for (const Type& t : *list) has |= other.kind == c.kind && t.shape.has(d);
      EXPECT_TRUE(has) << c.kind << " has no " << d;
    }
    if (row.must_share) {
      EXPECT_TRUE(row.may_share(row.outs[0].name, 0)) << c.kind;
    }
  }
}

// Gradient rules: each input's gradient has its dims; weights get theirs in fp32.
TEST(OpRows, GradientsHaveTheDimsOfTheirValues) {
  int checked = 0;
  for (const Case& c : cases()) {
    const OpRow& row = operations().find(c.kind);
    if (!row.grad || c.attributes.text_or("dtype", "") == "bf16") continue;
    graph::StateTable states;
    graph::Graph g("g", operations(), states);
    std::vector<ValueId> ins;
    for (size_t i = 0; i < c.ins.size(); ++i)
      ins.push_back(g.read(states.add({.name = "w" + std::to_string(i), .type = c.ins[i]})));
    ins = tensor::by_position(std::span<const ValueId>(ins), c.absent().ins, kNone);
    const std::vector<ValueId> outs = g.make(c.kind, ins, c.outs, c.attributes);
    std::vector<ValueId> douts;
    for (ValueId o : outs) douts.push_back(g.fill(1.0, g.type(o)));
    const Op op = g.op_at(static_cast<size_t>(g.value(outs[0]).op));
    EXPECT_EQ(op.absent, c.absent()) << c.kind;
    const std::vector<ValueId> dins = row.grad(g, op, douts);
    ASSERT_EQ(dins.size(), ins.size()) << c.kind;
    for (size_t i = 0; i < ins.size(); ++i) {
      // Targets and their weights are inputs; whatever depends on x is part of its gradient.
      const std::string_view name = c.row().ins[i].name;
      const bool weighted = c.kind == "class_loss" || c.kind == "weighted_scores" || c.kind == "policy_loss";
      const bool given = name == "targets" || name == "statistics" || name == "reference" || name == "sampled" ||
                         (name == "weights" && weighted) ||
                         (name == "bias" && c.kind == "route");  // which is moved by the update
      const bool moves = ins[i] != kNone && tensor::is_floating(g.type(ins[i]).dtype) && !given;
      EXPECT_EQ(dins[i] != kNone, moves) << c.kind << " input " << i;
      if (dins[i] != kNone) {
        EXPECT_EQ(g.shape(dins[i]), g.shape(ins[i])) << c.kind << " input " << i;
      }
    }
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

}  // namespace kintsugi::ops::rows_test
