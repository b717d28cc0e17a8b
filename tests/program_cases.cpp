#include "tests/program_cases.h"

#include <fmt/format.h>

#include <tuple>

#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/models/models.h"
#include "kintsugi/plan/schedule.h"
#include "tests/layout_checkpoint.h"
#include "tests/layout_lists.h"
#include "tests/parameters.h"
#include "tests/program_words.h"
#include "tests/random_plan.h"

namespace kintsugi::tests {
namespace {

using Cases = std::vector<TrainingCase>;
using Words = std::vector<std::string>;

const Words kFamilies = {"gpt", "llama"};

// The layout in which ranks share the samples of a pass.
config::Settings with(config::Settings s, const std::string& layout) {
  set_layout(s, layout);
  s.train.micro_batch /= s.parallel.data;
  return s;
}

void add(Cases& all, const std::string& name, const config::Settings& s) {
  all.push_back({.name = name, .settings = s});
}

void add_lists(Cases& all) {
  const std::pair<const char*, const char*> forms[] = {{"fp32", "reference"}, {"bf16", "cpu"}};
  const auto list = [&](const std::string& of, ModelOf model, const std::vector<ModelLayout>& layouts) {
    for (const auto& [dtype, kernels] : forms)
      for (const ModelLayout& l : layouts) {
        config::Settings s = model(l.model, dtype);
        s.parallel.device = kernels;
        add(all, fmt::format("{}/{} {} {} {}", of, l.model, l.parallel, dtype, kernels), with(s, l.parallel));
      }
  };
  list("layouts", layout_model, all_layouts());
  list("pipelines", pipeline_model, all_pipelines());
}

void add_random(Cases& all) {
  for (uint64_t seed = 0; seed < 60; ++seed)
    all.push_back({.name = fmt::format("random/{}", seed), .settings = random_model(seed), .plan = random_plan(seed)});
  for (uint64_t seed = 0; seed < 60; ++seed) {
    config::Settings s = staged_model(seed);
    s.parallel.recompute = random_recompute(seed);
    all.push_back(
        {.name = fmt::format("random_stages/{}", seed), .settings = s, .plan = in_stages(random_plan(seed), seed)});
  }
}

// As in offload_test.
void add_offload(Cases& all) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"gpt", "fp32", ""},
      {"llama", "bf16", "recompute=full"},
      {"llama", "fp32", "data=2 zero=1"},
      {"gpt", "bf16", "data=2 zero=3"},
      {"llama", "bf16", "pipe=2"},
      {"gpt", "fp32", "tensor=2"},
      {"gpt", "fp32", "pipe=2 schedule=gpipe"},
      {"gpt", "fp32", "pipe=2 schedule=interleaved chunks=2"},
      {"llama", "fp32", "pipe=2 schedule=zero_bubble recompute=full"},
      {"llama", "fp32", "pipe=4"},
      {"gpt", "bf16", "data=2 tensor=2 zero=2"}};
  for (const char* offload : {"none", "optimizer", "activations", "all"}) {
    for (const auto& [family, dtype, layout] : cases) {
      config::Settings s = with(offload_model(family, dtype), layout);
      s.parallel.offload = offload;
      add(all, fmt::format("offload/{} {} {} {}", offload, family, dtype, layout), s);
    }
    for (const char* dtype : {"fp32", "bf16"}) {
      config::Settings s = offload_model("gpt", dtype);
      s.model.layers = 1;
      s.model.vocab = 9001;
      s.train.sequence = s.model.context = 8;
      s.train.micro_batch = 1;
      s.train.global_batch = 2;
      s.parallel.threads = 2;
      s.parallel.offload = offload;
      add(all, fmt::format("offload/{} pieces {}", offload, dtype), s);
    }
  }
}

// As in recompute_test.
void add_recompute(Cases& all) {
  const Words ways = {"recompute=selective", "recompute=full", "recompute=full every=2", "recompute=selective every=2"};
  for (const std::string& family : kFamilies)
    for (const std::string& way : ways) {
      for (const char* dtype : {"fp32", "bf16"})
        for (const char* kernels : {"reference", "cpu"}) {
          config::Settings s = small_model(family, dtype);
          s.model.layers = 3;
          s.parallel.device = kernels;
          s.data.reset_at_document = family == "llama";
          add(all, fmt::format("recompute/{} {} {} {}", family, dtype, kernels, way), with(s, way));
        }
      for (const char* layout :
           {"data=2", "data=4 zero=3", "tensor=2", "tensor=4", "tensor=2 sequence_parallel",
            "tensor=2 sequence_parallel keep_gathered", "context=2 method=ring", "context=2 method=ulysses",
            "data=2 tensor=2 zero=2", "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ulysses"}) {
        config::Settings s = small_model(family, "fp32");
        s.model.layers = 3;
        s.parallel.device = "cpu";
        s.train.sequence = 8;
        s.train.micro_batch = 4;
        s.train.global_batch = 8;
        add(all, fmt::format("recompute/{} {} {}", family, layout, way), with(s, layout + (" " + way)));
      }
    }
}

// Units of a batch, as in bits_test, and gradients communicated in bf16.
void add_units_and_wire(Cases& all) {
  for (const std::string& family : kFamilies)
    for (const char* dtype : {"fp32", "bf16"})
      for (const char* layout : {"", "data=2", "data=4 zero=1", "data=8 zero=2", "data=2 zero=3", "pipe=2",
                                 "pipe=2 schedule=gpipe", "pipe=2 data=2 zero=1 schedule=zero_bubble",
                                 "pipe=2 data=4 zero=3", "pipe=2 data=2 zero=2 recompute=full"}) {
        config::Settings s = small_model(family, dtype);
        s.parallel.device = "cpu";
        s.train.reproducible = 8;
        s.train.global_batch = 16;
        set_layout(s, layout);
        add(all, fmt::format("units/{} {} {}", family, dtype, layout), s);
      }
  for (const char* layout : {"data=2", "data=2 zero=2", "data=4 zero=1", "data=4 zero=3", "data=2 tensor=2 zero=2",
                             "pipe=2 data=2 zero=2", "context=2 shard_context zero=3"}) {
    config::Settings s = small_model("gpt", "fp32");
    s.parallel.device = "cpu";
    s.train.sequence = 8;
    s.train.micro_batch = 4;
    s.train.global_batch = 8;
    s = with(s, layout);
    s.parallel.wire = "bf16";
    add(all, fmt::format("wire/gpt fp32 {}", layout), s);
  }
}

// As in compare_test, plan_verb_test and checkpoint_layouts_test.
void add_others(Cases& all) {
  const std::tuple<const char*, const char*, const char*> compared[] = {
      {"gpt", "fp64", "data=2"},
      {"llama", "fp64", "data=2 tensor=2 zero=3"},
      {"gpt", "fp32", "data=4 zero=2"},
      {"gpt", "fp32", "tensor=2 sequence_parallel"},
      {"llama", "fp32", "context=2 method=ring"},
      {"gpt", "bf16", "data=2 tensor=2 zero=1"},
      {"llama", "bf16", "context=2 method=ulysses"},
      {"gpt", "fp16", "data=2 tensor=2 zero=2"},
      {"llama", "fp16", "pipe=2 schedule=zero_bubble"},
      {"llama", "fp16", "data=4 zero=3"}};
  for (const auto& [family, dtype, layout] : compared) {
    config::Settings s = small_model(family, dtype);
    s.model.context = s.train.sequence = 8;
    s.train.global_batch = 8;
    s.train.micro_batch = 4;
    s.parallel.device = std::string(dtype) == "fp64" ? "reference" : "cpu";
    s.data.reset_at_document = true;
    add(all, fmt::format("compare/{} {} {}", family, dtype, layout), with(s, layout));
  }
  for (const std::string& family : kFamilies)
    for (const char* layout :
         {"", "data=2", "data=4 zero=1", "data=4 zero=2", "data=4 zero=3", "tensor=2", "tensor=2 sequence_parallel",
          "context=2", "context=2 method=ring", "recompute=full", "pipe=2", "pipe=4", "pipe=2 schedule=gpipe",
          "pipe=2 schedule=interleaved chunks=2", "pipe=2 data=2 zero=3",
          "pipe=2 data=2 tensor=2 zero=1 sequence_parallel", "pipe=2 recompute=selective"}) {
      config::Settings s = small_model(family, "fp32");
      s.model.layers = 4;
      s.model.context = s.train.sequence = 8;
      s.train.global_batch = 8;
      s.train.micro_batch = 1;
      set_layout(s, layout);
      add(all, fmt::format("plan/{} {}", family, layout), s);
    }
  for (const std::string& family : kFamilies)
    for (const char* dtype : {"fp64", "bf16", "fp16"})
      for (const char* layout :
           {"data=2 tensor=2", "tensor=4", "data=4 zero=3", "data=3 zero=1", "data=2 tensor=2 zero=2 sequence_parallel",
            "data=2 context=2 zero=3 shard_context", "data=1"}) {
        config::Settings s = small_model(family, dtype);
        s.model.heads = 6;
        s.model.kv_heads = 3;
        s.model.ffn = 33;
        s.train.global_batch = 24;
        set_layout(s, layout);
        s.train.micro_batch = 12 / s.parallel.data;
        if (std::string(dtype) != "fp64") s.parallel.device = "cpu";
        add(all, fmt::format("checkpoint/{} {} {}", family, dtype, layout), s);
      }
}

// Other keys of models and steps, and user-defined rules.
void add_settings(Cases& all) {
  const std::vector<std::pair<const char*, std::function<void(config::Settings&)>>> changes = {
      {"sgd", [](config::Settings& s) { s.train.optimizer = "sgd"; }},
      {"no clip", [](config::Settings& s) { s.train.clip = 0; }},
      {"tied", [](config::Settings& s) { s.model.tied = true; }},
      {"untied", [](config::Settings& s) { s.model.tied = false; }},
      {"bias", [](config::Settings& s) { config::set_biases(s.model, true); }},
      {"no bias", [](config::Settings& s) { config::set_biases(s.model, false); }},
      {"relu", [](config::Settings& s) { s.model.activation = "relu"; }},
      {"gelu", [](config::Settings& s) { s.model.activation = "gelu"; }},
      {"no dropout", [](config::Settings& s) { s.model.dropout = 0; }},
      {"documents", [](config::Settings& s) { s.data.reset_at_document = true; }},
      {"one micro-batch", [](config::Settings& s) { s.train.micro_batch = s.train.global_batch; }},
      {"two threads", [](config::Settings& s) { s.parallel.threads = 2; }},
      {"rule of embed", [](config::Settings& s) { s.parallel.rules = {"embed in contract -> tensor"}; }},
      {"rule of seq", [](config::Settings& s) { s.parallel.rules = {"seq in add -> tensor, padded"}; }},
      {"mesh order", [](config::Settings& s) { s.parallel.mesh_order = "tensor context data pipe"; }},
      {"allow repeat",
       [](config::Settings& s) {
         s.parallel.rules = {"ffn -> data"};
         s.parallel.allow_repeat = true;
       }},
  };
  for (const std::string& family : kFamilies)
    for (const auto& [name, change] : changes)
      for (const char* layout :
           {"", "data=2 tensor=2 zero=3", "pipe=2 tensor=2 sequence_parallel", "data=2 context=2 zero=2 method=ring"}) {
        config::Settings s = small_model(family, "fp32");
        s.parallel.device = "cpu";
        s.train.sequence = 8;
        s.train.micro_batch = 4;
        s.train.global_batch = 8;
        change(s);
        add(all, fmt::format("settings/{} {} {}", family, name, layout), with(s, layout));
      }
}

// Every schedule with 2, 4 and 8 stages and 1, 4, 8 and 32 micro-batches, where it supports them, as in bubble_test.
void add_schedules(Cases& all) {
  const auto schedule = [&](std::string_view name, int stages, int chunks, int64_t micro_batches) {
    config::Settings s = small_model("gpt", "fp32");
    s.model.layers = stages * chunks;
    s.model.context = s.train.sequence = 8;
    set_layout(s, fmt::format("pipe={} schedule={} chunks={}", stages, name, chunks));
    s.train.global_batch = micro_batches * s.train.micro_batch;
    all.push_back(
        {.name = fmt::format("schedules/{} {} stages {} chunks {} micro-batches", name, stages, chunks, micro_batches),
         .settings = s,
         .small = stages < 8 && micro_batches < 32});
  };
  for (std::string_view name : plan::schedule_names())
    for (int stages : {2, 4, 8})
      for (int64_t m : {1, 4, 8, 32}) {
        if (name != "interleaved") schedule(name, stages, 1, m);
        if (name == "interleaved" && m % stages == 0) schedule(name, stages, 2, m);
      }
  schedule("interleaved", 2, 3, 8);
}

// Sizes of real models, compiled but not run.
void add_large(Cases& all) {
  for (const char* layout :
       {"", "data=2", "data=2 zero=1", "data=2 zero=2", "data=2 zero=3", "data=8 shard_group=2 zero=3",
        "tensor=2 sequence_parallel", "tensor=8", "context=4", "context=4 method=ring", "context=4 method=ulysses",
        "pipe=4", "data=2 tensor=2 context=2 zero=3 sequence_parallel", "pipe=4 tensor=2 schedule=zero_bubble"}) {
    config::Settings s = gpt2();
    set_layout(s, layout);
    s.train.global_batch = 8 * s.parallel.data;
    all.push_back({.name = fmt::format("gpt2/{}", layout), .settings = s, .small = false});
  }
  // A layer of GPT-3, as in activation_memory_test.
  for (const char* recompute : {"none", "selective", "full"})
    for (const char* layout :
         {"tensor=2", "tensor=8", "tensor=8 sequence_parallel", "tensor=8 sequence_parallel keep_gathered"}) {
      config::Settings s = small_model("gpt", "bf16");
      s.model.layers = 3;
      s.model.embed = 12288;
      s.model.heads = s.model.kv_heads = 96;
      s.model.ffn = 4 * s.model.embed;
      s.model.vocab = 51200;
      s.model.context = s.train.sequence = 2048;
      s.train.micro_batch = s.train.global_batch = 1;
      s.parallel.device = "cpu";
      set_layout(s, fmt::format("{} recompute={}", layout, recompute));
      all.push_back({.name = fmt::format("gpt3_layers/{} {}", layout, recompute), .settings = s, .small = false});
    }
}

// The examples, with a vocabulary if they take it from their data; and GPT-3 175B on 64 ranks, as in docs/plan.md.
void add_files(Cases& all, const std::string& source) {
  const auto example = [&](const std::string& name, const Words& sets) {
    all.push_back(
        {.name = "examples/" + name + (sets.size() > 1 ? " " + sets[1] : ""),
         .settings = config::load(source + "/examples/" + name + ".toml", models::catalog(), sets, 2).settings,
         .small = false});
  };
  example("quick", {"model.vocab=4096"});
  example("quick", {"model.vocab=4096", "parallel.ranks=2"});
  example("shakespeare_char", {"model.vocab=65"});
  example("shakespeare_char", {"model.vocab=65", "parallel.tensor=2"});
  example("pipeline", {});
  constexpr const char* gpt3 =
      "[model]\nlayers = 96\nembed = 12288\nheads = 96\nvocab = 51200\n"
      "[train]\nsequence = 2048\nglobal_batch = 64\nmicro_batch = 1\ndtype = \"bf16\"\n"
      "[parallel]\ntensor = 8\npipe = 8\n";
  for (const Words& sets :
       {Words{"parallel.schedule=interleaved", "parallel.chunks=3"},
        Words{"parallel.schedule=1f1b", "parallel.sequence_parallel=true", "parallel.recompute=selective"},
        Words{"parallel.schedule=zero_bubble"},
        Words{"parallel.schedule=1f1b", "parallel.offload=all", "parallel.recompute=full"}})
    all.push_back(
        {.name = fmt::format("gpt3/{}", fmt::join(sets, " ")),
         .settings = config::resolve(config::read_text(gpt3, "gpt3.toml", models::catalog(), sets), 64).settings,
         .small = false});
}

}  // namespace

std::vector<TrainingCase> training_cases(const std::string& source) {
  Cases all;
  add_lists(all);
  add_random(all);
  add_offload(all);
  add_recompute(all);
  add_units_and_wire(all);
  add_others(all);
  add_settings(all);
  add_schedules(all);
  add_large(all);
  add_files(all, source);
  return all;
}

std::vector<ModelCase> model_cases() {
  const ModelLayout evaluated[] = {{"gpt", ""},
                                   {"gpt-odd", ""},
                                   {"llama", ""},
                                   {"gpt", "data=2"},
                                   {"gpt", "data=4"},
                                   {"gpt", "data=2 zero=3"},
                                   {"gpt", "tensor=2"},
                                   {"gpt-odd", "tensor=2"},
                                   {"gpt", "tensor=4"},
                                   {"gpt", "tensor=2 sequence_parallel"},
                                   {"gpt", "context=2"},
                                   {"llama", "context=2 method=ring"},
                                   {"llama", "context=2 method=ulysses"},
                                   {"gpt", "pipe=2"},
                                   {"llama", "pipe=4"},
                                   {"gpt", "pipe=2 schedule=interleaved chunks=2"},
                                   {"llama", "pipe=2 tensor=2"},
                                   {"gpt", "pipe=2 data=2 zero=3"},
                                   {"llama", "pipe=2 context=2"},
                                   {"llama", "pipe=2 data=2 tensor=2 zero=3 sequence_parallel"}};
  const ModelLayout written[] = {{"gpt", ""},
                                 {"gpt-odd", ""},
                                 {"llama", ""},
                                 {"llama-odd", ""},
                                 {"gpt", "data=2"},
                                 {"gpt", "tensor=2"},
                                 {"gpt", "tensor=4"},
                                 {"gpt-odd", "tensor=2"},
                                 {"gpt", "pipe=2"},
                                 {"gpt", "pipe=4"},
                                 {"gpt", "pipe=2 stages=1,3"},
                                 {"gpt", "pipe=2 schedule=interleaved chunks=2"},
                                 {"gpt", "pipe=2 tensor=2"},
                                 {"gpt", "data=2 zero=3"},
                                 {"gpt", "pipe=2 data=2 zero=3"},
                                 {"llama", "data=2 zero=1"},
                                 {"llama", "tensor=2"},
                                 {"llama", "tensor=4"},
                                 {"llama-odd", "tensor=2"},
                                 {"llama", "pipe=4"},
                                 {"llama", "pipe=2 tensor=2"},
                                 {"llama", "pipe=2 data=2 zero=3"},
                                 {"llama", "data=2 tensor=2 pipe=2 zero=3"}};
  std::vector<ModelCase> all;
  for (const auto& [model, layout] : evaluated)
    for (const int64_t batch : {4, 3, 19})
      all.push_back({.name = fmt::format("evaluate/{} {} batch {}", model, layout, batch),
                     .model = model,
                     .layout = layout,
                     .batch = batch});
  for (const auto& [model, layout] : written)
    for (const int64_t prompt : {6, 16})
      all.push_back({.name = fmt::format("generate/{} {} prompt {}", model, layout, prompt),
                     .model = model,
                     .layout = layout,
                     .prompt = prompt});
  return all;
}

std::vector<ProgramCase> program_cases(const std::string& source) {
  std::vector<ProgramCase> all;
  for (const TrainingCase& c : training_cases(source))
    all.push_back({c.name, [c] { return training_programs(c.settings, c.plan); }});
  for (const ModelCase& c : model_cases())
    all.push_back({c.name, [c] {
                     config::Settings s = checkpoint_settings(c.model);
                     set_layout(s, c.layout);
                     const int64_t rows = evaluate::even_batch(c.batch, kSamples, s.parallel.data);
                     return model_programs(s, c.batch > 0 ? models::build_evaluation(s, rows, s.train.sequence)
                                                          : models::build_generation(s, 1, c.prompt, 16));
                   }});
  return all;
}

}  // namespace kintsugi::tests
