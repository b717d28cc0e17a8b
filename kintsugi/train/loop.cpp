#include "kintsugi/train/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/timeout_message.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/batch_warmup.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/models/step.h"
#include "kintsugi/samples/loader.h"
#include "kintsugi/samples/spread_samples.h"
#include "kintsugi/train/batch_bytes.h"
#include "kintsugi/train/batches.h"
#include "kintsugi/train/between_steps.h"
#include "kintsugi/train/decide.h"
#include "kintsugi/train/expert_use.h"
#include "kintsugi/train/find_bad.h"
#include "kintsugi/train/learning_rate.h"
#include "kintsugi/train/planned_step.h"
#include "kintsugi/train/replicas.h"
#include "kintsugi/train/rollouts.h"
#include "kintsugi/train/sample_texts.h"
#include "kintsugi/train/step_traces.h"
#include "kintsugi/train/stragglers.h"
#include "kintsugi/train/text_bytes.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// The data that a rank reads for its steps.
struct Inputs {
  samples::Share share;
  std::vector<samples::BatchMemory> batches;  // of a step: a stage with several chunks needs each once per chunk
  std::unique_ptr<samples::Loader> loader;    // null: samples are made between the steps
  std::unique_ptr<Rollouts> rollouts;         // which makes them
  RolloutUse made = {};
  std::unique_ptr<BatchBytes> bytes = {};  // if losses are those of the next token
};

Inputs open_inputs(Rank& rank, int64_t first_step) {
  const config::Settings& s = rank.settings();
  Inputs inputs = {.share = share_of(*rank.executor, s), .batches = {}, .loader = {}, .rollouts = {}};
  for (int64_t m = 0; m < compile::micro_batches(s); ++m)
    inputs.batches.emplace_back(inputs.share.micro_batch, rank.corpus.train->parts());
  const bool likelihood = config::method(s.train) == config::Method::likelihood;
  if (likelihood && config::objective(s.model) == config::Objective::next && !rank.corpus.tokenizer_json.empty())
    inputs.bytes = std::make_unique<BatchBytes>(rank.corpus.tokenizer_json, inputs.share, *rank.all);
  if (config::method(s.train) == config::Method::grpo)
    inputs.rollouts = std::make_unique<Rollouts>(rank);
  else
    inputs.loader = std::make_unique<samples::Loader>(
        *rank.corpus.train, samples::LoaderOptions{.share = inputs.share,
                                                   .first_step = static_cast<uint64_t>(first_step),
                                                   .end_step = static_cast<uint64_t>(s.train.steps)});
  return inputs;
}

BetweenSteps between(const Rank& rank, const Inputs& inputs) {
  return {inputs.bytes && rank.leads() ? inputs.bytes->text_bytes() : nullptr, inputs.rollouts.get()};
}

kernels::Numbers numbers_of(const config::Settings& s, int64_t step) {
  const int64_t batch = config::batch_of_step(s.train, step), pass = compile::samples_of_pass(s);
  return {.seed = s.train.seed,
          .step = step,
          .batch_rows = pass,
          .learning_rate = learning_rate(s.train, step),
          .micro_batches = batch < s.train.global_batch ? batch / pass : 0};
}

constexpr std::string_view kInput = "input ";

// "input images" if an image or feature is not finite, else "". Targets may be NaN.
std::string bad_input(const samples::BatchView& batch) {
  for (const char* part : {"images", "features"})
    for (const samples::PartView& view : batch.parts())
      if (view.name == part && view.dtype == tensor::DType::f32 &&
          std::ranges::any_of(batch.get<float>(part), [](float x) { return !std::isfinite(x); }))
        return std::string(kInput) + part;
  return "";
}

// For the step after `step` others. On a device, another may have been executed since.
[[noreturn]] void fail_not_finite(Rank& rank, const Inputs& inputs, Saver& saver, Progress& progress, int64_t step,
                                  double loss) {
  try {
    saver.finish(progress);
  } catch (const comm::SharedError&) {  // the loss is the reason the run ends
  }
  const config::Settings& s = rank.settings();
  samples::BatchMemory batch(inputs.share.micro_batch, rank.corpus.train->parts());
  const std::string where =
      find_bad(*rank.executor, *rank.all, numbers_of(s, step), [&](const run::Executor::Inputs& to) {
        rank.corpus.train->fill(inputs.share.first_sample(static_cast<uint64_t>(step), to.micro_batch()), batch.view());
        evaluate::set_inputs(to, batch.view(), inputs.share.place(0));
        return bad_input(batch.view());
      });
  const std::string what = std::isfinite(loss) ? "gradient norm" : "loss";
  const std::string remedy =
      where.starts_with(kInput) ? "remove such samples from the data" : "try a smaller learning_rate";
  std::string next = fmt::format("nothing was saved yet: {}", remedy);
  if (!progress.checkpoint.empty()) {
    // A value that was bad before the step is also in the checkpoint of the previous step.
    const bool saved =
        where.ends_with("before the step") && progress.checkpoint == checkpoint::step_folder(rank.folder(), step);
    next = fmt::format("the newest checkpoint, {}, {}", progress.checkpoint.string(),
                       saved ? std::string("has it too: resume from an older one or start over, with a smaller "
                                           "learning_rate")
                             : fmt::format("is whole: {}", remedy));
  }
  throw comm::SharedError("train", "step {}: the {} is not finite; first bad value: {}; {}", step + 1, what,
                          where.empty() ? "none when run again" : where, next);
}

const samples::Loader::Item& next_batch(Inputs& inputs, const Progress& progress) {
  try {
    const samples::Loader::Item& item = inputs.loader->next();
    if (inputs.bytes) inputs.bytes->add(item.batch.get<int32_t>("labels"));
    return item;
  } catch (const base::UserError& error) {
    fail_data(fmt::format("step {}", progress.step + 1), error);
  }
}

// Scalars read per step; the last only with loss scaling.
constexpr std::array<std::string_view, 6> kRead = {models::kLossSum, models::kLossCount, models::kGradientNorm,
                                                   models::kFinite,  models::kUpdates,   models::kLossScale};

bool scales_loss(const config::Settings& s) {
  return s.train.dtype == "fp16";
}

std::span<const std::string_view> read_of(const config::Settings& s) {
  return std::span(kRead).first(scales_loss(s) ? kRead.size() : kRead.size() - 1);
}

// Also the sums of further losses and measurements.
std::vector<std::string_view> numbers_of_step(const config::Settings& s, const program::Program& p) {
  const auto always = read_of(s);
  std::vector<std::string_view> names(always.begin(), always.end());
  for (const program::StateInfo& state : p.states)
    if (state.name.starts_with(models::kFurtherLoss) || state.name.starts_with(models::kMeasured))
      names.push_back(state.name);
  return names;
}

// On a device, the step may still be running on return.
void begin_step(Rank& rank, Inputs& inputs, Stragglers& stragglers, const Progress& progress) {
  const config::Settings& s = rank.settings();
  run::Executor& executor = *rank.executor;
  kernels::Numbers numbers = numbers_of(s, progress.step);
  const auto count = static_cast<size_t>(inputs.share.micro_batches(static_cast<uint64_t>(progress.step)));
  size_t read = 0;
  if (inputs.rollouts) {
    for (; read < count; ++read)
      rank.corpus.train->fill(
          inputs.share.first_sample(static_cast<uint64_t>(progress.step), static_cast<int64_t>(read)),
          inputs.batches[read].view());
  }
  const double waited = executor.waited_seconds();
  const auto began = Clock::now();
  executor.run(program::Step::train, numbers, [&](const run::Executor::Inputs& to) {
    const auto m = static_cast<size_t>(to.micro_batch());
    for (; read <= m; ++read) inputs.batches[read].copy(next_batch(inputs, progress).batch);
    evaluate::set_inputs(to, inputs.batches[m].view(), inputs.share.place(0));
  });
  if (const double whole = seconds_since(began); !executor.on_device())
    stragglers.add(whole - (executor.waited_seconds() - waited), whole);
  for (; read < count; ++read) next_batch(inputs, progress);
  if (inputs.bytes) inputs.bytes->end_step();
  executor.ask(numbers_of_step(s, executor.program()));
}

// Waits for the oldest step begun, the one after `step` others.
Metrics end_step(Rank& rank, Inputs& inputs, Saver& saver, Progress& progress, int64_t step) {
  const config::Settings& s = rank.settings();
  const std::vector<std::string_view> names = numbers_of_step(s, rank.executor->program());
  std::vector<double> made(names.size());
  rank.executor->answer(made);
  Metrics metrics;
  metrics.unlabelled = made[1] == 0.0;
  const double count = metrics.unlabelled ? 1.0 : made[1];
  metrics.loss = made[0] / count;
  std::map<std::string_view, double> measured;
  for (size_t i = read_of(s).size(); i < names.size(); ++i) {
    if (names[i].starts_with(models::kMeasured))
      measured[names[i].substr(models::kMeasured.size())] = made[i] / count;
    else
      metrics.further.push_back({std::string(names[i].substr(models::kFurtherLoss.size())), made[i] / count});
  }
  if (inputs.rollouts) {
    metrics.rollouts = inputs.made;
    metrics.rollouts->gap = measured.at("gap");
  }
  if (config::method(s.train) == config::Method::dpo)
    metrics.preferences = {.reward_margin = measured.at("reward"), .accuracy = measured.at("correct")};
  if (inputs.bytes)
    if (const int64_t bytes = inputs.bytes->take(step + 1); bytes > 0 && !metrics.unlabelled)
      metrics.bits_per_byte = bits_per_byte(made[0], bytes);
  // Experts are computed only on the host, where a step is complete once it has begun.
  metrics.experts = expert_use(s, *rank.executor);
  metrics.learning_rate = learning_rate(s.train, step);
  metrics.gradient_norm = metrics.unlabelled ? 0.0 : made[2];
  const bool updated = made[3] != 0.0;
  // With loss scaling an infinite gradient is expected while the scale is searched, and costs only the step.
  if (!std::isfinite(metrics.loss) || (!updated && !scales_loss(s) && !metrics.unlabelled))
    fail_not_finite(rank, inputs, saver, progress, step, metrics.loss);
  if (scales_loss(s))
    metrics.scaling = {
        {.scale = made[5], .skipped = step + 1 - std::llround(made[4]), .skips = !updated && !metrics.unlabelled}};
  return metrics;
}

// Gradients that overflow fp16 even with the smallest loss scale will overflow in the next step too, so that no update
// is ever made.
[[noreturn]] void fail_skipped(const Metrics& m, int64_t in_a_row, Saver& saver, Progress& progress) {
  try {
    saver.finish(progress);
  } catch (const comm::SharedError&) {  // the reason the run ends takes precedence
  }
  throw comm::SharedError(
      "train",
      "step {}: the gradients overflow fp16, and the last {} been skipped, with a loss scale of {}; {}: "
      "train with dtype = \"bf16\" or \"fp32\", or a smaller learning_rate",
      m.step, in_a_row == 1 ? "update has" : fmt::format("{} updates have", in_a_row), m.scaling->scale,
      progress.checkpoint.empty() ? "nothing was saved yet"
                                  : fmt::format("the newest checkpoint is {}", progress.checkpoint.string()));
}

// When the loop began, and when it last saved. Only rank 0's clock decides when a checkpoint is due.
struct Times {
  Clock::time_point began = Clock::now(), saved = Clock::now();
};

Decision decide_after_step(const Rank& rank, const LoopOptions& options, const Progress& progress, const Times& times,
                           Decision wish) {
  const config::Settings& s = rank.settings();
  const double limit = 60.0 * s.train.stop_after_minutes, every = 60.0 * s.checkpoint.every_minutes;
  if (limit > 0 && seconds_since(times.began) >= limit) wish.stop = Stop::time;
  if (stops_here(options, progress.step)) wish.stop = Stop::step;
  if (signalled(options)) wish.stop = Stop::signal;
  wish.measure &= rank.leads();
  wish.save = rank.leads() && every > 0 && seconds_since(times.saved) >= every;
  return decide(rank, wish, fmt::format("after step {}", progress.step));
}

void tell_begin(const LoopOptions& options, const std::string& what) {
  if (options.observer) options.observer->begins(what);
}

void tell(const LoopOptions& options, const Metrics& m, int64_t steps) {
  if (options.folder) options.folder->require_there();
  if (options.metrics) options.metrics->write(m);
  if (options.events) options.events->write(m.step, report::seconds_since_1970(), to_scalars(m), to_event_texts(m));
  if (options.observer) options.observer->step(m, steps);
}

// For step 0, 1, ...
int64_t tokens_of_step(const config::Train& train, int64_t step) {
  return config::batch_of_step(train, step) * train.sequence;
}

// Whether step 0, 1, ... follows the warm-up of the batch.
bool is_full(const config::Train& train, int64_t step) {
  return config::batch_of_step(train, step) == train.global_batch;
}

// Adds what follows from how long a step took.
// How many ranks the cores of all suffice for: threads that share a core do not have its arithmetic twice.
double ranks_with_cores(const Rank& rank) {
  const auto ranks = static_cast<double>(rank.world.size());
  const auto cores = static_cast<double>(cores_of_all(base::usable_cores(), std::thread::hardware_concurrency()));
  const double threads = static_cast<double>(rank.settings().parallel.threads);
  return std::min(ranks, std::max(1.0, cores / threads));
}

void add_rates(const Rank& rank, double peak_flops, Metrics& m) {
  const config::Train& train = rank.settings().train;
  const int64_t tokens = tokens_of_step(train, m.step - 1), all = train.global_batch * train.sequence;
  const double seconds = std::max(m.seconds, 1e-9);  // if the clock stopped or went backwards
  m.tokens_per_second = static_cast<double>(tokens) / seconds;
  m.flops_per_second = rank.step_flops * static_cast<double>(tokens) / static_cast<double>(all) / seconds;
  if (peak_flops > 0) m.peak_share = m.flops_per_second / (peak_flops * ranks_with_cores(rank));
  m.memory_bytes = rank.executor->allocated_bytes();
  if (tokens == all) m.planned_seconds = rank.planned_seconds;
}

bool is_best(const std::optional<double>& loss, const std::optional<double>& best) {
  return loss && std::isfinite(*loss) && (!best || *loss < *best);
}

// Completes what an interruption left undone after the last step of the previous run. The checkpoint exists.
void make_up(Rank& rank, Inputs& inputs, const LoopOptions& options, Progress& progress, LoopEnd& end) {
  Metrics m = options.interrupted ? *options.interrupted : Metrics();
  if (look_between_steps(rank, between(rank, inputs), options, progress, m))
    progress.interrupted = false;
  else
    end.stop = Stop::signal;
  end.validation_loss = m.validation_loss;
  if (options.interrupted) tell(options, m, rank.settings().train.steps);
  if (is_best(m.validation_loss, progress.best_validation_loss)) set_best(rank, *m.validation_loss, progress);
}

// Whether the loop uses the states after a step.
bool is_due(const config::Settings& s, int64_t step) {
  return every_so_often(s.train.evaluate_every, step) || every_so_often(s.train.sample_every, step) ||
         (!s.evaluate.tasks.empty() && every_so_often(s.evaluate.tasks_every, step)) ||
         every_so_often(s.checkpoint.every, step) || every_so_often(s.parallel.check_replicas_every, step);
}

// Steps that have begun, and reporting of those that have ended. On a device the scalars of a step are read after the
// next has begun, so that the device never waits for the host; on the CPU at once.
class Steps {
 public:
  Steps(Rank& rank, Inputs& inputs, Saver& saver, Stragglers& stragglers, const LoopOptions& options)
      : rank_(rank), inputs_(inputs), saver_(saver), stragglers_(stragglers), options_(options) {}

  void begin(Progress& progress) {
    // Sampling waits for the weights of the previous step anyway, whose metrics are those of its own rollouts.
    if (inputs_.rollouts) end_but(0, progress), tell_of_ended();
    const int64_t tokens = progress.tokens + tokens_of_step(rank_.settings().train, progress.step);
    begun_.push_back({progress.step + 1, tokens, Clock::now()});
    if (inputs_.rollouts) inputs_.made = inputs_.rollouts->make(progress.step);
    begin_step(rank_, inputs_, stragglers_, progress);
    end_but(rank_.executor->on_device() ? 1 : 0, progress);
    progress.tokens = tokens;
    ++progress.step;
  }
  void tell_of_ended() {
    for (const Metrics& m : ended_) tell_of(m);
    ended_.clear();
  }
  // Ends all of them. Returns the metrics of the newest, which the caller reports.
  Metrics end_all(Progress& progress) {
    end_but(0, progress);
    Metrics newest = std::move(ended_.back());
    ended_.pop_back();
    tell_of_ended();
    return newest;
  }
  void tell_of(Metrics m) {
    if (const auto times = saver_.take_times()) {
      m.stage_seconds = times->stage;
      if (times->drain > 0) m.drain_seconds = times->drain;
    }
    tell(options_, m, rank_.settings().train.steps);
    if (is_full(rank_.settings().train, m.step - 1))
      if (const auto line = planned_.add(m.seconds); line && options_.observer) options_.observer->note(*line);
  }

 private:
  struct Begun {
    int64_t step, tokens;  // the step, counted from 1
    Clock::time_point at;
  };

  // The duration of a step is measured from its beginning or the end of the previous one.
  void end_but(size_t newest, Progress& progress) {
    for (; begun_.size() > newest; begun_.pop_front()) {
      const auto& [step, tokens, at] = begun_.front();
      Metrics m = end_step(rank_, inputs_, saver_, progress, step - 1);
      m.step = step;
      m.tokens = tokens;
      skipped_ = m.scaling && m.scaling->skips ? skipped_ + 1 : 0;
      const bool none_made = step == rank_.settings().train.steps && m.scaling && m.scaling->skipped == step;
      if (skipped_ >= kMostSkipped || none_made) fail_skipped(m, skipped_, saver_, progress);
      if (m.unlabelled && !std::exchange(noted_unlabelled_, true) && options_.observer)
        options_.observer->note(
            fmt::format("step {}: nothing of the batch has a label, so the loss is 0 and no update is made", m.step));
      m.seconds = seconds_since(std::max(at, last_end_));
      last_end_ = Clock::now();
      add_rates(rank_, options_.peak_flops, m);
      ended_.push_back(std::move(m));
    }
  }

  Rank& rank_;
  Inputs& inputs_;
  Saver& saver_;
  Stragglers& stragglers_;
  const LoopOptions& options_;
  PlannedStep planned_{rank_.planned_seconds, rank_.settings().parallel.cluster};
  std::deque<Begun> begun_;
  std::vector<Metrics> ended_;  // not yet reported
  int64_t skipped_ = 0;         // consecutive updates
  bool noted_unlabelled_ = false;
  Clock::time_point last_end_ = {};
};

LoopEnd run_steps(Rank& rank, const LoopOptions& options, Saver& saver, Progress& progress) {
  const config::Settings& s = rank.settings();
  Times times;
  Inputs inputs = open_inputs(rank, progress.step);
  const std::filesystem::path* const folder = options.folder ? &options.folder->path() : nullptr;
  Stragglers stragglers(rank, folder, options.observer);
  StepTraces traces(rank, folder, options.observer, stragglers);
  Steps steps(rank, inputs, saver, stragglers, options);
  std::optional<ReplicaChecks> replicas;
  if (s.parallel.check_replicas_every > 0 && rank.world.size() > 1)
    replicas.emplace(*rank.executor, rank.world, *rank.all);
  LoopEnd end;
  if (progress.interrupted) make_up(rank, inputs, options, progress, end);
  if (progress.step > 0 && end.stop == Stop::none && stops_here(options, progress.step)) end.stop = Stop::step;
  while (progress.step < s.train.steps && end.stop == Stop::none) {
    if (is_full(s.train, progress.step)) traces.before_step();
    tell_begin(options, fmt::format("step {}/{}", progress.step + 1, s.train.steps));
    steps.begin(progress);
    if (options.begun) options.begun();

    if (options.folder) options.folder->require_there();
    traces.after_step(progress.step);
    const bool last = progress.step >= s.train.steps;
    const bool compare = rank.leads() && !rank.executor->on_device() && stragglers.due();
    Decision decision = decide_after_step(rank, options, progress, times,
                                          {.measure = traces.due(), .writes = saver.writes(), .compare = compare});
    if (decision.measure) traces.ask();
    if (decision.compare) stragglers.compare(progress.step);
    decision.writes ? saver.advance() : saver.finish(progress);
    if (!last && decision.stop == Stop::none && !decision.save && !is_due(s, progress.step)) {
      steps.tell_of_ended();
      continue;
    }
    Metrics m = steps.end_all(progress);
    progress.interrupted = true;  // until it is done
    progress.interrupted = !look_between_steps(rank, between(rank, inputs), options, progress, m);
    if (progress.interrupted) decision.stop = Stop::signal;
    if (m.validation_loss) end.validation_loss = m.validation_loss;
    steps.tell_of(m);
    const bool best = is_best(m.validation_loss, progress.best_validation_loss);
    const bool saves = last || decision.stop != Stop::none || decision.save || best ||
                       every_so_often(s.checkpoint.every, progress.step);
    if (replicas && (saves || every_so_often(s.parallel.check_replicas_every, progress.step)))
      replicas->compare(progress.step);
    if (saves) {
      tell_begin(options, fmt::format("saving step {}", progress.step));
      saver.save(best ? m.validation_loss : std::nullopt, progress);
      times.saved = Clock::now();
    }
    if (last || decision.stop != Stop::none) saver.finish(progress);
    if (options.folder && last) options.folder->require_there();
    if (!last) end.stop = decision.stop;
  }
  if (options.metrics) options.metrics->require_there();
  return end;
}

// Finishes a save in progress, and says what there is to resume from.
std::string finish_and_say(const Rank& rank, Saver& saver, Progress& progress) {
  const bool open = saver.under_way() && !rank.leads();  // rank 0 may still finish it
  saver.finish_alone(progress);
  if (open) return "--resume continues from the newest checkpoint";
  if (progress.checkpoint.empty()) return "nothing was saved yet";
  return fmt::format("the newest checkpoint, {}, is complete; --resume continues from it",
                     progress.checkpoint.string());
}

}  // namespace

LoopEnd run_steps(Rank& rank, const LoopOptions& options, Progress& progress) {
  Saver saver(rank);
  try {
    return run_steps(rank, options, saver, progress);
  } catch (const RewardFailure& failure) {
    if (progress.step > 0 && progress.checkpoint != checkpoint::step_folder(rank.folder(), progress.step))
      saver.save(std::nullopt, progress);
    std::string_view what = failure.what();  // "[train] [reward] ..."
    for (size_t at; what.starts_with('[') && (at = what.find("] ")) != what.npos;) what.remove_prefix(at + 2);
    throw base::UserError("train", "step {}: {}; {}", progress.step + 1, what, finish_and_say(rank, saver, progress));
  } catch (const DataFailure& failure) {
    throw base::UserError("train", "{}; {}", std::string_view(failure.what()).substr(sizeof("[train] ") - 1),
                          finish_and_say(rank, saver, progress));
  } catch (...) {  // the copied states are written first: they are a checkpoint too
    saver.finish_alone(progress);
    throw;
  }
}

}  // namespace kintsugi::train
