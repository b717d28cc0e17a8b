#include "kintsugi/lower/fuse/fuse.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "kintsugi/lower/fuse/patterns.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Program;
using program::Region;

namespace {

class Fuser {
 public:
  Fuser(Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels)
      : p_(p), operations_(operations), kernels_(kernels), uses_(p.buffers.size(), 0) {
    for (const Body& body : p.bodies)
      for (const Instruction& i : body.instructions)
        for (BufferId b : i.ins) ++uses_[root(b)];
    for (const program::Buffer& b : p.buffers)
      if (!b.output.empty()) ++uses_[root(static_cast<BufferId>(&b - p.buffers.data()))];
  }

  void run(Body& body) {
    std::vector<Instruction>& list = body.instructions;
    std::vector<int> maker(p_.buffers.size(), -1);  // [buffer]: its producer in this body
    gone_.assign(list.size(), false);
    summed_.assign(p_.buffers.size(), -1);
    touching_.assign(p_.buffers.size(), {});
    sum_of_.assign(p_.buffers.size(), -1);
    sums_.clear();
    for (const Instruction& i : list) note_operands(list, i);
    for (size_t i = 0; i < list.size(); ++i) {
      if (is_absorbed(list, maker, i)) {
        gone_[i] = true;
        continue;
      }
      for (BufferId b : list[i].outs) maker[static_cast<size_t>(b)] = static_cast<int>(i);
    }
    for (Instruction& i : list)
      for (std::vector<BufferId>* operands : {&i.ins, &i.outs})
        for (BufferId& b : *operands) b = current(b);
    join_sums(list);
    std::vector<Instruction> left;
    for (size_t i = 0; i < list.size(); ++i)
      if (!gone_[i]) left.push_back(std::move(list[i]));
    list = std::move(left);
  }

 private:
  // Whether the producer of an operand can also perform this instruction.
  bool is_absorbed(std::vector<Instruction>& list, std::vector<int>& maker, size_t at) {
    if (list[at].kind != program::Kind::compute) return false;
    return std::ranges::any_of(patterns(), [&](const Pattern& pattern) {
      return pattern.has_consumer(list[at].kernel) && absorb(pattern, list, maker, at);
    });
  }

  bool absorb(const Pattern& pattern, std::vector<Instruction>& list, std::vector<int>& maker, size_t at) {
    switch (pattern.rewrite) {
      case Rewrite::write:
        return write_at_source(list, maker, at);
      case Rewrite::activation:
      case Rewrite::slope:
        return activate(pattern, list, maker, at);
      case Rewrite::bias:
        return add_bias(pattern, list, maker, at);
      case Rewrite::sum_in_place:
        return add_in_place(pattern, list, maker, at);
      case Rewrite::residual:
        return add_residual(pattern, list, maker, at);
      case Rewrite::row_sums:  // join_sums(), once the result has its last producer
      case Rewrite::columns:
      case Rewrite::list:
      case Rewrite::launch:
        return false;
    }
    return false;
  }

  void note_operands(const std::vector<Instruction>& list, const Instruction& i) {
    const auto index = static_cast<int>(&i - list.data());
    for (const std::vector<BufferId>* operands : {&i.ins, &i.outs})
      for (const BufferId b : *operands) touching_[root(current(b))].push_back(index);
  }

  size_t root(BufferId b) const { return static_cast<size_t>(p_.root(b)); }

  // The buffer that an operand names after the sums in place so far. Operands of instructions that accumulate into a
  // sum are renamed only after the pass: in a chain of sums, each would otherwise be renamed once per later sum.
  BufferId current(BufferId b) const {
    const int sum = sum_of_[static_cast<size_t>(b)];
    return sum < 0 ? b : sums_[static_cast<size_t>(sum)].buffer;
  }

  // The instruction that produces `b` for `user`, in the same layer, or null.
  Instruction* maker_of(std::vector<Instruction>& list, const std::vector<int>& maker, BufferId b, size_t user) {
    const int i = maker[static_cast<size_t>(b)];
    if (i < 0 || p_.buffer(b).region != Region::arena) return nullptr;
    Instruction& made = list[static_cast<size_t>(i)];
    return made.kind == program::Kind::compute && made.layer == list[user].layer ? &made : nullptr;
  }

  // As maker_of(), if nothing else uses it.
  bool is_used_once(BufferId b) const { return uses_[root(b)] == 1; }
  Instruction* single_use(std::vector<Instruction>& list, const std::vector<int>& maker, BufferId b, size_t user) {
    return is_used_once(b) ? maker_of(list, maker, b, user) : nullptr;
  }

  // Whether an instruction strictly between `first` and `last` does this to a buffer.
  template <typename F>
  bool any_between(const std::vector<Instruction>& list, const Instruction* first, const Instruction* last, F&& does) {
    for (const Instruction* i = first + 1; i < last; ++i)
      if (!gone_[static_cast<size_t>(i - list.data())] && does(*i)) return true;
    return false;
  }

  static bool is_suffix(const tensor::Shape& part, const tensor::Shape& whole) {
    return part.rank() < whole.rank() && std::equal(part.dims().rbegin(), part.dims().rend(), whole.dims().rbegin());
  }

  bool add_bias(const Pattern& pattern, std::vector<Instruction>& list, std::vector<int>& maker, size_t at) {
    Instruction& add = list[at];
    if (add.ins.size() != 2 || !is_suffix(p_.buffer(add.ins[1]).type.shape, p_.buffer(add.outs[0]).type.shape))
      return false;
    Instruction* product = single_use(list, maker, add.ins[0], at);
    if (!product || !pattern.has_producer(product->kernel) || has_epilogue(*product)) return false;
    const graph::OpRow& row = operations_.find(product->kernel);
    if (row.ins.place(pattern.operand, product->absent.ins)) return false;
    if (any_between(list, product, &add, [&](const Instruction& i) { return writes(i, add.ins[1]); })) return false;
    tensor::insert(product->ins, product->absent.ins, row.ins.position(pattern.operand), add.ins[1]);
    product->outs[0] = add.outs[0];
    note_operands(list, *product);
    product->cost.flops += add.cost.flops;
    maker[static_cast<size_t>(add.outs[0])] = static_cast<int>(product - list.data());
    return true;
  }

  // y = a + b + ... on a device: the first operand produced becomes y, and the producers of the others accumulate into
  // it. Across layers only if bit-identical to the addition.
  bool add_in_place(const Pattern& pattern, std::vector<Instruction>& list, std::vector<int>& maker, size_t at) {
    const Instruction& add = list[at];
    const BufferId y = add.outs[0];
    if (!kernels_.sums_in_place() || add.accumulate != 0 || p_.root(y) != y || p_.buffer(y).region != Region::arena)
      return false;
    struct Term {
      int made;  // index of its last producer
      BufferId buffer;
    };
    std::vector<Term> terms;
    for (const BufferId b : add.ins) {
      if (p_.buffer(b).type != p_.buffer(y).type || p_.root(b) != b || p_.buffer(b).region != Region::arena)
        return false;
      terms.push_back({made_at(maker, b), b});
    }
    std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.made < b.made; });
    const BufferId first = terms[0].buffer;
    if (terms[0].made < 0 || terms.size() < 2 || !p_.buffer(first).output.empty()) return false;
    for (size_t t = 1; t < terms.size(); ++t)
      if (terms[t].buffer == first || !can_add(pattern, list[static_cast<size_t>(terms[t].made)], maker,
                                               terms[t].buffer, first, add, terms.size() == 2))
        return false;
    // All uses of the first are here, and none after it is accumulated into.
    std::optional<Sum> sum = sum_in_place(list, first, add, static_cast<size_t>(terms[1].made));
    if (!sum) return false;
    record(std::move(*sum), first, y);
    for (size_t t = 1; t < terms.size(); ++t) {
      Instruction& source = list[static_cast<size_t>(terms[t].made)];
      const auto j = std::find(source.outs.begin(), source.outs.end(), terms[t].buffer) - source.outs.begin();
      source.outs[static_cast<size_t>(j)] = y;
      note_operands(list, source);
      source.accumulate |= 1u << j;
      source.cost.memory_bytes += static_cast<double>(p_.buffer(y).type.bytes());
      source.cost.flops += add.cost.flops / static_cast<double>(terms.size() - 1);
    }
    uses_[root(y)] += uses_[root(first)] - 1;
    maker[static_cast<size_t>(y)] = -1;  // several producers
    summed_[static_cast<size_t>(y)] = terms.back().made;
    return true;
  }

  // A value that several instructions accumulate in one buffer.
  struct Sum {
    BufferId buffer = program::kNoBuffer;
    std::unordered_map<int, int> reads = {};  // [instruction that touches it]: number of operands that read it
    int num_reads = 0;
    int last = -1;            // the last of these instructions
    bool is_message = false;  // one of them is a message, which the peer identifies by the buffer's name
  };

  // `first` as the sum that `add` computes, unless an instruction other than those up to `last` and `add`, or another
  // body, uses it.
  std::optional<Sum> sum_in_place(const std::vector<Instruction>& list, BufferId first, const Instruction& add,
                                  size_t last) {
    const BufferId y = add.outs[0];
    if (sum_of_[static_cast<size_t>(y)] >= 0) return std::nullopt;
    const int known = sum_of_[static_cast<size_t>(first)];
    Sum& before = known < 0 ? (no_sum_ = Sum{}) : sums_[static_cast<size_t>(known)];
    std::vector<int>& users = touching_[root(first)];
    std::ranges::sort(users);
    users.erase(std::ranges::unique(users).begin(), users.end());
    std::vector<std::pair<int, int>> noted;  // instruction and its reads, other than `add`
    int num_reads = before.num_reads;
    bool is_sent = before.is_message;
    int latest = before.last;
    for (const int user : users) {
      const Instruction& i = list[static_cast<size_t>(user)];
      if (gone_[static_cast<size_t>(user)] || !touches(i, first)) continue;
      if (i.kind != program::Kind::compute && reads(i, first)) return std::nullopt;
      const auto count =
          static_cast<int>(std::ranges::count_if(i.ins, [&](BufferId b) { return current(b) == first; }));
      const auto old = before.reads.find(user);
      num_reads += count - (old == before.reads.end() ? 0 : old->second);
      if (&i == &add) continue;
      is_sent = is_sent || is_message(i);
      latest = std::max(latest, user);
      noted.emplace_back(user, count);
    }
    if (latest > static_cast<int>(last) || num_reads != uses_[root(first)]) return std::nullopt;
    if (is_sent && p_.buffer(first).name != p_.buffer(y).name) return std::nullopt;
    Sum sum = std::move(before);
    for (const auto& [user, count] : noted) sum.reads[user] = count;
    sum.num_reads = num_reads - 1;  // without `add`
    sum.last = latest;
    sum.is_message = is_sent;
    return sum;
  }

  // From now on `first` is the sum in `y`.
  void record(Sum sum, BufferId first, BufferId y) {
    sum.buffer = y;
    int& index = sum_of_[static_cast<size_t>(first)];
    if (index < 0) {
      index = static_cast<int>(sums_.size());
      sums_.emplace_back();
    }
    sum_of_[static_cast<size_t>(y)] = index;
    sums_[static_cast<size_t>(index)] = std::move(sum);
    touching_[root(first)].clear();
  }

  int made_at(const std::vector<int>& maker, BufferId b) const {
    return std::max(maker[static_cast<size_t>(b)], summed_[static_cast<size_t>(b)]);
  }
  // Whether the producer of a term can accumulate it into `to` instead; `alone`: it is the only one that does.
  bool can_add(const Pattern& pattern, const Instruction& source, const std::vector<int>& maker, BufferId term,
               BufferId to, const Instruction& add, bool alone) const {
    if (maker[static_cast<size_t>(term)] < 0 || !is_used_once(term) || source.kind != program::Kind::compute)
      return false;
    const auto j = static_cast<size_t>(std::find(source.outs.begin(), source.outs.end(), term) - source.outs.begin());
    if (j == source.outs.size() || ((source.accumulate >> j) & 1u) || has_epilogue(source) || reads(source, to))
      return false;
    const graph::OpRow& row = operations_.find(source.kernel);
    const std::string_view output = row.outs.at(j, source.absent.outs).name;
    if (is_capable(kernels_.find(source.kernel), pattern, output)) return alone || source.layer == add.layer;
    return row.can_accumulate(output) && source.layer == add.layer && (!has_bias(source) || is_thin(source));
  }

  bool has_bias(const Instruction& i) const {
    const Pattern* const bias = find_pattern(Rewrite::bias, i.kernel);
    return bias && operations_.find(i.kernel).ins.place(bias->operand, i.absent.ins);
  }

  // y = product + r, or r + product.
  bool add_residual(const Pattern& pattern, std::vector<Instruction>& list, std::vector<int>& maker, size_t at) {
    const Instruction& add = list[at];
    if (add.ins.size() != 2 || add.accumulate != 0) return false;
    return add_residual(pattern, list, maker, at, add.ins[0], add.ins[1]) ||
           add_residual(pattern, list, maker, at, add.ins[1], add.ins[0]);
  }
  bool add_residual(const Pattern& pattern, std::vector<Instruction>& list, std::vector<int>& maker, size_t at,
                    BufferId made, BufferId other) {
    const Instruction& add = list[at];
    const BufferId y = add.outs[0];
    Instruction* product = single_use(list, maker, made, at);
    if (!product || product->outs[0] != made || product->accumulate != 0 || has_epilogue(*product)) return false;
    const graph::OpRow& row = operations_.find(product->kernel);
    if (!fits(pattern, *product, add) || is_thin(*product)) return false;
    if (row.ins.place(pattern.operand, product->absent.ins) || !p_.buffer(made).output.empty()) return false;
    for (const BufferId b : {made, other})
      if (p_.buffer(b).type != p_.buffer(y).type) return false;
    const auto hinders = [&](const Instruction& i) { return touches(i, y) || writes(i, other); };
    if (p_.overlap(y, other) || reads(*product, y) || any_between(list, product, &add, hinders)) return false;
    tensor::insert(product->ins, product->absent.ins, row.ins.position(pattern.operand), other);
    product->outs[0] = y;
    note_operands(list, *product);
    product->cost.flops += add.cost.flops;
    product->cost.memory_bytes += static_cast<double>(p_.buffer(other).bytes());
    maker[static_cast<size_t>(y)] = static_cast<int>(product - list.data());
    return true;
  }

  // Whether the producer and its kernel match a pattern.
  bool fits(const Pattern& pattern, const Instruction& producer, const Instruction& consumer) const {
    return pattern.has_producer(producer.kernel) &&
           is_capable(kernels_.find(producer.kernel), pattern, consumer.kernel);
  }

  // Whether a matmul has few enough rows in its first operand for its kernel to combine bias and accumulation.
  bool is_thin(const Instruction& product) const {
    const tensor::Shape &b = p_.buffer(product.ins[1]).type.shape, &y = p_.buffer(product.outs[0]).type.shape;
    int64_t rows = 1;
    for (const tensor::Dim& dim : y)
      if (!b.has(dim.name)) rows *= dim.size;
    return rows <= kernels_.find(product.kernel).thin_rows;
  }

  static bool has_epilogue(const Instruction& i) { return i.attributes.has("epilogue"); }

  // An activation y = f(x) of the matmul result x, or dx = f'(x) dy of the matmul result dy.
  bool activate(const Pattern& pattern, std::vector<Instruction>& list, std::vector<int>& maker, size_t at) {
    const Instruction& act = list[at];
    const bool slope = pattern.rewrite == Rewrite::slope;
    const BufferId of = act.ins.back(), result = act.outs[0];
    Instruction* product = maker_of(list, maker, of, at);
    if (!product || product->outs[0] != of || product->accumulate != 0 || act.accumulate != 0) return false;
    const graph::OpRow& to = operations_.find(product->kernel);
    if (has_epilogue(*product) || !fits(pattern, *product, act)) return false;
    const bool kept = !is_used_once(of);
    if (kept && (slope || pattern.output.empty())) return false;
    for (const BufferId b : act.ins)
      if (p_.buffer(b).type != p_.buffer(result).type) return false;
    const BufferId x = act.ins.front();
    const auto hinders = [&](const Instruction& i) { return touches(i, result) || (slope && writes(i, x)); };
    if (any_between(list, product, &act, hinders)) return false;

    product->attributes.set("epilogue", act.kernel);
    for (const auto& [name, value] : act.attributes.list()) product->attributes.set(name, value);
    product->outs[0] = result;
    product->cost.flops += act.cost.flops;
    if (slope) tensor::insert(product->ins, product->absent.ins, to.ins.position(pattern.operand), x);
    if (kept) tensor::insert(product->outs, product->absent.outs, to.outs.position(pattern.output), of);
    note_operands(list, *product);
    if (slope || kept) product->cost.memory_bytes += static_cast<double>(p_.buffer(x).type.bytes());
    maker[static_cast<size_t>(result)] = static_cast<int>(product - list.data());
    return true;
  }

  // `accumulate` of a value into a state, or (bit 0 not set) assignment.
  bool write_at_source(std::vector<Instruction>& list, std::vector<int>& maker, size_t at) {
    const Instruction& write = list[at];
    Instruction* source = single_use(list, maker, write.ins[0], at);
    if (!source || write.adds_in_tree) return false;
    const auto j =
        static_cast<size_t>(std::find(source->outs.begin(), source->outs.end(), write.ins[0]) - source->outs.begin());
    const BufferId state = write.outs[0];
    const tensor::Type &to = p_.buffer(state).type, &from = p_.buffer(write.ins[0]).type;
    const graph::OpRow& row = operations_.find(source->kernel);
    const std::string_view output = row.outs.at(j, source->absent.outs).name;
    const bool narrows = from.dtype == tensor::DType::f32 && to.dtype == tensor::DType::bf16 && row.can_narrow(output);
    if (to.shape != from.shape || (to.dtype != from.dtype && !narrows)) return false;
    const bool adds = (write.accumulate & 1u) != 0;
    if ((adds || narrows) && has_epilogue(*source)) return false;
    if (adds && !row.can_accumulate(output)) return false;
    for (size_t i = 0; i < source->ins.size(); ++i) {
      const bool in_place = row.may_share(output, tensor::position_of(i, source->absent.ins));
      if (p_.overlap(current(source->ins[i]), state) && (adds || !in_place)) return false;
    }
    if (any_between(list, source, &write, [&](const Instruction& i) { return touches(i, state); })) return false;
    source->outs[j] = state;
    note_operands(list, *source);
    source->cost.memory_bytes += static_cast<double>(to.bytes() - from.bytes());
    if (adds) source->accumulate |= 1u << j;
    return true;
  }

  void join_sums(std::vector<Instruction>& list) {
    // By the buffer of an instruction's first output, in order.
    std::vector<std::vector<size_t>> first_writers(p_.buffers.size());
    for (size_t i = 0; i < list.size(); ++i)
      if (!list[i].outs.empty()) first_writers[static_cast<size_t>(list[i].outs[0])].push_back(i);
    for (const Pattern& pattern : patterns()) {
      if (pattern.rewrite != Rewrite::row_sums) continue;
      for (size_t at = 0; at < list.size(); ++at) {
        if (gone_[at] || list[at].kind != program::Kind::compute || !pattern.has_consumer(list[at].kernel)) continue;
        // The last writer before it: an earlier one would sum what that one overwrites or adds to.
        const std::vector<size_t>& writers = first_writers[static_cast<size_t>(list[at].ins[0])];
        auto to = std::ranges::lower_bound(writers, at);
        while (to != writers.begin() && gone_[*std::prev(to)]) --to;
        if (to != writers.begin()) gone_[at] = sums_too(pattern, list, at, list[*std::prev(to)]);
      }
    }
  }
  // Whether another instruction, the last that wrote the summed value, also computes the sum from now on: in any layer,
  // since a separate sum on the other side of a cut has the same bits.
  bool sums_too(const Pattern& pattern, const std::vector<Instruction>& list, size_t at, Instruction& other) {
    const Instruction& sum = list[at];
    if (&other > &sum || other.kind != program::Kind::compute || sum.adds_in_tree) return false;
    if (!fits(pattern, other, sum)) return false;
    const graph::OpRow& row = operations_.find(other.kernel);
    const BufferId of = sum.ins[0], result = sum.outs[0];
    if (row.outs.place(pattern.output, other.absent.outs) || other.outs[0] != of || touches(other, result))
      return false;
    if (p_.buffer(other.ins[1]).type.shape != p_.buffer(result).type.shape) return false;
    if (any_between(list, &other, &sum, [&](const Instruction& i) { return touches(i, result) || writes(i, of); }))
      return false;
    tensor::insert(other.outs, other.absent.outs, row.outs.position(pattern.output), result);
    if (sum.accumulate != 0) other.accumulate |= 1u << (other.outs.size() - 1);
    other.cost.flops += sum.cost.flops;
    other.cost.memory_bytes +=
        sum.cost.memory_bytes - static_cast<double>(p_.buffer(of).bytes());  // already in registers
    return true;
  }

  bool writes(const Instruction& i, BufferId buffer) const {
    return std::any_of(i.outs.begin(), i.outs.end(), [&](BufferId b) { return p_.overlap(current(b), buffer); });
  }

  bool reads(const Instruction& i, BufferId buffer) const {
    return std::any_of(i.ins.begin(), i.ins.end(), [&](BufferId b) { return p_.overlap(current(b), buffer); });
  }

  bool touches(const Instruction& i, BufferId state) const {
    const auto same = [&](BufferId b) { return p_.overlap(current(b), state); };
    return std::any_of(i.ins.begin(), i.ins.end(), same) || std::any_of(i.outs.begin(), i.outs.end(), same);
  }

  Program& p_;
  const graph::OpTable& operations_;
  const kernels::KernelSet& kernels_;
  std::vector<int> uses_;    // [buffer]: number of uses over all bodies
  std::vector<bool> gone_;   // [instruction of the body]: absorbed by another
  std::vector<int> summed_;  // [buffer with several producers]: the last of them
  // [root of a buffer]: the instructions of the body that touch it, and some that no longer do; with repetitions, and
  // without those that `sums_` counts.
  std::vector<std::vector<int>> touching_;
  std::vector<int> sum_of_;  // [buffer]: its sum in `sums_`, or -1
  std::vector<Sum> sums_;
  Sum no_sum_;
};

}  // namespace

void fuse(Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels) {
  Fuser fuser(p, operations, kernels);
  for (Body& body : p.bodies) fuser.run(body);
}

}  // namespace kintsugi::lower
