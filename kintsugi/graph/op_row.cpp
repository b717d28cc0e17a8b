#include "kintsugi/graph/op_row.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::graph {

const tensor::Type& Types::operator[](std::string_view name) const {
  const std::optional<size_t> place = names_.place(name, absent_);
  base::require(place && *place < there_.size(), "graph", "\"{}\" is absent", name);
  return there_[*place];
}

Combiner OpRow::combiner(std::string_view output) const {
  for (const auto& [name, combiner] : combine)
    if (name == output) return combiner;
  return Combiner::sum;
}

bool OpRow::is_windowed(std::string_view name) const {
  return std::find(windowed.begin(), windowed.end(), name) != windowed.end();
}

bool OpRow::can_accumulate(std::string_view output) const {
  return std::find(accumulates.begin(), accumulates.end(), output) != accumulates.end();
}

bool OpRow::can_narrow(std::string_view output) const {
  return std::find(narrows.begin(), narrows.end(), output) != narrows.end();
}

bool OpRow::may_share(std::string_view output, size_t input) const {
  return std::any_of(in_place.begin(), in_place.end(),
                     [&](const auto& pair) { return pair.first == output && ins.position(pair.second) == input; });
}

Cost cost(const OpRow& row, std::span<const tensor::Type> ins, std::span<const tensor::Type> outs,
          const tensor::Attributes& attributes, tensor::Absent absent) {
  Cost c = {.cost_class = row.cost_class};
  if (row.view) return c;
  const double filled = attributes.has("filled") ? attributes.number("filled") : 1.0;  // only slots in use are accessed
  const auto bytes = [&](const tensor::Type& t) {
    return static_cast<double>(t.bytes()) * (t.shape.has("slot") ? filled : 1.0);
  };
  for (const tensor::Type& t : ins) c.memory_bytes += bytes(t);
  for (const tensor::Type& t : outs) c.memory_bytes += bytes(t);
  if (row.flops) {
    c.flops = row.flops({row.ins, ins, absent.ins}, {row.outs, outs, absent.outs}, attributes);
  } else if (!outs.empty()) {
    c.flops = static_cast<double>(outs[0].shape.elements());
  }
  return c;
}

OpTable::OpTable(std::vector<OpRow> rows) : rows_(std::move(rows)) {
  for (size_t i = 0; i < rows_.size(); ++i) {
    const OpRow& row = rows_[i];
    base::require(by_kind_.emplace(row.kind, i).second, "graph", "{} occurs twice in the table", row.kind);
    const auto has = [&](const OperandList& list, std::string_view name) {
      base::require(list.has(name), "graph", "{} has no \"{}\" among {}", row.kind, name, to_string(list));
    };
    for (const auto& [output, input] : row.in_place) has(row.outs, output), has(row.ins, input);
    for (const auto& [output, combiner] : row.combine) has(row.outs, output);
    for (std::string_view output : row.accumulates) has(row.outs, output);
    for (std::string_view output : row.narrows) has(row.outs, output);
    for (std::string_view name : row.windowed)
      if (!row.ins.has(name)) has(row.outs, name);
    for (std::string_view output : row.made_together) has(row.outs, output);
  }
}

const OpRow& OpTable::find(std::string_view kind) const {
  const auto found = by_kind_.find(kind);
  base::require(found != by_kind_.end(), "graph", "no operation \"{}\"", kind);
  return rows_[found->second];
}

}  // namespace kintsugi::graph
