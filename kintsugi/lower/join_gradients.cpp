#include "kintsugi/lower/join_gradients.h"

#include <algorithm>
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
    std::map<size_t, Instruction> splits;  // each behind an instruction
    for (const Parts& parts : groups())
      if (are_all(parts) && pay(parts) && are_apart(parts)) {
        const size_t last = *std::ranges::max_element(parts);
        splits.emplace(last, join(parts, last));
      }
    body.instructions.clear();
    for (size_t at = 0; at < list_.size(); ++at) {
      if (!gone_[at]) body.instructions.push_back(std::move(list_[at]));
      if (const auto split = splits.find(at); split != splits.end())
        body.instructions.push_back(std::move(split->second));
    }
  }

 private:
  using Parts = std::vector<size_t>;  // products, in the order of their columns

  const Type& type(BufferId b) const { return p_.buffer(b).type; }

  // The products with columns of one value that have the same first operand.
  std::vector<Parts> groups() const {
    std::map<std::tuple<BufferId, BufferId, int, tensor::Phase>, Parts> by_operands;
    for (size_t at = 0; at < list_.size(); ++at) {
      const Instruction& i = list_[at];
      if (i.kind == program::Kind::compute && i.kernel == "contract" && i.ins.size() == 2 &&
          i.attributes.has("first") && !i.attributes.has("epilogue"))
        by_operands[{i.ins[0], i.ins[1], i.layer, i.phase}].push_back(at);
    }
    std::vector<Parts> all;
    for (auto& [operands, parts] : by_operands) {
      std::ranges::sort(parts, {}, [&](size_t at) { return list_[at].attributes.integer("first"); });
      all.push_back(std::move(parts));
    }
    return all;
  }

  // Whether they are of one kind, and each column of the value is of one of them.
  bool are_all(const Parts& parts) const {
    const Instruction& one = list_[parts[0]];
    int64_t columns = 0;
    for (const size_t at : parts) {
      const Instruction& i = list_[at];
      if (i.attributes.integer("first") != columns || i.absent != one.absent ||
          of_all_columns(i.attributes) != of_all_columns(one.attributes))
        return false;
      for (size_t j = 0; j < i.outs.size(); ++j)
        if (type(i.outs[j]).dtype != type(one.outs[j]).dtype || above(type(i.outs[j])) != above(type(one.outs[j])))
          return false;
      columns += columns_of(type(i.outs[0]));
    }
    return parts.size() > 1 && columns == columns_of(type(one.ins[1]));
  }

  bool pay(const Parts& parts) const {
    return std::ranges::all_of(parts, [&](size_t at) { return 2 * tiles(type(list_[at].outs[0])) < kProcessors; });
  }

  // Whether from the first to the last nothing touches what another of them makes, or writes what they read.
  bool are_apart(const Parts& parts) const {
    const auto [first, last] = std::ranges::minmax(parts);
    const std::vector<BufferId>& read = list_[first].ins;
    const auto any_overlaps = [&](const std::vector<BufferId>& some, const std::vector<BufferId>& others) {
      return std::ranges::any_of(
          some, [&](BufferId a) { return std::ranges::any_of(others, [&](BufferId b) { return p_.overlap(a, b); }); });
    };
    for (size_t at = first; at <= last; ++at) {
      const Instruction& i = list_[at];
      if (any_overlaps(i.outs, read)) return false;
      for (const size_t part : parts) {
        const std::vector<BufferId>& made = list_[part].outs;
        if (part != at && (any_overlaps(i.ins, made) || any_overlaps(i.outs, made))) return false;
      }
    }
    return true;
  }

  // The product takes the place of the last; returns what follows it.
  Instruction join(const Parts& parts, size_t last) {
    Instruction product = list_[last];
    Instruction split = {.kernel = "split_columns", .layer = product.layer, .phase = product.phase};
    for (size_t j = 0; j < product.outs.size(); ++j) {
      for (const size_t at : parts) {
        if ((list_[at].accumulate >> j) & 1u) split.accumulate |= 1u << split.outs.size();
        split.outs.push_back(list_[at].outs[j]);
      }
      product.outs[j] = add_joined(product.outs[j], columns_of(type(product.ins[1])));
      split.ins.push_back(product.outs[j]);
    }
    split.cost = cost_of(p_, operations_, split);
    product.accumulate = 0;
    product.attributes = of_all_columns(product.attributes);
    product.cost = cost_of(p_, operations_, product);
    product.cost.flops = 0;  // with those of sums
    for (const size_t at : parts) {
      product.cost.flops += list_[at].cost.flops;
      gone_[at] = at != last;
    }
    list_[last] = std::move(product);
    return split;
  }

  // A value like `of`, with so many columns.
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
  std::vector<bool> gone_;         // of each: another does it
};

}  // namespace

void join_gradients(Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels) {
  if (!p.on_device || !kernels.has("split_columns")) return;
  GradientJoiner joiner(p, operations);
  for (Body& body : p.bodies) joiner.run(body);
}

}  // namespace kintsugi::lower
