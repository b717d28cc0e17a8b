// Optimizers whose update needs an entire weight beside their published rules, written out here; in layouts, which
// split weights and states; their memory; rates of parts; averages of weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/compile/programs.h"
#include "kintsugi/models/averages.h"
#include "kintsugi/models/optimizers.h"
#include "kintsugi/models/step.h"
#include "tests/layouts.h"

namespace kintsugi::tests::whole_optimizers_test {
namespace {

constexpr double kRate = 0.01, kDecay = 0.1, kBeta1 = 0.8, kBeta2 = 0.9, kEpsilon = 1e-6, kMomentum = 0.7;
constexpr double kTrust = 0.02, kFactorDecay = 0.7, kFactorClip = 0.9;

// A weight, and what its optimizer keeps of it. A matrix has rows (its inputs) and columns.
struct Twin {
  std::vector<double> w, m, v, r, c;
  size_t matrices = 1, rows = 0, columns = 0;
  bool decays = false, hidden = false;
};
using Update = std::function<void(Twin& t, const std::vector<double>& g, int step)>;

double norm_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

// The direction of Adam, without decay.
std::vector<double> adam_direction(Twin& t, const std::vector<double>& g, int step) {
  std::vector<double> u(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    t.m[i] = kBeta1 * t.m[i] + (1 - kBeta1) * g[i];
    t.v[i] = kBeta2 * t.v[i] + (1 - kBeta2) * g[i] * g[i];
    u[i] = t.m[i] / (1 - std::pow(kBeta1, step)) / (std::sqrt(t.v[i] / (1 - std::pow(kBeta2, step))) + kEpsilon);
  }
  return u;
}

void lamb(Twin& t, const std::vector<double>& g, int step) {
  std::vector<double> u = adam_direction(t, g, step);
  for (size_t i = 0; i < u.size(); ++i) u[i] += (t.decays ? kDecay : 0.0) * t.w[i];
  const double ratio = t.decays ? norm_of(t.w) / norm_of(u) : 1.0;
  for (size_t i = 0; i < u.size(); ++i) t.w[i] -= kRate * ratio * u[i];
}

void lars(Twin& t, const std::vector<double>& g, int) {
  const double decay = t.decays ? kDecay : 0.0;
  const double local = t.decays ? kTrust * norm_of(t.w) / (norm_of(g) + decay * norm_of(t.w)) : 1.0;
  for (size_t i = 0; i < g.size(); ++i) {
    t.m[i] = kMomentum * t.m[i] + kRate * local * (g[i] + decay * t.w[i]);
    t.w[i] -= t.m[i];
  }
}

using Rows = std::vector<std::vector<double>>;
Rows product(const Rows& a, const Rows& b) {
  Rows y(a.size(), std::vector<double>(b[0].size(), 0.0));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t l = 0; l < b.size(); ++l)
      for (size_t j = 0; j < b[0].size(); ++j) y[i][j] += a[i][l] * b[l][j];
  return y;
}
Rows turned(const Rows& a) {
  Rows y(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) y[j][i] = a[i][j];
  return y;
}

// x (3.4445 - 4.7750 x'x + 2.0315 (x'x)^2), five times: the larger or the smaller Gram matrix, as it comes.
Rows orthogonalized(Rows x) {
  double squares = 0;
  for (const auto& row : x)
    for (const double v : row) squares += v * v;
  for (auto& row : x)
    for (double& v : row) v /= std::sqrt(squares);
  for (int step = 0; step < 5; ++step) {
    const Rows gram = product(turned(x), x), first = product(x, gram), second = product(first, gram);
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t j = 0; j < x[0].size(); ++j)
        x[i][j] = 3.4445 * x[i][j] - 4.7750 * first[i][j] + 2.0315 * second[i][j];
  }
  return x;
}

void muon(Twin& t, const std::vector<double>& g, int step) {
  std::vector<double> u;
  if (!t.hidden) {
    u = adam_direction(t, g, step);
  } else {
    u.resize(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      t.m[i] += (1 - kMomentum) * (g[i] - t.m[i]);
      u[i] = g[i] + kMomentum * (t.m[i] - g[i]);
    }
    const size_t of_each = t.rows * t.columns;
    for (size_t begin = 0; begin < u.size(); begin += of_each) {
      Rows x(t.rows, std::vector<double>(t.columns));
      for (size_t i = 0; i < of_each; ++i) x[i / t.columns][i % t.columns] = u[begin + i];
      x = orthogonalized(x);
      const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(t.rows, t.columns)));
      for (size_t i = 0; i < of_each; ++i) u[begin + i] = scale * x[i / t.columns][i % t.columns];
    }
  }
  for (size_t i = 0; i < g.size(); ++i) t.w[i] -= kRate * (u[i] + (t.decays ? kDecay : 0.0) * t.w[i]);
}

// Shazeer, Stern 2018, algorithms 4 and 5, with means; the learning rate for rho.
void adafactor(Twin& t, const std::vector<double>& g, int step) {
  const double kept = 1 - std::pow(step, -kFactorDecay), fresh = 1 - kept, tiny = 1e-30;
  const auto n = static_cast<double>(g.size());
  std::vector<double> u(g.size());
  if (t.rows == 0) {
    for (size_t i = 0; i < g.size(); ++i) {
      t.v[i] = kept * t.v[i] + fresh * (g[i] * g[i] + tiny);
      u[i] = g[i] / std::sqrt(t.v[i]);
    }
  } else {
    for (size_t k = 0; k < t.matrices; ++k) {
      const size_t begin = k * t.rows * t.columns;
      std::vector<double> row(t.rows, 0.0), column(t.columns, 0.0);
      for (size_t i = 0; i < t.rows; ++i)
        for (size_t j = 0; j < t.columns; ++j) {
          const double square = g[begin + i * t.columns + j] * g[begin + i * t.columns + j] + tiny;
          row[i] += square / static_cast<double>(t.columns);
          column[j] += square / static_cast<double>(t.rows);
        }
      double mean = 0;
      for (size_t i = 0; i < t.rows; ++i) {
        double& r = t.r[k * t.rows + i];
        r = kept * r + fresh * row[i];
        mean += r / static_cast<double>(t.rows);
      }
      for (size_t j = 0; j < t.columns; ++j) t.c[k * t.columns + j] = kept * t.c[k * t.columns + j] + fresh * column[j];
      for (size_t i = 0; i < t.rows; ++i)
        for (size_t j = 0; j < t.columns; ++j)
          u[begin + i * t.columns + j] =
              g[begin + i * t.columns + j] / std::sqrt(t.r[k * t.rows + i] * t.c[k * t.columns + j] / mean);
    }
  }
  const double alpha = kRate * std::max(1e-3, norm_of(t.w) / std::sqrt(n));
  const double clipped = std::max(1.0, norm_of(u) / std::sqrt(n) / kFactorClip);
  for (size_t i = 0; i < g.size(); ++i) t.w[i] -= alpha / clipped * u[i] + kRate * (t.decays ? kDecay : 0.0) * t.w[i];
}

Update rule_of(std::string_view name) {
  if (name == "lamb") return lamb;
  if (name == "lars") return lars;
  if (name == "muon") return muon;
  return adafactor;
}

const std::vector<std::string>& names() {
  static const std::vector<std::string> list = {"lamb", "lars", "muon", "adafactor"};
  return list;
}

void set_numbers(config::Train& train) {
  train.betas = {kBeta1, kBeta2};
  train.epsilon = kEpsilon;
  train.momentum = train.muon_momentum = kMomentum;
  train.trust_coefficient = kTrust;
  train.factor_decay = kFactorDecay;
  train.factor_clip = kFactorClip;
  train.weight_decay = kDecay;
  train.clip = 0;
}

config::Settings settings_of(const std::string& family, const std::string& optimizer, const std::string& dtype) {
  config::Settings s = small_model(family, dtype);
  if (family == "mixtral") s.model.experts = 4, s.model.experts_per_token = 2, s.train.balance = "loss";
  s.train.optimizer = optimizer;
  set_numbers(s.train);
  return s;
}

void follow(const std::string& family, const std::string& name) {
  SCOPED_TRACE(family + " " + name);
  const config::Settings s = settings_of(family, name, "fp64");
  Machine machine(s);
  std::map<std::string, Twin> twins;
  const models::Graphs graphs = models::build_training(s);
  size_t hidden = 0;
  for (const auto& [weight, w] : machine.states(program::StateKind::weight)) {
    const graph::State& state = (*graphs.states)[graphs.states->find(weight)];
    Twin t;
    t.w = w;
    t.decays = state.decay;
    t.hidden = state.matrix.rows > 0;
    hidden += t.hidden;
    for (auto* x : {&t.m, &t.v, &t.r, &t.c}) x->assign(w.size(), 0.0);
    const tensor::Shape& shape = state.type.shape;
    if (shape.rank() > 1 && t.decays) {  // biases and norms of heads are vectors
      t.rows = t.columns = 1;
      const int dims = static_cast<int>(shape.rank()), batch = state.matrix.batch,
                rows = state.matrix.rows > 0 ? state.matrix.rows : dims - 1;
      for (int i = 0; i < static_cast<int>(shape.rank()); ++i)
        (i < batch          ? t.matrices
         : i < batch + rows ? t.rows
                            : t.columns) *= static_cast<size_t>(shape[static_cast<size_t>(i)].size);
    }
    twins[weight] = t;
  }
  EXPECT_GE(hidden, family == "gpt" ? 12u : 14u);
  for (int step = 0; step < 20; ++step) {
    machine.step(step, kRate);
    const double count = machine.executor.number(models::kLossCount);
    const Numbers gradients = machine.states(program::StateKind::gradient),
                  weights = machine.states(program::StateKind::weight);
    for (const auto& [weight, w] : weights) {
      std::vector<double> g = gradients.at(weight + ".gradient");
      for (double& x : g) x /= count;
      Twin& t = twins.at(weight);
      rule_of(name)(t, g, step + 1);
      for (size_t i = 0; i < w.size(); ++i) ASSERT_NEAR(w[i], t.w[i], 1e-9) << weight << " " << i << " step " << step;
    }
  }
}

// `model`: "optimizer", or "optimizer:family".
config::Settings layout_model_of(const std::string& model, const std::string& dtype) {
  const size_t colon = model.find(':');
  const std::string optimizer = model.substr(0, colon);
  config::Settings s = settings_of(colon == model.npos ? "gpt" : model.substr(colon + 1),
                                   optimizer == "ema" ? "adamw" : optimizer, dtype);
  if (optimizer == "ema") {
    s.train.ema_decay = 0.9;
    s.train.rates = {"layer*.ffn 0.5", "embedding 0.1"};
  }
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  return s;
}

struct Model {
  std::string name;
  std::vector<std::string> layouts;
};

// Differences of weights and losses between a layout and one rank.
void same_as_one_rank(const std::string& model, const std::string& layout) {
  SCOPED_TRACE(model + " in " + layout);
  const Record found = run_layout(layout_model_of, {model, layout}, "fp64", 5);
  const Record& want = twin(layout_model_of, model, "fp64", 5);
  EXPECT_EQ(difference(found, want, 1e-9), "");
  for (const auto& [name, w] : want.weights)
    for (size_t i = 0; i < w.size(); ++i) ASSERT_NEAR(found.weights.at(name)[i], w[i], 1e-9) << name << " " << i;
}

program::Program lowered(config::Settings s, const std::string& parallel) {
  set_layout(s, parallel);
  s.train.micro_batch = s.train.global_batch / s.parallel.data;
  const auto kernels = compile::kernels_of(s);
  return compile::only_stage(compile::compile({.settings = s, .kernels = *kernels}));
}

int64_t optimizer_bytes(const program::Program& p) {
  std::set<program::BufferId> buffers;
  for (const program::StateInfo& s : p.states)
    if (s.kind == program::StateKind::optimizer) buffers.insert(p.root(s.buffer));
  int64_t bytes = 0;
  for (const program::BufferId b : buffers) bytes += p.buffer(b).bytes();
  return bytes;
}

}  // namespace

TEST(WholeOptimizers, FollowTheirPublishedRules) {
  for (const std::string& name : names())
    for (const char* family : {"gpt", "mixtral"}) follow(family, name);
}

TEST(WholeOptimizers, EveryLayoutIsLikeOneRank) {
  for (const std::string& name : names())
    for (const char* layout : {"data=2 zero=1", "data=2 zero=2", "data=2 zero=3", "tensor=2", "tensor=4",
                               "data=2 tensor=2 zero=3 sequence_parallel", "pipe=2 data=2 zero=1", "context=2"})
      same_as_one_rank(name, layout);
  for (const std::string& name : names())
    for (const char* layout : {"expert=2", "expert=2 zero=1", "data=2 expert=2 zero=3"})
      same_as_one_rank(name + ":mixtral", layout);
  for (const char* layout : {"data=2 zero=1", "data=2 zero=3", "tensor=2", "pipe=2 data=2 zero=1", "pipe=2 tensor=2"})
    same_as_one_rank("ema", layout);
}

// The kernels of the processor, with a copy of the weights in bf16.
TEST(WholeOptimizers, FastKernelsFollowTheSlow) {
  for (const std::string name : {"lamb", "lars", "muon", "adafactor", "adadelta", "lion", "adamw8", "ema"}) {
    SCOPED_TRACE(name);
    config::Settings slow = layout_model_of(name, "fp32"), fast = slow;
    fast.parallel.device = "cpu";
    fast.parallel.threads = 2;
    Machine a(slow), b(fast);
    for (int step = 0; step < 3; ++step) a.step(step, kRate), b.step(step, kRate);
    const Numbers want = a.states(program::StateKind::weight), got = b.states(program::StateKind::weight);
    double far = 0, moved = 0;
    Machine start(slow);
    const Numbers before = start.states(program::StateKind::weight);
    for (const auto& [weight, w] : want)
      for (size_t i = 0; i < w.size(); ++i) {
        far += std::pow(got.at(weight)[i] - w[i], 2);
        moved += std::pow(w[i] - before.at(weight)[i], 2);
      }
    const double most = name == "lion" ? 0.2 : name == "adamw8" ? 0.05 : 2e-3;  // a sign or a code may differ
    EXPECT_LT(std::sqrt(far / moved), most);
    fast.train.dtype = "bf16";
    Machine narrow(fast);
    const double first = narrow.step(0, kRate);
    for (int step = 1; step < 8; ++step) narrow.step(0, kRate);
    EXPECT_LT(narrow.step(0, kRate), first);
  }
}

// The published map: 7 decades, each with twice the fractions of the one below, 0 and 1, in order.
std::vector<double> published_map(bool has_sign) {
  std::vector<double> map = {0.0, 1.0};
  for (int i = 0; i < 7; ++i) {
    const int items = 1 << (has_sign ? i : i + 1);
    for (int k = 0; k < items; ++k) {
      const double low = 0.1 + 0.9 * k / items, high = 0.1 + 0.9 * (k + 1) / items;
      map.push_back(std::pow(10.0, i - 6) * (low + high) / 2);
      if (has_sign) map.push_back(-map.back());
    }
  }
  std::ranges::sort(map);
  return map;
}

// The index of the nearest number, and whether another is as near but for rounding.
std::pair<size_t, bool> nearest_in(const std::vector<double>& map, double x) {
  size_t best = 0;
  for (size_t i = 0; i < map.size(); ++i)
    if (std::abs(map[i] - x) < std::abs(map[best] - x)) best = i;
  bool tie = false;
  for (size_t i = 0; i < map.size(); ++i)
    tie |= i != best && std::abs(std::abs(map[i] - x) - std::abs(map[best] - x)) < 1e-12;
  return {best, tie};
}

// A moment in codes, with the largest magnitude of each block of 256.
struct Coded {
  explicit Coded(bool has_sign, size_t n)
      : map(published_map(has_sign)),
        zero(static_cast<size_t>(std::ranges::lower_bound(map, 0.0) - map.begin())),
        codes(n, zero),
        scales((n + 255) / 256, 0.0) {}

  double at(size_t i) const { return map[codes[i]] * scales[i / 256]; }
  // Stores `x`, and compares with the codes and scales of the machine, which the twin takes over at ties.
  void store(const std::vector<double>& x, const tensor::View& theirs, const std::vector<double>& their_scales) {
    for (size_t block = 0; block < scales.size(); ++block) {
      double most = 0;
      for (size_t i = block * 256; i < std::min(x.size(), block * 256 + 256); ++i)
        most = std::max(most, std::abs(x[i]));
      scales[block] = most;
      ASSERT_NEAR(their_scales[block], most, 1e-12 + 1e-9 * most);
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(theirs.data);
    for (size_t i = 0; i < x.size(); ++i) {
      const double most = scales[i / 256];
      const auto [index, tie] = most > 0 ? nearest_in(map, x[i] / most) : std::pair(zero, false);
      const size_t stored = (bytes[i] + zero) % 256;
      if (!tie) {
        ASSERT_EQ(stored, index) << i;
      }
      codes[i] = stored;
    }
  }

  std::vector<double> map;
  size_t zero;
  std::vector<size_t> codes;
  std::vector<double> scales;
};

TEST(WholeOptimizers, EightBitMomentsFollowTheirPublishedRule) {
  const config::Settings s = settings_of("llama", "adamw8", "fp64");
  Machine machine(s);
  const models::Graphs graphs = models::build_training(s);
  std::map<std::string, std::pair<Coded, Coded>> moments;
  std::map<std::string, Twin> twins;
  for (const auto& [name, w] : machine.states(program::StateKind::weight)) {
    Twin& t = twins[name];
    t.w = w;
    t.m.assign(w.size(), 0.0);
    t.v = t.m;
    t.decays = (*graphs.states)[graphs.states->find(name)].decay;
    if (t.decays) moments.emplace(name, std::pair(Coded(true, w.size()), Coded(false, w.size())));
  }
  EXPECT_EQ(moments.size(), 16u);
  for (int step = 1; step <= 20; ++step) {
    machine.step(step - 1, kRate);
    const double count = machine.executor.number(models::kLossCount);
    const Numbers gradients = machine.states(program::StateKind::gradient),
                  weights = machine.states(program::StateKind::weight);
    for (const auto& [name, w] : weights) {
      std::vector<double> g = gradients.at(name + ".gradient");
      for (double& x : g) x /= count;
      Twin& t = twins.at(name);
      const auto coded = moments.find(name);
      if (coded != moments.end())
        for (size_t i = 0; i < g.size(); ++i) t.m[i] = coded->second.first.at(i), t.v[i] = coded->second.second.at(i);
      const std::vector<double> u = adam_direction(t, g, step);
      for (size_t i = 0; i < w.size(); ++i) {
        t.w[i] -= kRate * (u[i] + (t.decays ? kDecay : 0.0) * t.w[i]);
        ASSERT_NEAR(w[i], t.w[i], 1e-9) << name << " " << i << " step " << step;
      }
      if (coded == moments.end()) continue;
      const auto state = [&](const char* suffix) { return machine.executor.state(name + suffix); };
      coded->second.first.store(t.m, state(".m"), values(state(".m_scale")));
      coded->second.second.store(t.v, state(".v"), values(state(".v_scale")));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(WholeOptimizers, EightBitMomentsInLayouts) {
  for (const char* layout : {"data=2 zero=1", "data=2 zero=2", "data=4 zero=3", "pipe=2 data=2 zero=1", "context=2"})
    same_as_one_rank("adamw8", layout);
}

TEST(WholeOptimizers, MemoryOfStates) {
  for (const char* layout : {"", "data=2 zero=1", "data=4 zero=1"}) {
    for (const std::string name : {"lamb", "lars", "muon", "adafactor", "adamw8", "ema"}) {
      SCOPED_TRACE(name + std::string(" ") + layout);
      const config::Settings s = layout_model_of(name, "fp32");
      const models::Graphs graphs = models::build_training(s);
      const program::Program p = lowered(s, layout);
      const int64_t parts = p.mesh.ranks();
      std::set<program::BufferId> seen;
      int64_t expected = 0;
      for (const program::StateInfo& info : p.states) {
        if (info.kind != program::StateKind::weight) continue;
        const graph::State& state = (*graphs.states)[graphs.states->find(info.name)];
        const tensor::Shape& shape = state.type.shape;
        const int64_t block = p.buffer(p.root(info.buffer)).bytes() / parts;  // of the bucket, split as its states
        const bool first = seen.insert(p.root(info.buffer)).second;
        if (name == "adafactor" && shape.rank() > 1 && state.decay) {
          const int rows = state.matrix.rows > 0 ? state.matrix.rows : static_cast<int>(shape.rank()) - 1;
          int64_t inputs = 1, outputs = 1;
          for (int i = 0; i < static_cast<int>(shape.rank()); ++i)
            (i < rows ? inputs : outputs) *= shape[static_cast<size_t>(i)].size;
          expected += 4 * (inputs + outputs);  // on every rank
        } else if (first) {
          if (name == "adamw8" && state.decay) {
            expected += block / 4 * 2 + block / 4 / 256 * 8;
            continue;
          }
          const bool one = name == "lars" || name == "adafactor" || (name == "muon" && state.matrix.rows > 0);
          expected += block * (name == "ema" ? 3 : one ? 1 : 2);
        }
      }
      EXPECT_EQ(optimizer_bytes(p), expected);
    }
  }
}

TEST(WholeOptimizers, RatesOfPartsAndAverages) {
  config::Settings s = small_model("llama", "fp64");
  set_numbers(s.train);
  s.train.rates = {"layer1.ffn.up 0.25", "layer*.ffn 0.5", "embedding 0", "head 3"};
  s.train.ema_decay = 0.75;
  const auto factor = [](const std::string& name) {
    if (name.starts_with("layer1.ffn.up.")) return 0.25;
    if (name.find(".ffn.") != name.npos) return 0.5;
    return name.starts_with("embedding.") ? 0.0 : name.starts_with("head.") ? 3.0 : 1.0;
  };
  Machine machine(s);
  std::map<std::string, Twin> twins;
  const models::Graphs graphs = models::build_training(s);
  Numbers averages = machine.states(program::StateKind::weight);
  for (const auto& [name, w] : averages) {
    Twin& t = twins[name];
    t.w = w;
    t.m.assign(w.size(), 0.0);
    t.v = t.m;
    t.decays = (*graphs.states)[graphs.states->find(name)].decay;
  }
  for (int step = 0; step < 5; ++step) {
    machine.step(step, kRate);
    const double count = machine.executor.number(models::kLossCount);
    const Numbers gradients = machine.states(program::StateKind::gradient),
                  weights = machine.states(program::StateKind::weight),
                  states = machine.states(program::StateKind::optimizer);
    for (const auto& [name, w] : weights) {
      std::vector<double> g = gradients.at(name + ".gradient");
      for (double& x : g) x /= count;
      Twin& t = twins.at(name);
      const std::vector<double> u = adam_direction(t, g, step + 1);
      for (size_t i = 0; i < w.size(); ++i) {
        t.w[i] -= kRate * factor(name) * (u[i] + (t.decays ? kDecay : 0.0) * t.w[i]);
        double& average = averages.at(name)[i];
        average = 0.75 * average + 0.25 * t.w[i];
        ASSERT_NEAR(w[i], t.w[i], 1e-12) << name;
        ASSERT_NEAR(states.at(name + std::string(models::kAverageSuffix))[i], average, 1e-12) << name;
      }
    }
  }
  // Evaluation reads the averages.
  const auto evaluated = [&](Machine& m) {
    m.executor.set_number(models::kEvaluateSum, 0.0);
    kernels::Numbers numbers = {.seed = 1};
    m.executor.run(program::Step::evaluate, numbers, [&](const run::Executor::Inputs& inputs) { m.fill(3, inputs); });
    return m.executor.number(models::kEvaluateSum);
  };
  const double of_averages = evaluated(machine);
  s.train.ema_decay = 0;
  Machine plain(s);
  plain.take_weights(machine);
  const double of_weights = evaluated(plain);
  EXPECT_GT(std::abs(of_averages - of_weights), 1e-6);
  for (const program::StateInfo& info : plain.executor.program().states)
    if (info.kind == program::StateKind::weight) put(plain.executor.state(info.name), averages.at(info.name));
  EXPECT_NEAR(evaluated(plain), of_averages, 1e-9);
}

TEST(WholeOptimizers, BadInput) {
  const auto error = [](const std::function<void(config::Settings&)>& set) {
    config::Settings s = small_model("llama", "fp32");
    set(s);
    return error_of([&] { models::build_training(s); });
  };
  EXPECT_EQ(error([](auto& s) {
              s.train.optimizer = "muon";
              s.train.freeze = {"layer*.attention", "layer*.ffn"};
            }),
            "[model] train.optimizer = \"muon\" updates matrices, and no weight that is trained is one; \"adamw\" "
            "updates all weights");
  EXPECT_EQ(error([](auto& s) {
              s.train.rates = {"layer0 0.5", "layer*.attn 0.5"};
            }),
            "[model] train.rates: no weight matches \"layer*.attn\"; nearest: layer*.attention_norm.gamma, "
            "layer*.attention.query.weight, layer*.attention.key.weight");
  for (const char* entry : {"layer0", "layer0 -1", "layer0 x", "a b 1", "", "layer0 inf"})
    EXPECT_EQ(error([&](auto& s) { s.train.rates = {entry}; }),
              "[model] train.rates: \"" + std::string(entry) +
                  "\" is not a pattern and a factor of at least 0, as in \"embedding 0.1\"");
  EXPECT_EQ(error([](auto& s) { s.train.freeze = {"*"}; }),
            "[model] train.freeze: all 21 weights are frozen; leave some to train");
}

}  // namespace kintsugi::tests::whole_optimizers_test
