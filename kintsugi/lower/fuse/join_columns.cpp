#include "kintsugi/lower/fuse/join_columns.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <set>

#include "kintsugi/lower/cost.h"
#include "kintsugi/lower/fuse/join_gradients.h"
#include "kintsugi/lower/fuse/patterns.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Program;
using tensor::Dim;
using tensor::Shape;
using tensor::Type;

namespace {

constexpr const char* kColumns = "columns";

struct Place {
  size_t body = 0, at = 0;

  auto operator<=>(const Place&) const = default;
};

// One of the values that become columns, and the instructions that read it.
struct Part {
  std::vector<Dim> rows, columns;  // its dims
  Place term;                      // the summed matmul of this and a weight, in its producer's body
  std::vector<Place> others;       // its matmuls with other values, and sums of its rows, in any body

  int64_t count() const { return Shape(columns).elements(); }
};

bool ends_with(const Shape& shape, const std::vector<Dim>& dims) {
  return shape.rank() >= dims.size() && std::equal(dims.rbegin(), dims.rend(), shape.dims().rbegin());
}

// With `count` columns in place of the last `dims` dims.
Shape with_columns(const Shape& shape, size_t dims, int64_t count) {
  std::vector<Dim> list(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(dims));
  list.push_back({kColumns, count});
  return Shape(list);
}

class ColumnJoiner {
 public:
  ColumnJoiner(Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels)
      : p_(p), operations_(operations), kernels_(kernels), readers_(p.buffers.size()), writes_(p.buffers.size(), 0) {
    for_all([&](Place place, const Instruction& i) {
      for (const BufferId b : i.ins)
        if (readers_[root(b)].empty() || readers_[root(b)].back() != place) readers_[root(b)].push_back(place);
      for (const BufferId b : i.outs) ++writes_[root(b)];
    });
  }

  void run() {
    for_all([&](Place place, const Instruction&) { join(place); });
    std::vector<std::vector<Instruction>> left(p_.bodies.size());
    for_all([&](Place place, Instruction& i) {
      std::vector<Instruction>& list = left[place.body];
      if (const auto before = before_.find(place); before != before_.end()) list.push_back(std::move(before->second));
      if (!gone_.contains(place)) list.push_back(std::move(i));
    });
    for (size_t body = 0; body < left.size(); ++body) p_.bodies[body].instructions = std::move(left[body]);
  }

 private:
  template <typename F>
  void for_all(F&& f) {
    for (size_t body = 0; body < p_.bodies.size(); ++body)
      for (size_t at = 0; at < p_.bodies[body].instructions.size(); ++at)
        f(Place{body, at}, p_.bodies[body].instructions[at]);
  }
  Instruction& at(Place place) { return p_.bodies[place.body].instructions[place.at]; }
  size_t root(BufferId b) const { return static_cast<size_t>(p_.root(b)); }
  const Type& type(BufferId b) const { return p_.buffer(b).type; }

  bool takes_columns(const Instruction& i) const {
    return i.kind == program::Kind::compute && kernels_.find(i.kernel).can(Capability::columns);
  }
  // A plain matmul of two operands without epilogue.
  bool is_product(const Instruction& i) const {
    return takes_columns(i) && i.kernel == "contract" && i.ins.size() == 2 && !i.attributes.has("epilogue") &&
           !i.attributes.has("first");
  }

  void join(Place maker) {
    const Instruction& i = at(maker);
    const Pattern* const pattern = takes_columns(i) ? find_pattern(Rewrite::columns, i.kernel) : nullptr;
    if (pattern == nullptr) return;
    const graph::OpRow& row = operations_.find(i.kernel);
    if (row.outs.place(pattern->output, i.absent.outs)) return;
    std::vector<Part> parts;
    for (const std::string_view name : pattern->replaced) {
      const auto output = row.outs.place(name, i.absent.outs);
      std::optional<Part> part;
      if (output && !((i.accumulate >> *output) & 1u)) part = part_of(maker, i.outs[*output]);
      if (!part) return;
      parts.push_back(std::move(*part));
    }
    if (fit(parts) && pay(parts)) write(maker, *pattern, parts);
  }

  // Nothing if it has other uses.
  std::optional<Part> part_of(Place maker, BufferId made) {
    const program::Buffer& whole = p_.buffer(p_.root(made));
    if (writes_[root(made)] != 1 || whole.region != program::Region::arena || !whole.output.empty())
      return std::nullopt;
    Part part;
    int terms = 0;
    for (const Place place : readers_[root(made)]) {
      const Instruction& i = at(place);
      const bool is_sum = takes_columns(i) && i.kernel == "sum";
      if ((!is_sum && !is_product(i)) || i.layer != at(maker).layer) return std::nullopt;
      const bool is_term = !is_sum && root(i.ins[0]) == root(made);
      const BufferId b = is_term || is_sum ? i.ins[0] : i.ins[1];
      if (type(b).bytes() != whole.bytes() || (is_term && root(i.ins[1]) == root(made))) return std::nullopt;
      if (!is_term) {
        part.others.push_back(place);
        continue;
      }
      if (place.body != maker.body || ++terms > 1) return std::nullopt;
      part.term = place;
      for (const Dim& dim : type(b).shape) {
        const bool kept = type(i.outs[0]).shape.has(dim.name);
        if (kept && !part.columns.empty()) return std::nullopt;
        (kept ? part.rows : part.columns).push_back(dim);
      }
    }
    if (terms != 1 || part.columns.empty()) return std::nullopt;
    return part;
  }

  // Whether the terms form one sum of one kind, and nothing between them interferes.
  bool fit(const std::vector<Part>& parts) {
    const Part &first = first_of(parts), &last = *std::ranges::max_element(parts, {}, &Part::term);
    const Instruction& head = at(first.term);
    const BufferId y = head.outs[0];
    std::set<BufferId> weights;
    for (const Part& part : parts) {
      const Instruction& term = at(part.term);
      const BufferId w = term.ins[1];
      weights.insert(w);
      if (part.rows != first.rows || term.outs != head.outs || term.phase != head.phase) return false;
      if (part.term != first.term && term.accumulate != 1) return false;
      for (size_t j = 0; j < 2; ++j)
        if (type(term.ins[j]).dtype != type(head.ins[j]).dtype) return false;
      if (!ends_with(type(w).shape, part.columns) || with_columns(type(w).shape, part.columns.size(), 1) !=
                                                         with_columns(type(head.ins[1]).shape, first.columns.size(), 1))
        return false;
      for (const Place other : part.others)
        for (const BufferId b : at(other).outs) {
          const Shape& shape = type(b).shape;
          if (!ends_with(shape, part.columns)) return false;
          if (at(other).ins.size() == 1 && shape.rank() > part.columns.size()) return false;  // of only some rows
        }
    }
    for (Place place = first.term; place < last.term; ++place.at) {
      const Instruction& i = at(place);
      for (const BufferId b : i.outs)
        if (std::ranges::any_of(weights, [&](BufferId w) { return p_.overlap(b, w); })) return false;
      if (std::ranges::any_of(parts, [&](const Part& part) { return part.term == place; })) continue;
      for (const auto* list : {&i.ins, &i.outs})
        if (std::ranges::any_of(*list, [&](BufferId b) { return root(b) == root(y); })) return false;
    }
    return true;
  }

  // The weights are read and written once to become adjacent, but the sum is not, for each term but the first.
  bool pay(const std::vector<Part>& parts) {
    int64_t weights = 0;
    for (const Part& part : parts) weights += type(at(part.term).ins[1]).bytes();
    return weights < static_cast<int64_t>(parts.size() - 1) * type(at(parts[0].term).outs[0]).bytes();
  }

  static const Part& first_of(const std::vector<Part>& parts) {
    return *std::ranges::min_element(parts, {}, &Part::term);
  }

  void write(Place place, const Pattern& pattern, const std::vector<Part>& parts) {
    const Part& first = first_of(parts);
    int64_t all = 0;
    for (const Part& part : parts) all += part.count();
    Instruction& product = at(first.term);
    const BufferId joined = add_joined(product.ins[0], first.columns.size(), all),
                   weights = add_joined(product.ins[1], first.columns.size(), all);

    Instruction join = {.kernel = "join_columns", .outs = {weights}, .layer = product.layer, .phase = product.phase};
    int64_t begin = 0;
    for (const Part& part : parts) {
      join.ins.push_back(view(at(part.term).ins[1], part.columns.size()));
      if (part.term != first.term) gone_.insert(part.term);
      for (const Place other : part.others) {
        Instruction& i = at(other);
        i.ins.back() = joined;
        for (BufferId& b : i.outs) b = view(b, part.columns.size());
        if (i.attributes.has("dims")) i.attributes.set("dims", tensor::names(type(i.outs[0]).shape));
        i.attributes.set("first", begin);
      }
      begin += part.count();
    }
    join.cost = cost_of(p_, operations_, join);
    before_.emplace(first.term, std::move(join));
    product.ins = {joined, weights};
    product.cost = cost_of(p_, operations_, product);

    Instruction& maker = at(place);
    const graph::OpRow& row = operations_.find(maker.kernel);
    for (const std::string_view name : pattern.replaced) {
      const size_t output = *row.outs.place(name, maker.absent.outs);
      const uint32_t below = (1u << output) - 1;
      maker.outs.erase(maker.outs.begin() + static_cast<std::ptrdiff_t>(output));
      maker.accumulate = (maker.accumulate & below) | ((maker.accumulate >> 1) & ~below);
      maker.absent.outs |= 1u << row.outs.position(name);
    }
    tensor::insert(maker.outs, maker.absent.outs, row.outs.position(pattern.output), joined);
  }

  // A value like `of`, with `all` columns in place of the last dims.
  BufferId add_joined(BufferId of, size_t dims, int64_t all) {
    const std::string name = p_.buffer(of).name + "." + kColumns;
    return add({.name = name, .type = {with_columns(type(of).shape, dims, all), type(of).dtype}});
  }
  // The same memory, with columns in place of the last dims.
  BufferId view(BufferId of, size_t dims) {
    const Shape& shape = type(of).shape;
    int64_t count = 1;
    for (size_t d = shape.rank() - dims; d < shape.rank(); ++d) count *= shape[d].size;
    return add({.name = p_.buffer(of).name,
                .type = {with_columns(shape, dims, count), type(of).dtype},
                .region = p_.buffer(of).region,
                .same_as = of});
  }
  BufferId add(program::Buffer made) {
    made.whole = made.type.shape;
    p_.buffers.push_back(std::move(made));
    return static_cast<BufferId>(p_.buffers.size() - 1);
  }

  Program& p_;
  const graph::OpTable& operations_;
  const kernels::KernelSet& kernels_;
  std::vector<std::vector<Place>> readers_;  // [root]
  std::vector<int> writes_;
  std::map<Place, Instruction> before_;  // instructions to insert before an instruction
  std::set<Place> gone_;                 // performed by another
};

}  // namespace

void join_columns(Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels) {
  if (!p.on_device) return;
  ColumnJoiner(p, operations, kernels).run();
  join_gradients(p, operations, kernels);
}

}  // namespace kintsugi::lower
