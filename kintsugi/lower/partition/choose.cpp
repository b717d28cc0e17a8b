#include "kintsugi/lower/partition/choose.h"

#include <algorithm>

#include "kintsugi/tensor/window.h"

namespace kintsugi::lower {

using mesh::Combiner;
using mesh::Mesh;
using plan::Plan;
using plan::Rule;
using tensor::Dim;

namespace {

bool has(const std::vector<Factor>& list, Factor f) {
  return std::find(list.begin(), list.end(), f) != list.end();
}

class Chooser {
 public:
  Chooser(const Operation& op, std::span<const std::optional<Layout>> have, const Plan& plan)
      : op_(op), have_(have), plan_(plan), mesh_(plan.mesh) {
    for (const auto& [out, in] : op.row.alias) alias_[std::string(out)] = in;
    if (op.attributes.has("from") && op.attributes.has("to"))
      alias_[op.attributes.text("to")] = op.attributes.text("from");
    std::vector<std::string> whole(op.row.whole.begin(), op.row.whole.end());
    for (const std::string& d : tensor::words(op.attributes.text_or("whole", ""))) whole.push_back(d);
    if (!op.row.windowed.empty()) find_windows(whole);
    const auto add = [&](const Shape& shape, bool windowed) {
      for (const Dim& d : shape) {
        const std::string_view name = of(d.name);
        const bool known = std::any_of(dims_.begin(), dims_.end(), [&](const Dim& e) { return e.name == name; });
        if (!known && name == d.name && !(windowed && window(d.name)) &&
            std::find(whole.begin(), whole.end(), d.name) == whole.end())
          dims_.push_back(d);
      }
    };
    for (size_t i = 0; i < op.ins.size(); ++i) add(op.ins[i], windowed_in(i));
    for (size_t i = 0; i < op.outs.size(); ++i) add(op.outs[i], windowed_out(i));
    find_shorter(whole);
  }

  Choice run() {
    pass_sums();
    Choice c;
    keep_shards();
    Splits ruled = plan::by_rules(plan_, op_.row.rule_family(), dims_, taken_);
    keep_blocks(ruled);
    splits_.merge(ruled);
    keep_what_stands();
    pass_products();
    find_steps();
    for (size_t i = 0; i < op_.ins.size(); ++i) {
      Layout l = layout(op_.ins[i]);
      if (windowed_in(i)) add_halos(l, op_.ins[i], false);
      for (const auto& [f, operands] : passed_)
        if (has_operand(operands, i)) l.set_part(f, Combiner::sum);
      c.ins.push_back(std::move(l));
    }
    for (size_t i = 0; i < op_.outs.size(); ++i) {
      Layout l = layout(op_.outs[i]);
      if (windowed_out(i)) add_halos(l, op_.outs[i], true);
      const Combiner combiner = op_.row.combiner(op_.row.outs.at(i, op_.absent.outs).name);
      for (const auto& [dim, factors] : splits_)
        for (Factor f : factors)
          if (!l.is_split(f)) l.set_part(f, combiner);
      for (const auto& [f, operands] : passed_) l.set_part(f, Combiner::sum);
      c.outs.push_back(std::move(l));
    }
    c.splits = std::move(splits_);
    c.steps = std::move(steps_);
    return c;
  }

 private:
  static bool has_operand(const std::vector<size_t>& list, size_t i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  }

  bool windowed_in(size_t i) const { return op_.row.is_windowed(op_.row.ins.at(i, op_.absent.ins).name); }
  bool windowed_out(size_t i) const { return op_.row.is_windowed(op_.row.outs.at(i, op_.absent.outs).name); }

  const tensor::Window* window(std::string_view dim) const {
    for (const tensor::DimWindow& w : windows_)
      if (w.dim == dim) return &w.window;
    return nullptr;
  }

  // The kernel's own dims stay whole, and so do windowed dims that an axis cuts into several ranges.
  void find_windows(std::vector<std::string>& whole) {
    windows_ = tensor::windows_of(op_.attributes);
    for (const tensor::DimWindow& w : windows_) {
      whole.push_back(tensor::kernel_dim(w.dim));
      for (Factor f = 0; f < static_cast<Factor>(mesh_.factors().size()); ++f)
        if (mesh_.cut(w.dim, f).zigzag) whole.push_back(w.dim);
    }
  }

  // A dim that shorter ones follow is split into blocks for each of their positions, without padding.
  void find_shorter(const std::vector<std::string>& whole) {
    for (const auto* list : {&op_.ins, &op_.outs})
      for (const Shape& shape : *list)
        for (const Dim& d : shape) {
          if (of(d.name) == d.name || std::ranges::count(whole, d.name) > 0) continue;
          const auto followed = std::ranges::find(dims_, of(d.name), &Dim::name);
          if (followed == dims_.end() || followed->size <= d.size) continue;
          followed->size = d.size;
          followed_.push_back(followed->name);
        }
  }

  // Whether a dim whose split is `cut` can also be split by `f` if shorter dims follow it.
  bool keeps_blocks(const std::string& dim, const std::vector<Factor>& cut, Factor f) const {
    return std::ranges::count(followed_, dim) == 0 ||
           plan::fits(mesh_, *std::ranges::find(dims_, dim, &Dim::name), cut, f, false);
  }

  // Drops factors that rules with padding assigned.
  void keep_blocks(Splits& ruled) {
    for (const std::string& dim : followed_) {
      const auto split = ruled.find(dim);
      if (split == ruled.end()) continue;
      std::vector<Factor> kept;
      for (Factor f : split->second)
        if (keeps_blocks(dim, kept, f)) {
          kept.push_back(f);
        } else {
          std::erase(taken_, f);
        }
      split->second = kept;
    }
    std::erase_if(ruled, [](const auto& split) { return split.second.empty(); });
  }

  // Operands indexed by input position hold what the windows of their rank's output positions reach.
  void add_halos(Layout& l, const Shape& shape, bool adds) const {
    for (const Dim& d : shape) {
      const tensor::Window* w = window(d.name);
      const auto split = splits_.find(d.name);
      if (!w || split == splits_.end()) continue;
      const auto outputs = std::ranges::find(dims_, d.name, &Dim::name);
      l.set(d.name, split->second,
            mesh::Halo{
                .outputs = outputs->size, .stride = w->stride, .extent = w->extent(), .low = w->low, .adds = adds});
    }
  }

  std::string_view of(std::string_view dim) const {
    const auto i = alias_.find(dim);
    return i == alias_.end() ? dim : std::string_view(i->second);
  }

  bool splittable(std::string_view dim) const {
    return std::any_of(dims_.begin(), dims_.end(), [&](const Dim& d) { return d.name == dim; });
  }

  std::vector<size_t> sums(Factor f) const {
    std::vector<size_t> list;
    for (size_t i = 0; i < have_.size(); ++i)
      if (have_[i] && have_[i]->sums(f)) list.push_back(i);
    return list;
  }

  // A sum of partial values is a partial value of the sum.
  void pass_sums() {
    if (!op_.row.additive) return;
    for (Factor f = 0; f < static_cast<Factor>(mesh_.factors().size()); ++f) {
      std::vector<size_t> operands = sums(f);
      if (operands.empty() || operands.size() != op_.ins.size()) continue;
      passed_[f] = std::move(operands);
      taken_.push_back(f);
    }
  }

  // The blocks of a bucket stay on their ranks: no rule names `shard`.
  void keep_shards() {
    for (const auto& h : have_) {
      if (!h || h->of(kShard).empty() || splits_.contains(kShard) || !splittable(kShard)) continue;
      splits_[std::string(kShard)] = h->of(kShard);
      taken_.insert(taken_.end(), h->of(kShard).begin(), h->of(kShard).end());
    }
  }

  // A dim that no rule names keeps its split if the operands agree.
  void keep_what_stands() {
    for (const auto& h : have_) {
      if (!h) continue;
      for (const mesh::Split& s : h->splits())
        for (Factor f : s.factors) {
          const std::string dim(of(s.dim));
          const bool agree = std::all_of(have_.begin(), have_.end(), [&](const std::optional<Layout>& k) {
            return !k || (!k->part(f) && (!k->is_split(f) || of(k->dim_of(f)) == dim));
          });
          if (has(taken_, f) || !splittable(dim) || !agree || !keeps_blocks(dim, factors_of(splits_, dim), f)) continue;
          splits_[dim].push_back(f);
          taken_.push_back(f);
        }
    }
  }

  // If nothing splits the work, a product with a partial value is a partial value of the product.
  void pass_products() {
    if (!op_.row.linear) return;
    for (Factor f = 0; f < static_cast<Factor>(mesh_.factors().size()); ++f) {
      if (has(taken_, f)) continue;
      std::vector<size_t> operands = sums(f);
      const bool held = std::any_of(have_.begin(), have_.end(), [&](const auto& h) { return h && h->is_split(f); });
      if (operands.size() == 1 && !held) passed_[f] = std::move(operands);
    }
  }

  // Only factors that split the operation along dims which the rotating operands lack.
  void find_steps() {
    for (const Rule& rule : plan_.rules) {
      const auto& may = op_.row.steps;
      if (!rule.steps || (!rule.family.empty() && rule.family != op_.row.rule_family()) ||
          std::find(may.begin(), may.end(), rule.dim) == may.end())
        continue;
      int64_t size = 0;
      std::vector<std::string> there;
      for (const auto* list : {&op_.ins, &op_.outs})
        for (const Shape& shape : *list)
          if (shape.has(rule.dim)) {
            size = shape.size(rule.dim);
            for (const Dim& d : shape) there.push_back(d.name);
          }
      std::vector<Factor> round;
      for (Factor f : mesh_.expand(rule.axes)) {
        const bool lacks = std::any_of(splits_.begin(), splits_.end(), [&](const auto& s) {
          return has(s.second, f) && std::find(there.begin(), there.end(), s.first) == there.end();
        });
        if (lacks && size > 0 && plan::fits(mesh_, {rule.dim, size}, round, f, true) && !has(round, f))
          round.push_back(f);
      }
      if (!round.empty() && !steps_.contains(rule.dim)) steps_[rule.dim] = round;
    }
  }

  Layout layout(const Shape& shape) const {
    Layout l;
    for (const Dim& d : shape) {
      const auto step = steps_.find(d.name);
      const auto split = splits_.find(of(d.name));
      if (step != steps_.end()) {
        l.set(d.name, step->second);
      } else if (split != splits_.end()) {
        l.set(d.name, split->second);
      }
    }
    return l;
  }

  const Operation& op_;
  std::span<const std::optional<Layout>> have_;
  const Plan& plan_;
  const Mesh& mesh_;
  std::map<std::string, std::string, std::less<>> alias_;  // dim -> the dim whose split it follows
  std::vector<tensor::DimWindow> windows_;
  std::vector<Dim> dims_;              // splittable dims; windowed ones by output positions
  std::vector<std::string> followed_;  // by shorter dims, whose sizes they have in dims_
  std::vector<Factor> taken_;
  std::map<Factor, std::vector<size_t>> passed_;  // factor -> operands that stay partial over it
  Splits splits_, steps_;
};

}  // namespace

std::vector<Factor> factors_of(const Splits& splits, std::string_view dim) {
  const auto found = splits.find(dim);
  return found == splits.end() ? std::vector<Factor>() : found->second;
}

Choice choose(const Operation& op, std::span<const std::optional<Layout>> have, const Plan& plan) {
  if (plan.mesh.factors().empty())  // one rank: every value is whole
    return {.ins = std::vector<Layout>(op.ins.size()),
            .outs = std::vector<Layout>(op.outs.size()),
            .splits = {},
            .steps = {}};
  return Chooser(op, have, plan).run();
}

const Choice& Choices::of(const Operation& op, std::span<const std::optional<Layout>> have) {
  std::array<std::string, 4> texts = {op.attributes.text_or("from", ""), op.attributes.text_or("to", ""),
                                      op.attributes.text_or("whole", ""),
                                      op.row.windowed.empty() ? "" : to_string(op.attributes)};
  std::deque<Known>& alike = known_[&op.row];
  for (const Known& k : alike)
    if (k.ins == op.ins && k.outs == op.outs && std::ranges::equal(k.have, have) && k.absent == op.absent &&
        k.texts == texts)
      return k.choice;
  alike.push_back({.texts = std::move(texts),
                   .ins = op.ins,
                   .outs = op.outs,
                   .absent = op.absent,
                   .have = {have.begin(), have.end()},
                   .choice = choose(op, have, plan_)});
  return alike.back().choice;
}

}  // namespace kintsugi::lower
