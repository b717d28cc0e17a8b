#include "kintsugi/lower/fuse/join_gradients.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "kintsugi/lower/cost.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Program;
using tensor::Attributes;
using tensor::Dim;
using tensor::DType;
using tensor::Shape;
using tensor::Type;

namespace {

constexpr int64_t kProcessors = 132;  // of a large device
constexpr int64_t kTileRows = 128, kTileColumns = 256;

int64_t columns_of(const Type& type) {
  return type.shape[type.shape.rank() - 1].size;
}

Shape above(const Type& type) {
  return Shape(std::vector<Dim>(type.shape.begin(), type.shape.end() - 1));
}

int64_t tiles(const Type& y) {
  return ((above(y).elements() + kTileRows - 1) / kTileRows) * ((columns_of(y) + kTileColumns - 1) / kTileColumns);
}

Attributes of_all_columns(const Attributes& attributes) {
  Attributes others;
  for (const auto& [name, value] : attributes.list())
    if (name != "first") others.set(name, value);
  return others;
}

class GradientJoiner {
 public:
  GradientJoiner(Program& p, const graph::OpTable& operations) : p_(p), operations_(operations) {}

  void run(Body& body) {
    list_ = std::move(body.instructions);
    gone_.assign(list_.size(), false);
    std::map<size_t, std::vector<Instruction>> joined;  // [position]: joined instructions
    for (const Parts& parts : groups()) {
      if (!are_all(parts) || !pay(parts)) continue;
      const size_t place = place_of(parts);
      if (can_be_at(place, parts)) joined.emplace(place, join(parts));
    }
    body.instructions.clear();
    for (size_t at = 0; at < list_.size(); ++at) {
      if (!gone_[at]) body.instructions.push_back(std::move(list_[at]));
      if (const auto made = joined.find(at); made != joined.end())
        for (Instruction& i : made->second) body.instructions.push_back(std::move(i));
    }
  }

 private:
  // Some columns: their matmul and, if there is one, the sum of their rows.
  using Part = std::vector<size_t>;
  using Parts = std::vector<Part>;  // in column order

  const Type& type(BufferId b) const { return p_.buffer(b).type; }
  BufferId result(size_t at) const { return list_[at].outs[0]; }

  static int64_t first_column(const Instruction& i) { return i.attributes.integer("first"); }
  static bool takes_columns(const Instruction& i, std::string_view kernel) {
    return i.kind == program::Kind::compute && i.kernel == kernel && i.attributes.has("first");
  }

  // The matmuls with columns of one value that have the same first operand.
  std::vector<Parts> groups() const {
    std::map<SumKey, std::vector<size_t>> sums;
    for (size_t at = 0; at < list_.size(); ++at)
      if (takes_columns(list_[at], "sum")) sums[key_of(list_[at], list_[at].ins[0])].push_back(at);
    std::map<std::tuple<BufferId, BufferId, int, tensor::Phase>, Parts> by_operands;
    for (size_t at = 0; at < list_.size(); ++at) {
      const Instruction& i = list_[at];
      if (!takes_columns(i, "contract") || i.ins.size() != 2 || i.attributes.has("epilogue")) continue;
      Part part = {at};
      add_sum(part, sums);
      by_operands[{i.ins[0], i.ins[1], i.layer, i.phase}].push_back(std::move(part));
    }
    std::vector<Parts> all;
    for (auto& [operands, parts] : by_operands) {
      std::ranges::sort(parts, {}, [&](const Part& part) { return first_column(list_[part[0]]); });
      all.push_back(std::move(parts));
    }
    return all;
  }

  // The value whose rows are summed, layer, phase and first column.
  using SumKey = std::tuple<BufferId, int, tensor::Phase, int64_t>;
  static SumKey key_of(const Instruction& i, BufferId value) { return {value, i.layer, i.phase, first_column(i)}; }

  void add_sum(Part& part, const std::map<SumKey, std::vector<size_t>>& sums) const {
    const Instruction& product = list_[part[0]];
    const Dim& columns = *std::prev(type(product.outs[0]).shape.end());
    const auto found = sums.find(key_of(product, product.ins[1]));
    if (found == sums.end()) return;
    const auto sum = std::ranges::find_if(found->second,
                                          [&](size_t at) { return type(list_[at].outs[0]).shape == Shape({columns}); });
    if (sum != found->second.end()) part.push_back(*sum);
  }

  // Whether they are of one kind and cover each column of the value.
  bool are_all(const Parts& parts) const {
    const Instruction& one = list_[parts[0][0]];
    int64_t columns = 0;
    for (const Part& part : parts) {
      const Instruction& i = list_[part[0]];
      if (first_column(i) != columns || part.size() != parts[0].size() ||
          of_all_columns(i.attributes) != of_all_columns(one.attributes))
        return false;
      for (size_t j = 0; j < part.size(); ++j) {
        const Type &made = type(result(part[j])), &other = type(result(parts[0][j]));
        if (made.dtype != other.dtype || above(made) != above(other)) return false;
      }
      columns += columns_of(type(i.outs[0]));
    }
    return parts.size() > 1 && columns == columns_of(type(one.ins[1]));
  }

  bool pay(const Parts& parts) const {
    return std::ranges::all_of(parts, [&](const Part& part) { return 2 * tiles(type(result(part[0]))) < kProcessors; });
  }

  // The position of the joined instructions: that of the first matmul, or the first sum if that is later.
  static size_t place_of(const Parts& parts) {
    size_t place = 0;
    for (size_t j = 0; j < parts[0].size(); ++j)
      place = std::max(place, std::ranges::min(parts, {}, [&](const Part& part) { return part[j]; })[j]);
    return place;
  }

  // Whether all can be computed there: between that position and its own, nothing touches each result or writes its
  // inputs.
  bool can_be_at(size_t place, const Parts& parts) const {
    const std::vector<BufferId>& read = list_[parts[0][0]].ins;
    const auto overlaps = [&](const std::vector<BufferId>& some, BufferId b) {
      return std::ranges::any_of(some, [&](BufferId a) { return p_.overlap(a, b); });
    };
    for (const Part& part : parts)
      for (const size_t made : part) {
        if (overlaps(read, result(made))) return false;
        const size_t first = std::min(place, made + 1), last = std::max(place + 1, made);
        for (size_t at = first; at < last; ++at) {
          const Instruction& i = list_[at];
          if (at == made) continue;
          if (overlaps(i.ins, result(made)) || overlaps(i.outs, result(made))) return false;
          for (const BufferId b : list_[made].ins)
            if (overlaps(i.outs, b)) return false;
        }
      }
    return true;
  }

  // The replacement: the matmul, the sum and the instruction that splits both.
  std::vector<Instruction> join(const Parts& parts) {
    std::vector<Instruction> made;
    const Instruction& one = list_[parts[0][0]];
    Instruction split = {.kernel = "split_columns", .layer = one.layer, .phase = one.phase};
    for (size_t j = 0; j < parts[0].size(); ++j) {
      Instruction i = list_[parts[0][j]];
      i.outs = {add_joined(result(parts[0][j]), columns_of(type(one.ins[1])))};
      i.accumulate = 0;
      i.attributes = of_all_columns(i.attributes);
      i.cost = cost_of(p_, operations_, i);
      i.cost.flops = 0;  // counted in the joined one
      split.ins.push_back(i.outs[0]);
      for (const Part& part : parts) {
        const Instruction& before = list_[part[j]];
        i.cost.flops += before.cost.flops;
        if ((before.accumulate & 1u) != 0) split.accumulate |= 1u << split.outs.size();
        split.outs.push_back(result(part[j]));
        gone_[part[j]] = true;
      }
      made.push_back(std::move(i));
    }
    split.cost = cost_of(p_, operations_, split);
    made.push_back(std::move(split));
    return made;
  }

  // A value like `of`, with that many columns.
  BufferId add_joined(BufferId of, int64_t columns) {
    const Type& one = type(of);
    std::vector<Dim> dims(one.shape.begin(), one.shape.end());
    dims.back().size = columns;
    const DType dtype = tensor::size_of(one.dtype) < tensor::size_of(DType::f32) ? DType::f32 : one.dtype;
    p_.buffers.push_back({.name = p_.buffer(of).name + ".columns", .type = {Shape(dims), dtype}, .whole = Shape(dims)});
    return static_cast<BufferId>(p_.buffers.size() - 1);
  }

  Program& p_;
  const graph::OpTable& operations_;
  std::vector<Instruction> list_;  // of the body
  std::vector<bool> gone_;         // [instruction]: performed by another
};

}  // namespace

void join_gradients(Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels) {
  if (!p.on_device || !kernels.has("split_columns")) return;
  GradientJoiner joiner(p, operations);
  for (Body& body : p.bodies) joiner.run(body);
}

}  // namespace kintsugi::lower
