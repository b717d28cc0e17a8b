#include "kintsugi/lower/partition/conversion.h"

#include <algorithm>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/program/halo.h"

namespace kintsugi::lower {

using mesh::Combiner;
using mesh::Factor;
using mesh::Layout;

namespace {

size_t shared(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::vector<Factor> first(const std::vector<Factor>& list, size_t n) {
  return {list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n)};
}

std::vector<Factor> last(const std::vector<Factor>& list, size_t n) {
  return {list.end() - static_cast<std::ptrdiff_t>(n), list.end()};
}

Step next_step(const Layout& now, const Layout& goal) {
  Step s = {
      .move = Move::slice, .combiner = Combiner::sum, .factors = {}, .from = {}, .to = {}, .before = now, .after = now};
  std::set<std::string> dims;
  for (const auto* l : {&now, &goal})
    for (const mesh::Split& split : l->splits()) dims.insert(split.dim);
  std::vector<std::string> coming, leaving;
  for (const std::string& d : dims) {
    const size_t n = shared(now.of(d), goal.of(d));
    if (now.of(d).size() > n) leaving.push_back(d);
    if (now.of(d).size() == n && goal.of(d).size() > n) coming.push_back(d);
  }
  const auto next = [&](const std::string& d) { return goal.of(d)[now.of(d).size()]; };
  for (const std::string& d : coming) {
    const Factor f = next(d);
    if (now.part(f) || now.is_split(f)) continue;
    s.to = d;
    s.factors = {f};
    s.after.add(d, f);
    return s;
  }
  for (const std::string& d : coming) {
    const Factor f = next(d);
    if (!now.sums(f)) continue;
    s.move = Move::reduce_scatter;
    s.to = d;
    s.factors = {f};
    s.after.remove_part(f);
    s.after.add(d, f);
    return s;
  }
  for (const mesh::Part& p : now.partial()) {
    const bool waits = goal.is_split(p.factor) && p.combiner == Combiner::sum && !leaving.empty();
    if (goal.part(p.factor) || waits) continue;
    s.move = Move::all_reduce;
    s.combiner = p.combiner;
    s.factors = {p.factor};
    s.after.remove_part(p.factor);
    return s;
  }
  for (const std::string& d : leaving)
    for (const std::string& e : coming)
      for (size_t n = now.of(d).size() - shared(now.of(d), goal.of(d)); n > 0; --n) {
        const std::vector<Factor> moving = last(now.of(d), n), wanted = goal.of(e);
        const size_t at = now.of(e).size();
        if (wanted.size() < at + n ||
            !std::equal(moving.begin(), moving.end(), wanted.begin() + static_cast<std::ptrdiff_t>(at)))
          continue;
        s.move = Move::all_to_all;
        s.from = d;
        s.to = e;
        s.factors = moving;
        s.after.set(d, first(now.of(d), now.of(d).size() - n));
        s.after.set(e, first(wanted, at + n));
        return s;
      }
  base::require(!leaving.empty(), "partition", "no way from one layout to another");
  s.move = Move::all_gather;
  s.from = leaving.front();
  s.factors = last(now.of(s.from), 1);
  s.after.set(s.from, first(now.of(s.from), now.of(s.from).size() - 1));
  return s;
}

// Halos that are equal on both sides are kept.
bool same_halo(const Layout& a, const Layout& b, std::string_view dim) {
  return a.halo(dim) && b.halo(dim) && *a.halo(dim) == *b.halo(dim) && a.of(dim) == b.of(dim);
}

Step halo_step(Move move, const Layout& now, const mesh::Split& split) {
  Step s = {.move = move,
            .combiner = Combiner::sum,
            .factors = split.factors,
            .from = {},
            .to = {},
            .before = now,
            .after = now};
  (move == Move::halo ? s.to : s.from) = split.dim;
  if (move == Move::halo) {
    s.after.set(split.dim, split.factors, split.halo);
  } else {
    s.after.set(split.dim, split.factors);
  }
  return s;
}

std::vector<Step> conversion_of_halos(const Layout& now, const Layout& goal, bool one_by_one) {
  base::require(halos_allow(now, goal), "partition", "no way from one halo to another");
  std::vector<Step> steps;
  Layout at = now, plain = goal;
  for (const mesh::Split& s : now.splits()) {
    if (!s.halo || same_halo(now, goal, s.dim)) continue;
    steps.push_back(halo_step(Move::halo_sum, at, s));
    at = steps.back().after;
  }
  // A whole dim is cut including its halo in one step, without communication.
  const auto is_whole = [&](const mesh::Split& s) {
    return at.of(s.dim).empty() &&
           std::ranges::none_of(s.factors, [&](Factor f) { return at.is_split(f) || at.part(f); });
  };
  for (const mesh::Split& s : goal.splits()) {
    if (!s.halo) continue;
    if (is_whole(s)) {
      plain.set(s.dim, {});
    } else {
      plain.set(s.dim, s.factors);
    }
  }
  // Kept halos are hidden from the intermediate steps, none of which involves their dims.
  Layout hidden = at;
  for (const mesh::Split& s : at.splits())
    if (s.halo) hidden.set(s.dim, s.factors);
  for (Step& step : conversion(hidden, plain, one_by_one)) {
    for (const mesh::Split& s : at.splits())
      if (s.halo) step.before.set(s.dim, s.factors, s.halo), step.after.set(s.dim, s.factors, s.halo);
    steps.push_back(std::move(step));
  }
  Layout last = steps.empty() ? at : steps.back().after;
  for (const mesh::Split& s : goal.splits()) {
    if (!s.halo || same_halo(now, goal, s.dim)) continue;
    steps.push_back(halo_step(Move::halo, last, s));
    last = steps.back().after;
  }
  return steps;
}

}  // namespace

bool halos_allow(const Layout& now, const Layout& goal) {
  return std::ranges::all_of(
      now.splits(), [&](const mesh::Split& s) { return !s.halo || s.halo->adds || same_halo(now, goal, s.dim); });
}

program::Cuts halo_cuts(const tensor::Shape& whole, const Step& s) {
  const std::string& dim = s.move == Move::halo ? s.to : s.from;
  const mesh::Halo* halo = (s.move == Move::halo ? s.after : s.before).halo(dim);
  return {.dim = dim,
          .length = whole.size(dim),
          .factors = s.factors,
          .halo = *halo,
          .exchanges = !s.before.of(dim).empty()};
}

std::string_view name_of(Move move) {
  constexpr std::string_view names[] = {"slice",      "reduce_scatter", "all_reduce", "all_to_all",
                                        "all_gather", "halo",           "halo_sum"};
  return names[static_cast<size_t>(move)];
}

std::vector<Step> conversion(const Layout& now, const Layout& goal, bool one_by_one) {
  for (const mesh::Part& p : goal.partial())
    base::require(now.part(p.factor) && now.part(p.factor)->combiner == p.combiner, "partition",
                  "a whole value is needed as parts");
  std::vector<Step> steps;
  if (now == goal) return steps;
  if (now.has_halos() || goal.has_halos()) return conversion_of_halos(now, goal, one_by_one);
  for (Layout at = now; !(at == goal);) {
    Step s = next_step(at, goal);
    at = s.after;
    if (!steps.empty()) {
      Step& before = steps.back();
      const bool sums = s.move == Move::reduce_scatter || s.move == Move::all_reduce;
      if (!(sums && one_by_one) && before.move == s.move && before.combiner == s.combiner && before.from == s.from &&
          before.to == s.to && s.move != Move::all_to_all) {
        // Gathering undoes the last cut first.
        before.factors.insert(s.move == Move::all_gather ? before.factors.begin() : before.factors.end(),
                              s.factors.begin(), s.factors.end());
        before.after = s.after;
        continue;
      }
    }
    steps.push_back(std::move(s));
  }
  return steps;
}

double traffic(const mesh::Mesh& mesh, const tensor::Shape& whole, const Step& s) {
  const auto n = static_cast<double>(mesh.count(s.factors));
  if (s.move == Move::slice) return 0;
  if (s.move == Move::halo || s.move == Move::halo_sum) {
    const tensor::Shape block = mesh::local_shape(mesh, whole, s.before);
    const program::Cuts cuts = halo_cuts(whole, s);
    if (!cuts.exchanges) return 0;
    const int64_t rows = program::halo_sizes(mesh, cuts).sent;
    return static_cast<double>(program::packed_shape(block, cuts.dim, rows).elements());
  }
  const Layout& held = s.move == Move::all_gather ? s.after : s.before;
  const auto elements = static_cast<double>(mesh::local_shape(mesh, whole, held).elements());
  return elements * (n - 1) / n * (s.move == Move::all_reduce ? 2 : 1);
}

}  // namespace kintsugi::lower
