#include "kintsugi/train/trainer.h"

#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kintsugi/base/bind.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/open.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/checkpoint/together.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/data/loader.h"
#include "kintsugi/models/step.h"
#include "kintsugi/program/print.h"
#include "kintsugi/run/evaluate_pass.h"
#include "kintsugi/train/build_program.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/find_bad.h"
#include "kintsugi/train/learning_rate.h"
#include "kintsugi/train/memory_limit.h"
#include "kintsugi/train/replicas.h"
#include "kintsugi/train/run_folder.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

std::unique_ptr<comm::Communicator> everyone(comm::World& world) {
  std::vector<int> ranks(static_cast<size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return world.group(ranks);
}

// One rank of a run.
class RankTrainer {
 public:
  // `folder`: of rank 0 alone.
  RankTrainer(TrainOptions options, RunFolder* folder, comm::World& world, Observer* observer)
      : options_(std::move(options)),
        observer_(observer),
        folder_(folder),
        path_(options_.config.settings.train.folder),
        world_(world),
        all_(everyone(world)),
        corpus_(shared_corpus()),
        s_(options_.config.settings),
        kernels_(kernels_of(s_)),
        team_(static_cast<int>(s_.parallel.threads)),
        executor_(checked_program(), *kernels_, team_, run::Place{.world = &world, .offload_folder = offload_folder()}),
        step_flops_(flops_of_stages_ * world.size() / s_.parallel.pipe),
        pass_rows_(s_.train.micro_batch * s_.parallel.data),
        train_rows_(executor_.input_rows("train")),
        evaluate_rows_(executor_.input_rows("evaluate")) {
    bind_threads();
  }

  Outcome run() {
    begin();
    std::optional<MetricsFile> metrics;
    if (folder_) {
      folder_->save_config(options_.config);
      metrics.emplace(folder_->metrics(), step_);
    }
    outcome_.step = step_;
    if (step_ >= s_.train.steps)
      note(fmt::format("nothing to do: {} of {} steps are done; a larger train.steps goes on", step_, s_.train.steps));
    if (step_ < s_.train.steps) loop(metrics ? &*metrics : nullptr);
    outcome_.finished = step_ >= s_.train.steps;
    return outcome_;
  }

 private:
  void note(const std::string& line) {
    if (observer_) observer_->note(line);
  }

  Corpus shared_corpus() {
    Corpus corpus;
    checkpoint::together(*all_, [&] { corpus = open_corpus(options_.config); });
    return corpus;
  }

  std::filesystem::path offload_folder() const {
    return s_.parallel.offload_folder.empty() ? path_ : std::filesystem::path(s_.parallel.offload_folder);
  }

  // The program, when all ranks have the same; else they would wait for each other.
  program::Program checked_program() {
    std::vector<program::Program> stages;
    checkpoint::together(*all_, [&] { stages = build_programs(s_, *kernels_); });
    require_memory(s_, stages, *all_);
    require_same(*all_, "processor", fmt::format("{}", fmt::join(base::this_processor().units, " ")));
    std::string text;
    for (const program::Program& p : stages) text += program::print(p);
    require_same(*all_, "program", text);
    for (const program::Program& p : stages) flops_of_stages_ += p.flops("train");
    return std::move(stages[static_cast<size_t>(program::stage_of(stages[0].mesh, world_.rank()))]);
  }

  // Each thread of each rank of this process on a core of its own, where there are as many.
  void bind_threads() {
    if (!s_.parallel.bind || world_.backend() != "threads" || world_.size() * team_.size() > base::usable_cores())
      return;
    const std::vector<int> cores = base::cores_of_process();
    team_.run(
        [&](int thread) { base::bind_thread(cores[static_cast<size_t>(world_.rank() * team_.size() + thread)]); });
  }

  // Weights and optimizer state: from a checkpoint of this run, from another's weights, or from the seed.
  void begin() {
    executor_.initialize(s_.train.seed);
    if (const auto best = checkpoint::read_best(path_)) outcome_.best_validation_loss = best->validation_loss;
    const auto newest = options_.resume ? checkpoint::open_newest_whole(path_, *all_) : nullptr;
    if (options_.resume && !newest && !checkpoint::list(path_).empty())
      throw checkpoint::SharedError(
          "train",
          "nothing to resume in \"{}\": each of its {} checkpoints is damaged; begin anew in another train.folder",
          path_.string(), checkpoint::list(path_).size());
    if (newest) {
      const checkpoint::CheckpointReader& reader = *newest;
      checkpoint::load_states(executor_, *all_, reader, checkpoint::Load::everything);
      step_ = reader.step();
      const auto state = nlohmann::json::parse(reader.state(), nullptr, false);
      tokens_ = state.is_object() ? state.value("tokens", int64_t{0}) : 0;
      outcome_.checkpoint = reader.folder();
      // A kill after a save may have come before best.json.
      if (state.is_object() && state.contains("best_validation_loss"))
        set_best(state["best_validation_loss"].get<double>());
      note(fmt::format("resumed at step {} from {}", step_, reader.folder().string()));
    } else if (!s_.train.init_from.empty()) {
      const auto from = checkpoint::open_checkpoint(s_.train.init_from, *all_);
      checkpoint::load_states(executor_, *all_, *from, checkpoint::Load::weights);
      note(fmt::format("weights from {}", from->folder().string()));
    } else if (options_.resume) {
      note("no checkpoint yet: from the beginning");
    }
    if (s_.parallel.replicas == "broadcast") broadcast_replicas(executor_, world_);
    if (s_.parallel.replicas == "check") check_replicas(executor_, world_);
  }

  // What the loader reads for this rank: its rows of each micro-batch where those are an even part, else all of them.
  data::Share share() const {
    const int64_t rows = train_rows_.last - train_rows_.first;
    const bool even = rows > 0 && pass_rows_ % rows == 0 && train_rows_.first % rows == 0;
    if (!even) return {.global_batch = s_.train.global_batch, .micro_batch = pass_rows_};
    return {.global_batch = s_.train.global_batch,
            .micro_batch = rows,
            .ranks = pass_rows_ / rows,
            .rank = train_rows_.first / rows};
  }

  // Hands a batch whose first row is row `first` of a micro-batch to the list's inputs.
  void feed(std::string_view list, const data::BatchView& batch, int64_t first) {
    executor_.set_input(list, "tokens", {batch.tokens, first, s_.train.sequence}, -1);
    executor_.set_input(list, "labels", {batch.labels, first, s_.train.sequence}, -1);
    if (!batch.document_starts.empty())
      executor_.set_input(list, "starts", {batch.document_starts, first, s_.train.sequence}, 0);
  }

  // Room for the rows of one batch.
  struct Batch {
    std::vector<int32_t> tokens, labels, starts;
    data::BatchView view;

    Batch(int64_t rows, const config::Settings& s) {
      const auto n = static_cast<size_t>(rows * s.train.sequence);
      tokens.resize(n);
      labels.resize(n);
      if (s.data.reset_at_document) starts.resize(n);
      view = {tokens, labels, starts};
    }
    void copy(const data::BatchView& from) {
      std::copy(from.tokens.begin(), from.tokens.end(), tokens.begin());
      std::copy(from.labels.begin(), from.labels.end(), labels.begin());
      std::copy(from.document_starts.begin(), from.document_starts.end(), starts.begin());
    }
  };

  void loop(MetricsFile* metrics) {
    const auto began = Clock::now();
    share_ = share();
    // A stage with several chunks asks for a micro-batch once for each of them.
    step_batches_.clear();
    for (int64_t m = 0; m < micro_batches(s_); ++m) step_batches_.emplace_back(share_.micro_batch, s_);
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
      if (options_.peak_flops > 0) m.peak_share = m.flops_per_second / (options_.peak_flops * world_.size());
      m.memory_bytes = executor_.allocated_bytes();

      const bool last = step_ >= s_.train.steps;
      const std::string stop = stop_reason(seconds_since(began));
      const bool evaluates =
          corpus_.validation && (last || (s_.train.evaluate_every > 0 && step_ % s_.train.evaluate_every == 0));
      if (evaluates) outcome_.validation_loss = m.validation_loss = validation_loss();
      if (metrics) metrics->write(m);
      if (observer_) observer_->step(m, s_.train.steps);
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
    kernels::Numbers numbers = {.seed = s_.train.seed,
                                .step = step_,
                                .batch_rows = pass_rows_,
                                .learning_rate = learning_rate(s_.train, step_)};
    int64_t read = 0;
    executor_.run("train", numbers, [&](int64_t m) {
      for (; read <= m; ++read) step_batches_[static_cast<size_t>(read)].copy(loader.next().batch);
      feed("train", step_batches_[static_cast<size_t>(m)].view, share_.place(0));
    });
    for (; read < static_cast<int64_t>(step_batches_.size()); ++read) loader.next();
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
    Batch batch(share_.micro_batch, s_);
    const std::string where = find_bad(executor_, *all_, numbers, [&](int64_t m) {
      corpus_.train->fill(share_.first_sample(static_cast<uint64_t>(step_), m), batch.view);
      feed("train", batch.view, share_.place(0));
    });
    const std::string what = std::isfinite(metrics.loss) ? "gradient norm" : "loss";
    std::string next = "nothing was saved yet: try a smaller learning_rate";
    if (!outcome_.checkpoint.empty()) {
      // What was bad before the step is in the checkpoint of the step before.
      const bool saved =
          where.ends_with("before the step") && outcome_.checkpoint == checkpoint::step_folder(path_, step_);
      next = fmt::format("the newest checkpoint, {}, {}", outcome_.checkpoint.string(),
                         saved ? "holds it too: go on from an older one, or begin anew, with a smaller learning_rate"
                               : "is whole: try a smaller learning_rate");
    }
    throw checkpoint::SharedError("train", "step {}: the {} is not finite; first bad value: {}; {}", step_ + 1, what,
                                  where.empty() ? "none when run again" : where, next);
  }

  double validation_loss() {
    const auto rows = static_cast<uint64_t>(pass_rows_);
    const auto all = static_cast<int64_t>((corpus_.validation->num_samples() + rows - 1) / rows);
    const int64_t batches = s_.train.evaluate_batches > 0 ? std::min(all, s_.train.evaluate_batches) : all;
    Batch batch(evaluate_rows_.last - evaluate_rows_.first, s_);
    const run::LossSum loss = run::run_evaluation(executor_, batches, [&](int64_t i) {
      corpus_.validation->fill(static_cast<uint64_t>(i * pass_rows_ + evaluate_rows_.first), batch.view);
      feed("evaluate", batch.view, evaluate_rows_.first);
    });
    return loss.mean();
  }

  void save(const Metrics& m, bool best) {
    nlohmann::ordered_json state = {{"next_step", step_}, {"tokens", tokens_}, {"seed", s_.train.seed}};
    if (best) state["best_validation_loss"] = *m.validation_loss;
    outcome_.checkpoint = checkpoint::save_states(
        executor_, *all_, path_, step_,
        {.state = state.dump(), .config = config::to_toml(options_.config), .tokenizer = corpus_.tokenizer_json});
    if (best) set_best(*m.validation_loss);
    if (folder_) checkpoint::prune(path_, s_.checkpoint.keep);
  }

  // The checkpoint of this step is the best so far.
  void set_best(double validation_loss) {
    outcome_.best_validation_loss = validation_loss;
    const checkpoint::Best best = {.step = step_, .validation_loss = validation_loss};
    if (folder_ && checkpoint::read_best(path_) != best) checkpoint::write_best(path_, best);
  }

  // Why to stop after this step, the same on every rank.
  std::string stop_reason(double seconds) {
    enum Reason : int32_t { kNone, kTime, kSignal };
    int32_t mine = kNone, any = kNone;
    if (s_.train.stop_after_minutes > 0 && seconds >= 60.0 * s_.train.stop_after_minutes) mine = kTime;
    if (options_.stop && options_.stop->load() != 0) mine = kSignal;
    try {
      all_->wait(all_->all_reduce(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&any, 1)),
                                  tensor::DType::i32, comm::Reduction::max));
    } catch (const comm::Timeout& e) {
      const std::string_view why = std::string_view(e.what()).substr(std::string_view("[comm] ").size());
      throw comm::Timeout(fmt::format("rank {}: after step {}, whether to stop: {}", world_.rank(), step_, why),
                          e.arrived, e.missing);
    }
    return any == kSignal ? "signal" : any == kTime ? "stop_after_minutes" : "";
  }

  TrainOptions options_;
  Observer* observer_;
  RunFolder* folder_;
  std::filesystem::path path_;
  comm::World& world_;
  std::unique_ptr<comm::Communicator> all_;
  Corpus corpus_;
  const config::Settings& s_;
  std::unique_ptr<kernels::KernelSet> kernels_;
  base::ThreadTeam team_;
  double flops_of_stages_ = 0;  // of a rank of each
  run::Executor executor_;
  double step_flops_;  // of all ranks
  int64_t pass_rows_;  // samples of a micro-batch, of all ranks
  run::Executor::RowRange train_rows_, evaluate_rows_;
  data::Share share_;
  std::vector<Batch> step_batches_;  // by micro-batch
  Outcome outcome_;
  int64_t step_ = 0;    // steps done
  int64_t tokens_ = 0;  // seen since the run began
};

// A line for each key, without where its value came from.
std::string values_of(const config::Settings& s) {
  std::string lines;
  for (const config::Key& key : config::keys())
    lines += fmt::format("{} = {}\n", key.full_name(), config::to_toml(key.get(s)));
  return lines;
}

std::string this_binary() {
  const base::MappedFile file("/proc/self/exe");
  return fmt::format("checksum {}", checkpoint::checksum_text(checkpoint::checksum_of(file.bytes())));
}

// Rank 0 takes the run's folder, and all go on with the configuration that it found there.
void share_config(TrainOptions& options, comm::World& world, std::unique_ptr<RunFolder>& folder) {
  const std::unique_ptr<comm::Communicator> all = everyone(world);
  require_same(*all, "binary", this_binary());
  require_same(*all, "configuration", values_of(options.config.settings));
  if (world.rank() == 0) folder = std::make_unique<RunFolder>(options.config, options.resume);
  const std::string text = text_of_leader(*all, config::to_toml(options.config));
  if (values_of(options.config.settings) != values_of(config::saved_text(text).settings))
    options.config = config::saved_text(text);
}

}  // namespace

Outcome train(TrainOptions options, std::span<const std::unique_ptr<comm::World>> worlds, Observer& observer) {
  require_ranks(*worlds[0], options.config.settings);
  std::unique_ptr<RunFolder> folder;
  if (worlds[0]->backend() == "threads" || worlds[0]->size() == 1) {
    folder = std::make_unique<RunFolder>(options.config, options.resume);
  } else {
    share_config(options, *worlds[0], folder);
  }
  Outcome outcome;
  comm::run_ranks(worlds, [&](comm::World& world) {
    const bool leads = world.rank() == 0;
    RankTrainer trainer(options, leads ? folder.get() : nullptr, world, leads ? &observer : nullptr);
    const Outcome mine = trainer.run();
    if (&world == worlds[0].get()) outcome = mine;
  });
  return outcome;
}

}  // namespace kintsugi::train
