#include "kintsugi/simulate/arrange.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "kintsugi/simulate/kernel_kind.h"

namespace kintsugi::simulate {

using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;

namespace {

bool makes(const Program& p, const Instruction& i, BufferId value) {
  return std::ranges::any_of(i.outs, [&](BufferId out) { return p.root(out) == p.root(value); });
}

bool is_product(const Arranged& a) {
  return kind_of(*a.instruction) == KernelKind::contract && !a.elsewhere;
}

bool is_added(const Arranged& a) {
  const KernelKind kind = kind_of(*a.instruction);
  return (kind == KernelKind::add || kind == KernelKind::dropout) && !a.elsewhere;
}

class Arranger {
 public:
  Arranger(const Program& p, const program::Body& body, const Software& software) : p_(p) {
    for (const Instruction& i : body.instructions) {
      list_.push_back({.instruction = &i});
      // A mask of one byte per element; separate kernels for the gradients of a norm's weights and of its operand,
      // which both read the input and the output gradient.
      const KernelKind kind = kind_of(i);
      if (software.keeps_masks && kind == KernelKind::dropout)
        list_.back().more_bytes = static_cast<double>(p.buffer(i.outs[0]).type.shape.elements());
      if (software.keeps_masks && kind == KernelKind::norm_grad)
        list_.back().more_bytes = 2 * static_cast<double>(p.buffer(i.outs[0]).bytes());
      if (const double bytes = chain_bytes(kind, software); bytes > 0)
        list_.back().more_bytes += bytes * static_cast<double>(p.buffer(i.outs[0]).type.shape.elements());
      for (const BufferId in : i.ins) ++uses_[in];
    }
  }

  static double chain_bytes(KernelKind kind, const Software& software) {
    if (kind == KernelKind::norm) return software.norm_bytes;
    if (kind == KernelKind::norm_grad) return software.norm_grad_bytes;
    if (kind == KernelKind::rotary) return software.rotary_bytes;
    return 0;
  }

  std::vector<Arranged> take() { return std::move(list_); }

  // Gradients of one value by several matmuls, which are then added, are one matmul over the combined depth.
  void join_sums() {
    for (size_t at = 0; at < list_.size(); ++at) {
      const Instruction& sum = *list_[at].instruction;
      if (kind_of(sum) != KernelKind::add || sum.ins.size() < 2) continue;
      std::vector<size_t> makers;
      for (const BufferId in : sum.ins)
        for (size_t m = 0; m < at; ++m)
          if (is_product(list_[m]) && makes(p_, *list_[m].instruction, in) && uses_[in] == 1) makers.push_back(m);
      if (makers.size() != sum.ins.size()) continue;
      std::ranges::sort(makers);
      ProductSize all = size_of(list_[makers[0]]);
      const bool alike = std::ranges::all_of(makers, [&](size_t m) {
        const ProductSize s = size_of(list_[m]);
        return s.rows == all.rows && s.columns == all.columns && s.times == all.times;
      });
      if (!alike) continue;
      all.depth = 0;
      for (const size_t m : makers) all.depth += size_of(list_[m]).depth;
      for (const size_t m : makers) list_[m].elsewhere = true;
      list_[at].product = all;
      list_[at].first = list_[makers[0]].instruction;
      // It is computed before the weight gradients that lie between the matmuls.
      const size_t to = makers[0];
      std::rotate(list_.begin() + static_cast<std::ptrdiff_t>(to), list_.begin() + static_cast<std::ptrdiff_t>(at),
                  list_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  }

  // Matmuls of one operand in a layer are one matmul with all columns, at the position of the first or the last.
  void join_columns() {
    using Key = std::tuple<BufferId, int, double, double, double, bool>;
    std::map<Key, size_t> first;
    for (size_t at = 0; at < list_.size(); ++at) {
      Arranged& a = list_[at];
      if (!is_product(a)) continue;
      const ProductSize s = size_of(a);
      const Key key = {p_.root(a.instruction->ins[0]), a.instruction->layer, s.rows, s.depth, s.times,
                       a.instruction->accumulate != 0};
      const auto [found, is_new] = first.try_emplace(key, at);
      if (is_new) continue;
      Arranged& joined = list_[found->second];
      if (!joined.product) joined.product = size_of(joined);
      joined.product->columns += s.columns;
      joined.first = joined.instruction;
      a.elsewhere = true;
    }
  }

  // Consecutive biases, dropout and residuals are one kernel: values that only the next one reads stay in registers.
  void join_elementwise() {
    size_t last = list_.size();
    for (size_t at = 0; at < list_.size(); ++at) {
      const Instruction& i = *list_[at].instruction;
      if (i.kind != Kind::compute || list_[at].elsewhere) {
        if (i.kind != Kind::compute) last = list_.size();
        continue;
      }
      if (!is_added(list_[at]) || list_[at].product) {
        last = list_.size();
        continue;
      }
      if (last < at) {
        const Instruction& before = *list_[last].instruction;
        const BufferId value = before.outs[0];
        if (std::ranges::find(i.ins, value) != i.ins.end() && uses_[value] == 1) {
          list_[last].elsewhere = true;
          list_[at].more_bytes +=
              list_[last].more_bytes + before.cost.memory_bytes - 2 * static_cast<double>(p_.buffer(value).bytes());
        }
      }
      last = at;
    }
  }

  // Moves collectives forward to the producer of the operand or the previous collective, but over no more than one
  // matmul.
  void start_early() {
    std::vector<Arranged> list;
    for (const Arranged& a : list_) {
      list.push_back(a);
      const Instruction& i = *a.instruction;
      if (!is_collective(i) || is_message(i)) continue;
      size_t at = list.size() - 1;
      for (int products = 0; at > 0; --at) {
        const Arranged& before = list[at - 1];
        if (is_collective(*before.instruction) || makes(p_, *before.instruction, operand(i))) break;
        if ((is_product(before) || before.product) && ++products > 1) break;
      }
      list.pop_back();
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), a);
    }
    list_ = std::move(list);
  }

  // If the sequence is the outermost dim, ranks' parts of it are adjacent: no copies stack or unstack them.
  void leave_stacks() {
    for (Arranged& a : list_) {
      const KernelKind kind = kind_of(*a.instruction);
      if (kind != KernelKind::stack && kind != KernelKind::unstack) continue;
      a.elsewhere = true;
      if (kind == KernelKind::stack) stacked_[a.instruction->outs[0]] = a.instruction->ins[0];
    }
  }

  // Matmuls whose parts are reduced over ranks while they are computed.
  void leave_units(double units) {
    for (size_t at = 0; at < list_.size(); ++at) {
      const Instruction& i = *list_[at].instruction;
      if (!starts(i, program::Collective::reduce_scatter)) continue;
      for (Arranged& a : list_)
        if (is_product(a) && makes(p_, *a.instruction, operand(i))) a.units = units;
    }
  }

  // Operands of matmuls with weights are cast to 8 bits, and also written transposed for the weight gradient: in the
  // forward pass the input (2 bytes read, 2 written), in the backward pass the output gradient, once for both matmuls
  // that read it.
  void cast_operands() {
    for (Arranged& a : list_) {
      if (!is_product(a) && !a.product) continue;
      const Instruction& i = a.first != nullptr ? *a.first : *a.instruction;
      const ProductSize s = size_of(a);
      if (kind_of(i) != KernelKind::contract || s.times != 1) continue;
      a.fp8 = true;
      if (i.phase != program::Phase::weight && i.accumulate == 0) a.cast_bytes = 4 * s.rows * s.depth;
    }
  }

  // Of what is recomputed, attention and every second matmul are kept (torchtitan, per-operation checkpointing).
  void keep_every_second() {
    int products = 0;
    for (Arranged& a : list_) {
      const Instruction& i = *a.instruction;
      if (i.kind != Kind::compute || i.phase != program::Phase::forward || a.elsewhere) continue;
      if (kind_of(i) == KernelKind::attention) a.elsewhere = true;
      if (is_product(a) && products++ % 2 == 1) a.elsewhere = true;
    }
  }

 private:
  // Of a collective: the value sent, before it is stacked.
  BufferId operand(const Instruction& i) const {
    const auto found = stacked_.find(i.ins[0]);
    return found == stacked_.end() ? i.ins[0] : found->second;
  }

  ProductSize size_of(const Arranged& a) const {
    if (a.product) return *a.product;
    const Instruction& i = *a.instruction;
    return product_size(p_.buffer(i.ins[0]).type.shape, p_.buffer(i.ins[1]).type.shape,
                        p_.buffer(i.outs[0]).type.shape);
  }

  const Program& p_;
  std::vector<Arranged> list_;
  std::map<BufferId, int> uses_;
  std::map<BufferId, BufferId> stacked_;  // [result of stacking]
};

}  // namespace

std::vector<Arranged> arranged(const Program& p, const program::Body& body, const Software& software) {
  Arranger a(p, body, software);
  if (software.sequence_first) a.leave_stacks();
  if (software.joins_products) {
    a.join_sums();
    a.join_columns();
  }
  if (software.joins_elementwise) a.join_elementwise();
  if (software.saves_every_second && body.does(program::Work::backward) && !body.does(program::Work::forward))
    a.keep_every_second();
  if (software.fp8) a.cast_operands();
  if (software.sum_units > 0 && body.does(program::Work::forward)) a.leave_units(software.sum_units);
  if (software.starts_early && body.does(program::Work::backward)) a.start_early();
  return a.take();
}

}  // namespace kintsugi::simulate
