#include "tests/small_model.h"

#include "kintsugi/build/programs.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"

namespace kintsugi::tests {

config::Settings small_model(const std::string& family, const std::string& dtype) {
  config::Settings s;
  s.model = models::defaults_of(family);
  s.model.layers = 2;
  s.model.embed = 24;
  s.model.heads = 4;
  s.model.kv_heads = 2;
  s.model.ffn = 36;
  s.model.vocab = 65;
  s.model.context = 16;
  s.model.dropout = 0.1;
  s.train.dtype = dtype;
  s.train.kernels = "reference";
  s.train.global_batch = 4;
  s.train.micro_batch = 2;
  s.train.sequence = 7;
  s.train.min_learning_rate = 1e-4;
  s.train.decay_steps = 100;
  s.parallel.threads = 1;
  return s;
}

config::Settings offload_model(const std::string& family, const std::string& dtype) {
  config::Settings s = small_model(family, dtype);
  s.model.layers = 4;
  s.model.embed = 128;
  s.model.ffn = 192;
  s.model.context = s.train.sequence = 64;
  s.train.kernels = "cpu";
  s.train.micro_batch = 4;
  s.train.global_batch = 16;
  return s;
}

std::vector<double> values(const tensor::View& v) {
  std::vector<double> out;
  tensor::dispatch(v.dtype(), [&]<typename T>(T) {
    for (const T& x : v.as<T>()) out.push_back(static_cast<double>(static_cast<tensor::arithmetic_t<T>>(x)));
  });
  return out;
}

void put(const tensor::View& v, const std::vector<double>& x) {
  tensor::dispatch(v.dtype(), [&]<typename T>(T) {
    for (size_t i = 0; i < x.size(); ++i) v.as<T>()[i] = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(x[i]));
  });
}

Machine::Machine(const config::Settings& settings)
    : s(settings),
      kernels(build::kernels_of(s)),
      team(static_cast<int>(s.parallel.threads)),
      executor(build::build_program(s, *kernels), *kernels, team) {
  executor.initialize(s.train.seed);
  const auto seq = static_cast<size_t>(s.train.sequence), size = static_cast<size_t>(s.train.micro_batch) * seq;
  tokens_.resize(size);
  labels_.resize(size);
  for (size_t i = 0; i < size; ++i) starts_.push_back(i % seq >= seq / 2 ? static_cast<int32_t>(seq / 2) : 0);
}

void Machine::fill(int64_t step, const run::Executor::Inputs& inputs) {
  const auto key = kernels::random_key(7, "tokens");
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const auto at = static_cast<uint64_t>(inputs.micro_batch() * static_cast<int64_t>(tokens_.size())) + i;
    const uint32_t word = kernels::random_word(key, static_cast<uint64_t>(step), at);
    tokens_[i] = static_cast<int32_t>(word % static_cast<uint32_t>(s.model.vocab));
    labels_[i] = word % 11 == 0 ? -1 : static_cast<int32_t>((word / 7) % static_cast<uint32_t>(s.model.vocab));
  }
  inputs.set("tokens", {tokens_, 0, s.train.sequence}, -1);
  inputs.set("labels", {labels_, 0, s.train.sequence}, -1);
  inputs.set("starts", {starts_, 0, s.train.sequence}, 0);
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
