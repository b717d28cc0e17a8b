// The layouts and pipelines of small models that are compared with one rank, and whose programs are compared between
// versions (dump_programs).
#pragma once

#include <string>
#include <vector>

#include "tests/layouts.h"

namespace kintsugi::tests {

// Models whose sizes divide, and models whose sizes do not.
inline config::Settings layout_model(const std::string& name, const std::string& dtype) {
  config::Settings s = small_model(name.substr(0, name.find('-')), dtype);
  s.model.dropout = 0.2;
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.train.steps = 20;
  if (name.ends_with("-even")) {
    s.model.vocab = 64;
    s.model.embed = 32;
    s.model.heads = 4;
    s.model.kv_heads = 4;
    s.model.ffn = 48;
  } else if (name.ends_with("-three")) {  // 3 key-value heads of 2 query heads each; a vocabulary of 65
    s.model.heads = 6;
    s.model.kv_heads = 3;
    s.model.ffn = 33;
    s.train.sequence = 7;
  } else if (name.ends_with("-one")) {  // one key-value head for all
    s.model.kv_heads = 1;
  }
  return s;
}

inline const std::vector<ModelLayout>& all_layouts() {
  static const std::vector<ModelLayout> list = {
      {"gpt", "data=2"},
      {"gpt", "data=4"},
      {"gpt", "data=2 zero=1"},
      {"gpt", "data=4 zero=1"},
      {"gpt", "data=2 zero=2"},
      {"gpt", "data=4 zero=2"},
      {"gpt", "data=2 zero=3"},
      {"gpt", "data=4 zero=3"},
      {"gpt", "data=4 zero=3 shard_group=2"},
      {"gpt", "data=4 zero=1 shard_group=2"},
      {"gpt", "tensor=2"},
      {"gpt", "tensor=2 keep_logits=false"},
      {"gpt", "tensor=4"},
      {"gpt-even", "tensor=4"},
      {"gpt", "tensor=2 sequence_parallel"},
      {"gpt", "tensor=2 sequence_parallel keep_gathered"},
      {"gpt", "tensor=4 sequence_parallel"},
      {"gpt-even", "tensor=4 sequence_parallel"},
      {"gpt", "context=2"},
      {"gpt", "context=4"},
      {"gpt", "context=2 balance=contiguous"},
      {"gpt", "context=2 method=ring"},
      {"gpt", "context=4 method=ring balance=contiguous"},
      {"gpt", "context=2 method=ulysses"},
      {"gpt-even", "context=4 method=ulysses"},
      {"gpt-three", "tensor=2"},
      {"gpt-three", "tensor=4"},
      {"gpt-three", "tensor=2 sequence_parallel"},
      {"gpt-three", "context=2"},
      {"gpt-three", "context=2 method=ring"},
      {"gpt-three", "data=4 zero=3"},
      {"gpt-one", "tensor=2"},
      {"gpt-one", "tensor=4"},
      {"gpt-one", "context=2 method=ulysses"},
      {"gpt-one", "tensor=2 context=2 method=ring"},
      {"gpt", "data=2 tensor=2"},
      {"gpt", "data=2 tensor=2 zero=3"},
      {"gpt", "data=2 tensor=2 zero=2 sequence_parallel"},
      {"gpt", "data=4 tensor=2 zero=3 sequence_parallel"},
      {"gpt", "data=2 context=2 zero=1"},
      {"gpt", "data=2 context=2 zero=3 shard_context"},
      {"gpt", "data=2 context=2 zero=2 method=ring"},
      {"gpt", "tensor=2 context=2"},
      {"gpt", "tensor=2 context=2 sequence_parallel method=ulysses"},
      {"gpt", "tensor=2 context=2 sequence_parallel method=ring"},
      {"gpt", "data=2 tensor=2 context=2 zero=1 sequence_parallel"},
      {"gpt", "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ulysses"},
      {"gpt-three", "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ulysses"},
      {"llama", "data=2 zero=3"},
      {"llama", "tensor=2"},
      {"llama", "tensor=4 sequence_parallel"},
      {"llama-three", "tensor=2 sequence_parallel"},
      {"llama", "context=2 method=ring"},
      {"llama", "context=2 method=ulysses"},
      {"llama", "data=2 tensor=2 zero=2"},
      {"llama", "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ring"},
      {"llama-three", "data=2 tensor=2 context=2 zero=2"},
      {"llama-one", "data=2 tensor=4 zero=1 sequence_parallel"},
      {"bert", "data=4 zero=3"},
      {"bert", "tensor=2"},
      {"bert", "tensor=2 sequence_parallel"},
      {"bert", "context=2"},
      {"bert", "context=2 method=ring"},
      {"bert", "context=2 method=ulysses"},
      {"bert:masked", "data=2 tensor=2 context=2 zero=3 sequence_parallel"},
      {"bert:classes", "tensor=2"},
      {"bert:classes", "data=2 context=2 zero=2"},
      {"bert:numbers", "tensor=2 context=2 sequence_parallel method=ring"},
      {"mlp", "data=4 zero=3"},
      {"mlp", "tensor=2"},
      {"mlp:classes", "data=2 tensor=2 zero=1"},
      {"lenet", "data=4 zero=3"},
      {"lenet", "tensor=2"},
      {"lenet", "space=2"},
      {"lenet", "data=2 space=2 zero=2"},
      {"lenet", "tensor=2 space=2"},
  };
  return list;
}

// "-deep": 8 layers. "-plain": no dropout.
inline config::Settings pipeline_model(const std::string& name, const std::string& dtype) {
  config::Settings s = small_model(name.substr(0, name.find('-')), dtype);
  s.model.layers = name.ends_with("-deep") ? 8 : 4;
  s.model.dropout = name.ends_with("-plain") ? 0.0 : 0.2;
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 2;
  s.train.steps = 20;
  return s;
}

inline const std::vector<ModelLayout>& all_pipelines() {
  static const std::vector<ModelLayout> list = {
      {"bert", "pipe=2 schedule=zero_bubble"},
      {"bert:classes", "pipe=2 tensor=2 sequence_parallel"},
      {"mlp", "pipe=2 data=2 schedule=interleaved chunks=2"},
      {"lenet", "pipe=2 data=2 zero=1"},
      {"lenet", "pipe=2 space=2"},
      {"gpt", "pipe=2 schedule=gpipe"},
      {"gpt", "pipe=2"},
      {"gpt", "pipe=2 schedule=interleaved chunks=2"},
      {"gpt", "pipe=2 schedule=zero_bubble"},
      {"gpt", "pipe=4 schedule=gpipe"},
      {"gpt", "pipe=4"},
      {"gpt", "pipe=4 schedule=zero_bubble"},
      {"gpt-deep", "pipe=4 schedule=interleaved chunks=2"},
      {"llama", "pipe=2 schedule=gpipe"},
      {"llama", "pipe=2"},
      {"llama", "pipe=2 schedule=interleaved chunks=2"},
      {"llama", "pipe=4 schedule=zero_bubble"},
      {"gpt-plain", "pipe=2 schedule=zero_bubble"},
      {"llama-plain", "pipe=4 schedule=zero_bubble"},
      {"gpt-plain", "pipe=2 schedule=interleaved chunks=2"},
      {"llama-plain", "pipe=2 tensor=2 sequence_parallel schedule=zero_bubble"},
      {"gpt-plain", "pipe=2 data=2 zero=3 schedule=zero_bubble recompute=full"},
      {"gpt", "pipe=2 stages=1,3"},
      {"gpt", "pipe=2 recompute=full"},
      {"llama", "pipe=2 recompute=selective schedule=zero_bubble"},
      {"llama", "pipe=4 recompute=full schedule=zero_bubble"},
      {"gpt", "pipe=2 tensor=2 sequence_parallel recompute=full every=2 schedule=interleaved chunks=2"},
      {"gpt", "pipe=2 data=2 zero=3 recompute=full"},
      {"gpt", "pipe=2 schedule=interleaved chunks=2 stages=1,1,1,1"},
      {"gpt", "pipe=2 data=2"},
      {"gpt", "pipe=2 data=2 zero=1"},
      {"gpt", "pipe=2 data=2 zero=2 schedule=zero_bubble"},
      {"gpt", "pipe=2 data=2 zero=3"},
      {"gpt", "pipe=2 data=2 zero=3 schedule=interleaved chunks=2"},
      {"llama", "pipe=4 data=2 zero=1"},
      {"gpt", "pipe=2 tensor=2"},
      {"gpt", "pipe=2 tensor=2 sequence_parallel"},
      {"llama", "pipe=2 tensor=2 sequence_parallel schedule=zero_bubble"},
      {"gpt", "pipe=4 tensor=2 schedule=gpipe"},
      {"gpt-deep", "pipe=4 tensor=2 sequence_parallel schedule=interleaved chunks=2"},
      {"gpt", "pipe=2 context=2"},
      {"gpt", "pipe=2 context=2 method=ring"},
      {"llama", "pipe=2 context=2 method=ulysses schedule=zero_bubble"},
      {"gpt", "pipe=2 data=2 tensor=2 zero=1 sequence_parallel"},
      {"gpt", "pipe=2 data=2 tensor=2 zero=3"},
      {"llama", "pipe=2 data=2 context=2 zero=2 method=ring"},
      {"llama", "pipe=2 data=2 tensor=2 zero=3 sequence_parallel schedule=interleaved chunks=2"},
  };
  return list;
}

}  // namespace kintsugi::tests
