#include "tests/small_model.h"

#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "kintsugi/train/batches.h"
#include "tests/layouts.h"

namespace kintsugi::tests {

config::Settings small_model(const std::string& name, const std::string& dtype) {
  config::Settings s;
  const size_t colon = name.find(':');
  s.model = models::defaults_of(name.substr(0, colon));
  if (colon != name.npos) s.model.objective = name.substr(colon + 1);
  s.model.layers = 2;
  s.model.embed = 24;
  s.model.heads = 4;
  s.model.kv_heads = 2;
  s.model.ffn = 36;
  s.model.vocab = 65;
  s.model.context = 16;
  s.model.dropout = 0.1;
  s.train.dtype = dtype;
  s.train.expert_bound = 64;  // as the file of a run has it: a slot for every token
  s.parallel.device = "reference";
  s.train.global_batch = 4;
  s.train.micro_batch = 2;
  s.train.sequence = 7;
  s.train.min_learning_rate = 1e-4;
  s.train.decay_steps = 100;
  s.train.warmup_steps = s.train.evaluate_every = s.train.evaluate_batches = s.evaluate.tasks_every = 0;
  s.model.features = 5;
  s.model.outputs = 3;
  s.model.image_channels = 2;
  s.model.image_height = s.model.image_width = 20;
  s.parallel.threads = 1;
  return s;
}

config::Settings offload_model(const std::string& family, const std::string& dtype) {
  config::Settings s = small_model(family, dtype);
  s.model.layers = 4;
  s.model.embed = 128;
  s.model.ffn = 192;
  s.model.context = s.train.sequence = 64;
  s.parallel.device = "cpu";
  s.train.micro_batch = 4;
  s.train.global_batch = 16;
  return s;
}

std::vector<double> values(const tensor::View& v) {
  std::vector<double> out;
  if (v.dtype() == tensor::DType::i8) return {v.as<int8_t>().begin(), v.as<int8_t>().end()};
  tensor::dispatch(v.dtype(), [&]<typename T>(T) {
    for (const T& x : v.as<T>()) out.push_back(static_cast<double>(static_cast<tensor::arithmetic_t<T>>(x)));
  });
  return out;
}

void put(const tensor::View& v, const std::vector<double>& x) {
  if (v.dtype() == tensor::DType::i8) {
    for (size_t i = 0; i < x.size(); ++i) v.as<int8_t>()[i] = static_cast<int8_t>(x[i]);
    return;
  }
  tensor::dispatch(v.dtype(), [&]<typename T>(T) {
    for (size_t i = 0; i < x.size(); ++i) v.as<T>()[i] = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(x[i]));
  });
}

Machine::Machine(const config::Settings& settings, std::unique_ptr<kernels::KernelSet> given)
    : s(settings),
      kernels(given ? std::move(given) : compile::kernels_of(s)),
      team(static_cast<int>(s.parallel.threads)),
      executor(compile::only_stage(compile::compile({.settings = s, .kernels = *kernels})), *kernels, team) {
  executor.initialize(s.train.seed);
}

void Machine::fill(int64_t step, const run::Executor::Inputs& inputs) {
  draw_batch(s, step, inputs.micro_batch(), batch_);
  evaluate::set_inputs(inputs, batch_.view(), 0);
}

double Machine::step(int64_t number, double learning_rate) {
  kernels::Numbers numbers = {.seed = s.train.seed, .step = number, .learning_rate = learning_rate};
  executor.run(program::Step::train, numbers, [&](const run::Executor::Inputs& inputs) {
    fill(number, inputs);
    numbers.batch_offset = inputs.micro_batch() * s.train.micro_batch;
  });
  return executor.number(models::kLossSum) / executor.number(models::kLossCount);
}

void Machine::take_weights(const Machine& from) {
  for (const auto& [name, x] : from.states(program::StateKind::weight)) put(executor.state(name), x);
}

std::map<std::string, std::vector<double>> Machine::states(program::StateKind kind) const {
  std::map<std::string, std::vector<double>> all;
  for (const program::StateInfo& info : executor.program().states) {
    if (info.kind != kind) continue;
    all[info.name] = values(executor.state(info.name));
  }
  return all;
}

}  // namespace kintsugi::tests
