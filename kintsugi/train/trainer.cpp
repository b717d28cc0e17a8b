#include "kintsugi/train/trainer.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/data/loader.h"
#include "kintsugi/models/step.h"
#include "kintsugi/run/evaluate_pass.h"
#include "kintsugi/train/build_program.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/find_bad.h"
#include "kintsugi/train/learning_rate.h"
#include "kintsugi/train/run_folder.h"

namespace kintsugi::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

class Trainer {
 public:
  Trainer(TrainOptions options, Observer& observer)
      : options_(std::move(options)),
        observer_(observer),
        folder_(options_.config, options_.resume),
        corpus_(open_corpus(options_.config)),
        s_(options_.config.settings),
        kernels_(kernels_of(s_)),
        team_(static_cast<int>(s_.parallel.threads)),
        executor_(build_program(s_, *kernels_), *kernels_, team_),
        step_flops_(executor_.program().flops("train")),
        train_in_(inputs("train")),
        evaluate_in_(inputs("evaluate")),
        share_{.global_batch = s_.train.global_batch, .micro_batch = s_.train.micro_batch, .ranks = s_.parallel.ranks} {
  }

  Outcome run() {
    begin();
    folder_.save_config(options_.config);
    MetricsFile metrics(folder_.metrics(), step_);
    outcome_.step = step_;
    if (step_ >= s_.train.steps)
      observer_.note(
          fmt::format("nothing to do: {} of {} steps are done; a larger train.steps goes on", step_, s_.train.steps));
    if (step_ < s_.train.steps) loop(metrics);
    outcome_.finished = step_ >= s_.train.steps;
    return outcome_;
  }

 private:
  struct Inputs {
    tensor::View tokens, labels, starts;  // int32 [batch seq]; starts has no data where there is no such input
  };

  Inputs inputs(std::string_view list) {
    Inputs in = {executor_.input(list, "tokens"), executor_.input(list, "labels"), {}};
    if (executor_.has_input(list, "starts")) in.starts = executor_.input(list, "starts");
    return in;
  }

  static data::BatchView batch_view(const Inputs& in) {
    return {in.tokens.as<int32_t>(), in.labels.as<int32_t>(),
            in.starts.data ? in.starts.as<int32_t>() : std::span<int32_t>()};
  }

  // Weights and optimizer state: from a checkpoint of this run, from another's weights, or from the seed.
  void begin() {
    executor_.initialize(s_.train.seed);
    if (const auto best = checkpoint::read_best(folder_.path())) outcome_.best_validation_loss = best->validation_loss;
    const auto newest = options_.resume ? checkpoint::newest_whole(folder_.path()) : std::nullopt;
    if (options_.resume && !newest && !checkpoint::list(folder_.path()).empty())
      throw base::UserError(
          "train",
          "nothing to resume in \"{}\": each of its {} checkpoints is damaged; begin anew in another train.folder",
          folder_.path().string(), checkpoint::list(folder_.path()).size());
    if (newest) {
      const checkpoint::CheckpointReader reader(newest->folder);
      checkpoint::load_states(executor_, reader, checkpoint::Load::everything);
      step_ = reader.step();
      const auto state = nlohmann::json::parse(reader.state(), nullptr, false);
      tokens_ = state.is_object() ? state.value("tokens", int64_t{0}) : 0;
      outcome_.checkpoint = newest->folder;
      // A kill after a save may have come before best.json.
      if (state.is_object() && state.contains("best_validation_loss"))
        set_best(state["best_validation_loss"].get<double>());
      observer_.note(fmt::format("resumed at step {} from {}", step_, newest->folder.string()));
    } else if (!s_.train.init_from.empty()) {
      const std::filesystem::path from = checkpoint::find_checkpoint(s_.train.init_from);
      checkpoint::load_states(executor_, checkpoint::CheckpointReader(from), checkpoint::Load::weights);
      observer_.note(fmt::format("weights from {}", from.string()));
    } else if (options_.resume) {
      observer_.note("no checkpoint yet: from the beginning");
    }
  }

  void loop(MetricsFile& metrics) {
    const auto began = Clock::now();
    data::Loader loader(*corpus_.train, {.share = share_,
                                         .first_step = static_cast<uint64_t>(step_),
                                         .end_step = static_cast<uint64_t>(s_.train.steps),
                                         .document_starts = s_.data.reset_at_document});
    while (step_ < s_.train.steps) {
      const auto start = Clock::now();
      Metrics m = one_step(loader);
      m.seconds = seconds_since(start);
      const auto step_tokens = s_.train.global_batch * s_.train.sequence;
      tokens_ += step_tokens;
      ++step_;
      m.step = step_;
      m.tokens = tokens_;
      m.tokens_per_second = static_cast<double>(step_tokens) / m.seconds;
      m.flops_per_second = step_flops_ / m.seconds;
      if (options_.peak_flops > 0) m.peak_share = m.flops_per_second / options_.peak_flops;
      m.memory_bytes = executor_.allocated_bytes();

      const bool last = step_ >= s_.train.steps;
      const std::string stop = stop_reason(seconds_since(began));
      const bool evaluates =
          corpus_.validation && (last || (s_.train.evaluate_every > 0 && step_ % s_.train.evaluate_every == 0));
      if (evaluates) outcome_.validation_loss = m.validation_loss = validation_loss();
      metrics.write(m);
      observer_.step(m, s_.train.steps);
      const bool best = m.validation_loss && std::isfinite(*m.validation_loss) &&
                        (!outcome_.best_validation_loss || *m.validation_loss < *outcome_.best_validation_loss);
      if (last || !stop.empty() || best || (s_.checkpoint.every > 0 && step_ % s_.checkpoint.every == 0)) save(m, best);
      outcome_.step = step_;
      if (!stop.empty() && !last) {
        outcome_.reason = stop;
        return;
      }
    }
  }

  Metrics one_step(data::Loader& loader) {
    kernels::Numbers numbers = {.seed = s_.train.seed, .step = step_, .learning_rate = learning_rate(s_.train, step_)};
    const data::BatchView to = batch_view(train_in_);
    executor_.run("train", numbers, [&](int64_t m) {
      const data::BatchView& from = loader.next().batch;
      std::memcpy(to.tokens.data(), from.tokens.data(), from.tokens.size_bytes());
      std::memcpy(to.labels.data(), from.labels.data(), from.labels.size_bytes());
      if (!to.document_starts.empty())
        std::memcpy(to.document_starts.data(), from.document_starts.data(), from.document_starts.size_bytes());
      numbers.batch_offset = share_.place(m);
    });
    Metrics metrics;
    metrics.loss = executor_.number(models::kLossSum) / executor_.number(models::kLossCount);
    metrics.learning_rate = numbers.learning_rate;
    metrics.gradient_norm = executor_.number(models::kGradientNorm);
    const bool updated = executor_.number(models::kFinite) != 0.0;
    // With a scaled loss an infinite gradient is the way to find the scale, and costs no more than the step.
    if (!std::isfinite(metrics.loss) || (!updated && s_.train.dtype != "fp16")) fail_not_finite(numbers, metrics);
    return metrics;
  }

  [[noreturn]] void fail_not_finite(kernels::Numbers numbers, const Metrics& metrics) {
    const std::string where = find_bad(executor_, numbers, [&](int64_t m) {
      corpus_.train->fill(share_.first_sample(static_cast<uint64_t>(step_), m), batch_view(train_in_));
    });
    const std::string what = std::isfinite(metrics.loss) ? "gradient norm" : "loss";
    std::string next = "nothing was saved yet: try a smaller learning_rate";
    if (!outcome_.checkpoint.empty()) {
      // What was bad before the step is in the checkpoint of the step before.
      const bool saved =
          where.ends_with("before the step") && outcome_.checkpoint == checkpoint::step_folder(folder_.path(), step_);
      next = fmt::format("the newest checkpoint, {}, {}", outcome_.checkpoint.string(),
                         saved ? "holds it too: go on from an older one, or begin anew, with a smaller learning_rate"
                               : "is whole: try a smaller learning_rate");
    }
    throw base::UserError("train", "step {}: the {} is not finite; first bad value: {}; {}", step_ + 1, what,
                          where.empty() ? "none when run again" : where, next);
  }

  double validation_loss() {
    const auto rows = s_.train.micro_batch;
    const auto all = static_cast<int64_t>((corpus_.validation->num_samples() + static_cast<uint64_t>(rows) - 1) /
                                          static_cast<uint64_t>(rows));
    const int64_t batches = s_.train.evaluate_batches > 0 ? std::min(all, s_.train.evaluate_batches) : all;
    const run::LossSum loss = run::run_evaluation(executor_, batches, [&](int64_t i) {
      corpus_.validation->fill(static_cast<uint64_t>(i * rows), batch_view(evaluate_in_));
    });
    return loss.mean();
  }

  void save(const Metrics& m, bool best) {
    nlohmann::ordered_json state = {{"next_step", step_}, {"tokens", tokens_}, {"seed", s_.train.seed}};
    if (best) state["best_validation_loss"] = *m.validation_loss;
    outcome_.checkpoint = checkpoint::save_states(
        executor_, folder_.path(), step_,
        {.state = state.dump(), .config = config::to_toml(options_.config), .tokenizer = corpus_.tokenizer_json});
    if (best) set_best(*m.validation_loss);
    checkpoint::prune(folder_.path(), s_.checkpoint.keep);
  }

  // The checkpoint of this step is the best so far.
  void set_best(double validation_loss) {
    outcome_.best_validation_loss = validation_loss;
    const checkpoint::Best best = {.step = step_, .validation_loss = validation_loss};
    if (checkpoint::read_best(folder_.path()) != best) checkpoint::write_best(folder_.path(), best);
  }

  std::string stop_reason(double seconds) const {
    if (options_.stop && options_.stop->load() != 0) return "signal";
    if (s_.train.stop_after_minutes > 0 && seconds >= 60.0 * s_.train.stop_after_minutes) return "stop_after_minutes";
    return "";
  }

  TrainOptions options_;
  Observer& observer_;
  RunFolder folder_;
  Corpus corpus_;
  const config::Settings& s_;
  std::unique_ptr<kernels::KernelSet> kernels_;
  base::ThreadTeam team_;
  run::Executor executor_;
  double step_flops_;
  Inputs train_in_;
  Inputs evaluate_in_;
  data::Share share_;
  Outcome outcome_;
  int64_t step_ = 0;    // steps done
  int64_t tokens_ = 0;  // seen since the run began
};

}  // namespace

Outcome train(TrainOptions options, Observer& observer) {
  return Trainer(std::move(options), observer).run();
}

}  // namespace kintsugi::train
