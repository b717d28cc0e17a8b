#include "kintsugi/graph/op_row.h"

#include "kintsugi/base/error.h"

namespace kintsugi::graph {

Cost cost(const OpRow& row, Types ins, Types outs, const tensor::Attributes& attributes) {
  Cost c;
  if (row.view) return c;
  for (const tensor::Type& t : ins) c.memory_bytes += static_cast<double>(t.bytes());
  for (const tensor::Type& t : outs) c.memory_bytes += static_cast<double>(t.bytes());
  if (row.flops) {
    c.flops = row.flops(ins, outs, attributes);
  } else if (!outs.empty()) {
    c.flops = static_cast<double>(outs[0].shape.elements());
  }
  return c;
}

OpTable::OpTable(std::vector<OpRow> rows) : rows_(std::move(rows)) {}

const OpRow& OpTable::find(std::string_view kind) const {
  for (const OpRow& row : rows_)
    if (row.kind == kind) return row;
  throw base::InternalError("graph", "no operation \"{}\"", kind);
}

}  // namespace kintsugi::graph
