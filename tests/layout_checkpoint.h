// A small model with random weights as a checkpoint, and ranks that are threads over it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "kintsugi/checkpoint/states.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "tests/layouts.h"
#include "tests/process.h"

namespace kintsugi::tests {

// "gpt": 4 heads over 2 of keys; "gpt-odd": 3 of each, which no 2 ranks divide. The vocabulary of 65 is padded by any
// split. Weights are large enough to separate logits.
inline config::Settings checkpoint_settings(const std::string& name) {
  config::Settings s = small_model(name.substr(0, name.find('-')), "fp32");
  s.model.layers = 4;
  if (name.ends_with("-odd")) s.model.heads = s.model.kv_heads = 3;
  config::Model& m = s.model;
  if (m.experts > 0) {
    m.experts = 4, m.experts_per_token = 2;
    s.train.balance = m.router_bias ? "bias" : "loss";
  }
  if (m.kv_rank > 0) {
    m.kv_heads = m.heads;
    m.kv_rank = 7, m.query_rank = 9, m.head_dim = 6, m.rotary_head_dim = 4, m.value_head_dim = 5;
    m.expert_groups = 2, m.groups_per_token = 1;
  }
  s.parallel.device = "cpu";
  s.train.sequence = 8;
  s.data.reset_at_document = true;
  return s;
}

inline fs::path save_checkpoint(const std::string& name, const fs::path& folder) {
  const config::Settings s = checkpoint_settings(name);
  const auto kernels = compile::kernels_of(s);
  base::ThreadTeam team(1);
  const models::Graphs graphs = models::build_generation(s, 1, 4, 16);
  run::Executor executor(
      compile::only_stage(compile::compile({.settings = s, .kernels = *kernels, .graphs = &graphs, .threads = 1})),
      *kernels, team);
  executor.initialize(3);
  for (const program::StateInfo& info : executor.program().states)
    if (info.kind == program::StateKind::weight && info.init.kind == tensor::Init::Kind::normal) {
      std::vector<double> x = values(executor.state(info.name));
      for (double& e : x) e *= info.layer < 0 ? 8 : 30;
      put(executor.state(info.name), x);
    }
  const config::Resolved config{config::Given{s, std::vector<config::Origin>(config::keys().size())}, {}};
  return checkpoint::save_states(executor, folder / name, 1,
                                 {.state = "{}", .config = config::to_toml(config), .tokenizer = ""});
}

// Calls f(model) on each rank of a layout ("pipe=2 tensor=2"), in a dtype; empty: the checkpoint's.
inline void on_layout(const fs::path& checkpoint, const std::string& layout,
                      const std::function<void(evaluate::CheckpointModel&)>& f, const std::string& dtype = "") {
  config::Settings s;
  set_layout(s, layout);
  s.parallel.threads = 1;
  const auto worlds = comm::thread_worlds(static_cast<int>(s.parallel.ranks), {.time_limit = std::chrono::seconds(60)});
  comm::run_ranks(worlds, [&](comm::World& world) {
    evaluate::CheckpointModel model(checkpoint, s.parallel, world, dtype);
    f(model);
  });
}

}  // namespace kintsugi::tests
