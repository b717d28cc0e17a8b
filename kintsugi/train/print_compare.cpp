#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kintsugi/base/format.h"
#include "kintsugi/train/compare.h"

namespace kintsugi::train {
namespace {

std::string ranks_of(const Comparison& c) {
  return fmt::format("{} rank{}", c.ranks, c.ranks == 1 ? "" : "s");
}

// 0, 3.1e-17
std::string small(double x) {
  return x == 0 ? "0" : fmt::format("{:.2g}", x);
}

double relative(const Difference& d) {
  return d.scale > 0 ? d.size() / d.scale : d.size();
}

double share(const Difference& d) {
  return d.size() == 0 ? 0 : d.limit > 0 ? d.size() / d.limit : d.size() / 0.0;
}

void keep_largest(const Difference*& kept, const Difference& d) {
  if (!kept || share(d) > share(*kept)) kept = &d;
}

std::string by_step(const Comparison& c) {
  std::string text = fmt::format("step  {:>16}  {:>16}  {:>10}  {:>10}  {:>10}\n", "loss, " + ranks_of(c), "one rank",
                                 "difference", "gradients", "weights");
  for (int64_t step = 0; step <= c.steps; ++step) {
    const Difference *loss = nullptr, *gradient = nullptr, *weight = nullptr;
    for (const Difference& d : c.differences) {
      if (d.step != step) continue;
      switch (d.what) {
        case Compared::loss:
          loss = &d;
          break;
        case Compared::gradient:
          keep_largest(gradient, d);
          break;
        case Compared::weight:
          keep_largest(weight, d);
          break;
      }
    }
    text += fmt::format("{:4}  {:>16}  {:>16}  {:>10}  {:>10}  {:>10}\n", step,
                        loss ? fmt::format("{:.12g}", loss->value) : "", loss ? fmt::format("{:.12g}", loss->twin) : "",
                        loss ? small(relative(*loss)) : "",
                        gradient   ? small(relative(*gradient))
                        : step > 0 ? "overflow"
                                   : "",
                        weight ? small(share(*weight)) : "");
  }
  return text;
}

std::string by_name(const Comparison& c) {
  struct Row {
    int layer = 0;
    std::string name;
    const Difference *gradient = nullptr, *weight = nullptr;
  };
  std::vector<Row> rows;
  std::map<std::string, size_t> known;
  size_t width = 4;
  for (const Difference& d : c.differences) {
    if (d.what == Compared::loss) continue;
    const size_t at = known.try_emplace(d.name, rows.size()).first->second;
    if (at == rows.size()) rows.push_back({.layer = d.layer, .name = d.name});
    keep_largest(d.what == Compared::weight ? rows[at].weight : rows[at].gradient, d);
    width = std::max(width, d.name.size());
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.layer < b.layer; });
  std::string text = fmt::format("layer  {:{}}  {:>10}  {:>10}\n", "name", width, "gradient", "weight");
  for (const Row& r : rows)
    text += fmt::format("{:5}  {:{}}  {:>10}  {:>10}{}\n", r.layer, r.name, width,
                        r.gradient ? small(relative(*r.gradient)) : "", r.weight ? small(share(*r.weight)) : "",
                        (r.gradient && !r.gradient->within()) || (r.weight && !r.weight->within()) ? "  differs" : "");
  return text;
}

std::string what_of(const Difference& d) {
  if (d.what == Compared::loss) return "the loss";
  return fmt::format("{} of {}{}", name_of(d.what), d.name, d.element == "[]" ? "" : d.element);
}

std::string verdict(const Comparison& c) {
  const Difference* d = c.first();
  if (!d)
    return fmt::format("the same: {}, {} ({})\n", base::counted(c.steps, "step"), base::counted(c.ranks, "rank"),
                       c.mesh);
  const auto alike = [&](bool within) {
    return std::count_if(c.differences.begin(), c.differences.end(), [&](const Difference& e) {
      return e.step == d->step && e.what == d->what && (within || !e.within());
    });
  };
  std::string of_all;
  if (d->what != Compared::loss)
    of_all = fmt::format("; {} of {} {}s differ there", alike(false), alike(true), name_of(d->what));
  return fmt::format("first difference: {}, {}: {:.9g} on {}, {:.9g} on one rank; limit {:.2g}{}\n",
                     d->step == 0 ? "before the first step" : fmt::format("step {}", d->step), what_of(*d), d->value,
                     d->what == Compared::loss ? ranks_of(c) : fmt::format("rank {}", d->rank), d->twin, d->limit,
                     of_all);
}

}  // namespace

std::string_view name_of(Compared what) {
  switch (what) {
    case Compared::loss:
      return "loss";
    case Compared::gradient:
      return "gradient";
    case Compared::weight:
      return "weight";
  }
  return "";
}

std::string print(const Comparison& c) {
  return by_step(c) + "\n" + by_name(c) + "\n" + verdict(c);
}

std::string print_csv(const Comparison& c) {
  std::string text = "step,what,layer,name,element,rank,value,one_rank,difference,limit,scale\n";
  for (const Difference& d : c.differences)
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", d.step, name_of(d.what), d.layer, d.name, d.element,
                        d.rank, d.value, d.twin, d.size(), d.limit, d.scale);
  return text;
}

}  // namespace kintsugi::train
