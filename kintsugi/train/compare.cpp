#include "kintsugi/train/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/models/step.h"
#include "kintsugi/run/state_blocks.h"
#include "kintsugi/train/layout_run.h"
#include "kintsugi/train/learning_rate.h"

namespace kintsugi::train {
namespace {

using program::StateInfo;
using program::StateKind;

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isfinite(d) ? d : std::numeric_limits<double>::infinity();
}

// For a gradient, the buffer that has its sum after a step.
StateInfo as_read(StateInfo s) {
  if (s.reduced != program::kNoBuffer) s.buffer = s.reduced;
  return s;
}

// Calls f(index in the whole, value) for each element that the rank holds.
template <typename F>
void for_each_element(const LayoutRun& layout, const StateInfo& s, int rank, F&& f) {
  const run::Executor& executor = layout.executor(rank);
  const tensor::DType dtype = executor.program().buffer(s.buffer).type.dtype;
  const auto look = [&]<typename T>(T) {
    run::look_at_runs(executor, s, [&](const program::Run& r, const std::byte* data) {
      const T* x = reinterpret_cast<const T*>(data);
      for (int64_t i = 0; i < r.count; ++i)
        f(static_cast<size_t>(r.whole + i), static_cast<double>(static_cast<tensor::arithmetic_t<T>>(x[i])));
    });
  };
  dtype == tensor::DType::i8 ? look(int8_t{}) : tensor::dispatch(dtype, look);
}

std::vector<double> whole(const LayoutRun& twin, const StateInfo& s) {
  std::vector<double> all(static_cast<size_t>(s.whole.shape.elements()));
  for_each_element(twin, s, 0, [&](size_t i, double x) { all[i] = x; });
  return all;
}

std::string place_of(const tensor::Shape& shape, size_t element) {
  auto left = static_cast<int64_t>(element);
  std::string text;
  for (auto d = shape.dims().rbegin(); d != shape.dims().rend(); ++d) {
    text = fmt::format("{}:{}{}{}", d->name, left % d->size, text.empty() ? "" : " ", text);
    left /= d->size;
  }
  return "[" + text + "]";
}

double spacing(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::f64:
      return std::ldexp(1.0, -52);
    case tensor::DType::f32:
      return std::ldexp(1.0, -23);
    case tensor::DType::f16:
      return std::ldexp(1.0, -10);
    default:
      return std::ldexp(1.0, -7);
  }
}

std::vector<StateInfo> states_of(const program::Program& p, StateKind kind) {
  std::vector<StateInfo> list;
  for (const StateInfo& s : p.states)
    if (s.kind == kind) list.push_back(s);
  return list;
}

// Gradients in the order in which the backward pass of the last micro-batch completes them; others in program order.
std::vector<StateInfo> completed(const program::Program& p) {
  std::vector<StateInfo> list = states_of(p, StateKind::gradient);
  std::map<std::string, size_t> last;
  size_t at = 0;
  for (const program::Call& call : p.list(program::Step::train).calls)
    for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) {
      ++at;
      for (program::BufferId out : i.outs)
        for (const StateInfo& s : list)
          if (p.root(out) == s.buffer && p.begin(out, 0) == s.first * tensor::size_of(s.whole.dtype)) last[s.name] = at;
    }
  std::stable_sort(list.begin(), list.end(),
                   [&](const StateInfo& a, const StateInfo& b) { return last[a.name] < last[b.name]; });
  return list;
}

class Comparer {
 public:
  explicit Comparer(const CompareOptions& o)
      : o_(o), s_(o.settings), twin_(twin_of(s_)), layout_(s_, std::nullopt, o.damage) {
    result_.mesh = to_string(layout_.program().mesh);
    result_.ranks = layout_.ranks();
    result_.steps = o.steps;
    gradients_ = completed(twin_.program());
    weights_ = states_of(twin_.program(), StateKind::weight);
    for (const StateInfo& w : weights_) allowed_[w.name].assign(static_cast<size_t>(w.whole.shape.elements()), 0.0f);
  }

  Comparison run() {
    compare_weights(0);
    int64_t updated = 0;
    for (int64_t step = 1; step <= o_.steps; ++step) {
      const double rate = learning_rate(s_.train, step - 1);
      for (LayoutRun* run : {&twin_, &layout_}) {
        run->step(step - 1, rate, o_.data.parts(),
                  [&](int64_t m, samples::BatchMemory& batch) { fill(*run, step - 1, m, batch); });
        tell();
      }
      // If gradients overflow, rounding decides which of them do, and the weights are unchanged.
      const bool updates = twin_.executor(0).number(models::kFinite) != 0.0;
      compare_losses(step);
      if (updates) compare_gradients(step), ++updated;
      tell();
      if (updates) allow(step, rate);
      compare_weights(step);
      tell();
    }
    if (updated == 0)
      throw base::UserError("compare",
                            "the gradients of one rank overflow in every step of {}, so that none was compared; each "
                            "halves the scale of the loss: try more --steps, or another dtype",
                            o_.steps);
    return std::move(result_);
  }

 private:
  // A part of a step is done: one rank's, the layout's, comparing gradients, comparing weights.
  void tell() {
    if (o_.progress) o_.progress(++parts_, 4 * o_.steps);
  }

  void fill(const LayoutRun& run, int64_t step, int64_t m, samples::BatchMemory& batch) const {
    const config::Settings one = twin_of(s_);
    const int64_t rows = compile::samples_of_pass(&run == &twin_ ? one : s_);
    o_.data.fill(static_cast<uint64_t>(step * s_.train.global_batch + m * rows), batch.view());
  }

  void compare_losses(int64_t step) {
    const double twin = twin_.loss(), scale = std::abs(twin);
    if (!std::isfinite(twin))
      throw base::UserError("compare", "step {}: the loss of one rank is {} already; compare where training works",
                            step, twin);
    result_.differences.push_back({.step = step,
                                   .what = Compared::loss,
                                   .name = {},
                                   .element = {},
                                   .value = layout_.loss(),
                                   .twin = twin,
                                   .limit = o_.loss_tolerance * static_cast<double>(step) * scale,
                                   .scale = scale});
  }

  void compare_gradients(int64_t step) {
    double squares = 0;
    for (const StateInfo& g : gradients_) for_each_element(twin_, g, 0, [&](size_t, double x) { squares += x * x; });
    const double norm = std::sqrt(squares);
    const double limit = o_.tolerance * static_cast<double>(step) * norm;
    for (const StateInfo& g : gradients_)
      compare_state(g, {.step = step, .what = Compared::gradient, .scale = norm}, [&](size_t) { return limit; });
  }

  void compare_weights(int64_t step) {
    for (const StateInfo& w : weights_) {
      const std::vector<float>& allowed = allowed_.at(w.name);
      const double scale = *std::max_element(allowed.begin(), allowed.end());
      compare_state(w, {.step = step, .what = Compared::weight, .scale = scale}, [&](size_t i) { return allowed[i]; });
    }
  }

  // Adds to `allowed_` the effect of one step with gradients at their limit.
  void allow(int64_t step, double rate) {
    const config::Train& t = s_.train;
    const double norm = twin_.executor(0).number(models::kGradientNorm);
    const double clipped = t.clip > 0 ? std::min(norm, t.clip) : norm;
    // Doubled: the norm used for clipping has an error of its own.
    const double error = 2 * o_.tolerance * static_cast<double>(step) * clipped;
    const auto updates = static_cast<int64_t>(twin_.executor(0).number(models::kUpdates));
    const models::Optimizer& optimizer = models::optimizer(t.optimizer);
    const double reach = optimizer.reach ? optimizer.reach(t, updates) : 0;
    double through = 0;  // effect of the momentum on one unit per step
    for (int64_t i = 0; reach == 0 && i < updates; ++i) through = 1 + t.momentum * through;
    for (const StateInfo& w : weights_) {
      std::vector<float>& allowed = allowed_.at(w.name);
      std::vector<double> v;
      double correction = 1;
      if (const StateInfo* second = reach > 0 ? second_moment(w) : nullptr) {
        v = whole(twin_, *second);
        correction = 1 - std::pow(t.betas[1], static_cast<double>(updates));
      }
      for_each_element(twin_, w, 0, [&](size_t i, double x) {
        double moved = reach > 0 ? 2 * reach : error * through;
        if (!v.empty()) moved = std::min(moved, (1 + reach) * error / (std::sqrt(v[i] / correction) + t.epsilon));
        const double far = rate * moved;  // also beyond x, where rounding is coarser
        allowed[i] += static_cast<float>(far + 2 * spacing(w.whole.dtype) * (std::abs(x) + far));
      });
    }
  }

  const StateInfo* second_moment(const StateInfo& weight) const {
    for (const StateInfo& s : twin_.program().states)
      if (s.part == program::OptimizerPart::second_moment && s.weight == weight.name) return &s;
    return nullptr;
  }

  template <typename Limit>
  void compare_state(const StateInfo& mine, Difference d, const Limit& limit) {
    const std::vector<double> twin = whole(twin_, mine);
    std::vector<bool> held(twin.size(), false);
    double most = -1;
    size_t element = 0;
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const StateInfo* s = layout_.executor(rank).program().state(mine.name);
      if (!s || (s->replica && s->kind == StateKind::gradient))
        continue;  // of another stage; the sum is on the weight's stage
      for_each_element(layout_, as_read(*s), rank, [&](size_t i, double x) {
        held[i] = true;
        const double far = distance(x, twin[i]), allowed = limit(i);
        const double share = far == 0 ? 0 : allowed > 0 ? far / allowed : std::numeric_limits<double>::infinity();
        if (share <= most) return;
        most = share;
        element = i;
        d.rank = rank;
        d.value = x;
        d.twin = twin[i];
        d.limit = allowed;
      });
    }
    const auto missing = std::find(held.begin(), held.end(), false);
    base::require(missing == held.end(), "compare", "element {} of \"{}\" is on no rank", missing - held.begin(),
                  mine.name);
    d.name = mine.kind == StateKind::gradient ? mine.weight : mine.name;
    d.layer = mine.layer;
    d.element = place_of(mine.whole.shape, element);
    result_.differences.push_back(std::move(d));
  }

  const CompareOptions& o_;
  const config::Settings& s_;
  LayoutRun twin_, layout_;
  std::vector<StateInfo> gradients_, weights_;         // of the twin
  std::map<std::string, std::vector<float>> allowed_;  // [weight][element]: limit of the difference
  Comparison result_;
  int64_t parts_ = 0;
};

}  // namespace

double default_tolerance(const config::Settings& s) {
  const auto of = [](const std::string& dtype) {
    return dtype == "fp64" ? 1e-9 : dtype == "fp32" ? 1e-5 : dtype == "fp16" ? 2e-3 : 1e-2;
  };
  // TF32 has the mantissa of fp16; wire fp32 leaves gradients unchanged.
  return std::max(of(compile::takes_tf32(s) ? "fp16" : s.train.dtype),
                  s.parallel.wire == "bf16" && s.parallel.ranks > 1 ? 2e-3 : 0.0);
}

config::Settings twin_of(config::Settings s) {
  const bool units = s.train.reproducible > 0;  // one unit per pass, and the same bits for as many threads
  s.model.batch_norm_samples = config::batch_norm_group(s);
  if (!units) s.train.micro_batch *= config::data_ranks(s.parallel);
  const config::Device device = compile::device_of(s);
  s.parallel = {.device = std::string(name_of(device == config::Device::reference ? device : config::Device::cpu)),
                .threads = units ? s.parallel.threads : s.parallel.threads * s.parallel.ranks};
  return s;
}

double Difference::size() const {
  return distance(value, twin);
}

const Difference* Comparison::first() const {
  for (const Difference& d : differences)
    if (!d.within()) return &d;
  return nullptr;
}

Comparison compare(const CompareOptions& o) {
  if (o.settings.parallel.ranks == 1 && !compile::on_a_device(o.settings))
    throw base::UserError(
        "compare", "the plan has one rank, and would be compared with itself; --ranks N or [parallel] says more");
  compile::check_plan(o.settings, compile::plan_of(o.settings), models::build_training(o.settings));
  return Comparer(o).run();
}

}  // namespace kintsugi::train
