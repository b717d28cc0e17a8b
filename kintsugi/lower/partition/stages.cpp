#include "kintsugi/lower/partition/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "kintsugi/base/error.h"

namespace kintsugi::lower {

namespace {

int layers_of(std::span<const graph::Graph* const> graphs) {
  int most = 0;
  for (const graph::Graph* g : graphs)
    for (const graph::Op& op : g->ops()) most = std::max(most, op.layer);
  return most;  // the head's
}

}  // namespace

std::vector<double> layer_flops(const graph::Graph& g, int layers) {
  std::vector<double> costs(static_cast<size_t>(layers), 0);
  for (const graph::Op& op : g.ops()) {
    std::vector<tensor::Type> ins, outs;
    for (graph::ValueId v : op.ins) ins.push_back(g.type(v));
    for (graph::ValueId v : op.outs) outs.push_back(g.type(v));
    costs[static_cast<size_t>(std::clamp(op.layer, 0, layers - 1))] +=
        graph::cost(*op.row, ins, outs, op.attributes, op.absent).flops;
  }
  return costs;
}

// best[k][i] is the cost of the most expensive of k parts of the first i layers.
std::vector<int> balanced(const std::vector<double>& costs, int n) {
  const size_t layers = costs.size(), parts = static_cast<size_t>(n);
  std::vector<double> sum(layers + 1, 0);
  std::partial_sum(costs.begin(), costs.end(), sum.begin() + 1);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(parts + 1, std::vector<double>(layers + 1, kNever));
  std::vector<std::vector<size_t>> from(parts + 1, std::vector<size_t>(layers + 1, 0));
  best[0][0] = 0;
  for (size_t k = 1; k <= parts; ++k)
    for (size_t i = k; i <= layers; ++i)
      for (size_t j = k - 1; j < i; ++j) {
        const double cost = std::max(best[k - 1][j], sum[i] - sum[j]);
        if (cost < best[k][i]) {
          best[k][i] = cost;
          from[k][i] = j;
        }
      }
  std::vector<int> last(parts);
  for (size_t k = parts, i = layers; k > 0; i = from[k--][i]) last[k - 1] = static_cast<int>(i) - 1;
  return last;
}

namespace {

std::vector<int> listed(const std::vector<int64_t>& list, int chunks, int layers) {
  const std::string text = fmt::format("{}", fmt::join(list, " "));
  if (static_cast<int>(list.size()) != chunks)
    throw base::UserError("stages", "stages = \"{}\" lists {} parts; mesh axis \"pipe\" and chunks make {}", text,
                          list.size(), chunks);
  int64_t sum = 0;
  std::vector<int> last;
  for (int64_t n : list) {
    if (n < 1) throw base::UserError("stages", "stages = \"{}\" has a part of {} layers; each needs 1", text, n);
    last.push_back(static_cast<int>((sum += n) - 1));
  }
  if (sum < layers)
    throw base::UserError("stages", "stages = \"{}\" holds {} of {} layers: layer{} {} would be lost", text, sum,
                          layers, layers - sum == 1 ? "" : "s",
                          layers - sum == 1 ? fmt::format("{}", sum) : fmt::format("{} to {}", sum, layers - 1));
  if (sum > layers)
    throw base::UserError("stages", "stages = \"{}\" holds {} layers; the model has {}, and none may be held twice",
                          text, sum, layers);
  return last;
}

}  // namespace

int Stages::chunk(int layer) const {
  for (size_t c = 0; c < last.size(); ++c)
    if (layer <= last[c]) return static_cast<int>(c);
  return chunks() - 1;
}

Stages cut_layers(const plan::Plan& plan, std::span<const graph::Graph* const> graphs) {
  const int stages = plan.stages(), chunks = stages * plan.chunks, layers = layers_of(graphs);
  if (stages == 1) return {};
  if (chunks > layers)
    throw base::UserError("stages",
                          "mesh axis \"pipe\" of size {}{} asks for {} parts of {} layer{}; at most pipe = {}", stages,
                          plan.chunks > 1 ? fmt::format(" with chunks = {}", plan.chunks) : "", chunks, layers,
                          layers == 1 ? "" : "s", std::max(1, layers / plan.chunks));
  if (!plan.layers.empty()) return {stages, listed(plan.layers, chunks, layers)};
  return {stages, balanced(layer_flops(*graphs[0], layers), chunks)};
}

}  // namespace kintsugi::lower
