// The parameters of a model, counted from its states, independently of the code that makes buckets.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/models/step.h"
#include "tests/small_model.h"

namespace kintsugi::tests {

// GPT-2 124M (Radford et al. 2019), to compile, not to run.
inline config::Settings gpt2() {
  config::Settings s = small_model("gpt", "fp32");
  s.model.layers = 12;
  s.model.embed = 768;
  s.model.heads = s.model.kv_heads = 12;
  s.model.ffn = 3072;
  s.model.vocab = 50257;
  s.model.context = s.train.sequence = 1024;
  s.train.micro_batch = 1;
  return s;
}

constexpr int64_t kBlock = 1024;  // elements; each parameter begins at a multiple of it

inline int64_t round_up(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Parameters of one layer in one bucket; one that two layers use is separate.
struct ParameterGroup {
  int layer = 0;
  std::vector<int64_t> sizes = {};  // elements
  bool unread = false;              // the backward pass has no use for any of them
  int forward_uses = 1;             // layers that read them for the loss
  bool with_gradient = false;       // one of those reads is of the loss and its gradient at one time

  int64_t elements() const {
    int64_t sum = 0;
    for (int64_t n : sizes) sum += n;
    return sum;
  }
  // Elements stored by `parts` ranks: the end of the last parameter is rounded up too.
  int64_t stored(int64_t parts) const {
    int64_t length = 0;
    for (int64_t n : sizes) length = round_up(length, kBlock) + n;
    return round_up(length, kBlock * parts);
  }
};

// Groups of a model whose parameters no rule splits.
inline std::vector<ParameterGroup> parameter_groups(const config::Settings& s) {
  const models::Graphs graphs = models::build_training(s);
  std::map<graph::StateId, std::set<int>> layers;
  graph::StateId table = graph::kNone;
  for (const graph::Op& op : graphs.micro->ops()) {
    if (op.kind() == "state" && op.phase == graph::Phase::forward) layers[op.state].insert(op.layer);
    if (op.kind() == "head") table = graphs.micro->op_at(static_cast<size_t>(graphs.micro->value(op.ins[1]).op)).state;
  }
  std::vector<ParameterGroup> groups;
  std::map<std::pair<int, bool>, size_t> known;  // (layer, decay)
  for (size_t i = 0; i < graphs.states->size(); ++i) {
    const graph::State& state = (*graphs.states)[static_cast<graph::StateId>(i)];
    if (state.kind != graph::StateKind::weight) continue;
    const auto uses = static_cast<int>(layers.at(static_cast<graph::StateId>(i)).size());
    auto at = known.find({state.layer, state.decay});
    if (uses > 1 || at == known.end()) {
      if (uses == 1) at = known.emplace(std::pair(state.layer, state.decay), groups.size()).first;
      groups.push_back({.layer = state.layer, .forward_uses = uses});
      // Before the first layer only rows of a table are looked up, and their gradient does not need them.
      groups.back().unread = state.layer < 0 && uses == 1;
      // The head's table, if no rule splits its vocabulary.
      groups.back().with_gradient = static_cast<graph::StateId>(i) == table;
    }
    groups[uses > 1 ? groups.size() - 1 : at->second].sizes.push_back(state.type.shape.elements());
  }
  return groups;
}

}  // namespace kintsugi::tests
