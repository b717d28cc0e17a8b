#include "kintsugi/train/checkpoints.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/exchange/quantized.h"
#include "kintsugi/exchange/upcycle.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/models/lora.h"
#include "kintsugi/models/step.h"
#include "kintsugi/train/data_identity.h"
#include "kintsugi/train/replicas.h"

namespace kintsugi::train {
namespace {

// What a checkpoint holds besides states.
struct Saved {
  int64_t tokens = 0;
  std::optional<double> best_validation_loss;  // of this checkpoint, if it was the best when saved
  bool interrupted = false;                    // as in Progress
};                                             // also the data identity, see data_identity.h

std::string to_json(const Saved& saved, int64_t step, uint64_t seed, const DataIdentity& data) {
  base::JsonWriter state;
  state.object([&] {
    state.key("next_step").value(step).key("tokens").value(saved.tokens).key("seed").value(seed);
    if (saved.best_validation_loss) state.key("best_validation_loss").value(*saved.best_validation_loss);
    if (saved.interrupted) state.key("interrupted").value(true);
    write_data(data, state.key("data"));
  });
  return state.text();
}

Saved saved_from(const std::string& json, const std::filesystem::path& index) {
  Saved saved;
  const auto state = base::Json::parse("checkpoint", "the state in " + index.string(), json);
  if (const auto tokens = state.find("tokens")) saved.tokens = tokens->whole();
  if (const auto best = state.find("best_validation_loss")) saved.best_validation_loss = best->number();
  if (const auto interrupted = state.find("interrupted")) saved.interrupted = interrupted->boolean();
  return saved;
}

// The best checkpoint so far, from best.json; if that is damaged, from the checkpoints themselves, and it is rewritten.
std::optional<checkpoint::Best> read_or_find_best(const std::filesystem::path& folder) {
  try {
    return checkpoint::read_best(folder);
  } catch (const base::UserError& error) {
    spdlog::warn("{}; the best is taken from the checkpoints", error.what());
  }
  std::optional<checkpoint::Best> best;
  for (const checkpoint::SavedStep& saved : checkpoint::list(folder)) {
    try {
      const auto loss =
          saved_from(checkpoint::CheckpointReader(saved.folder).state(), saved.folder / checkpoint::kIndexFile)
              .best_validation_loss;
      if (loss && (!best || *loss < best->validation_loss)) best = {.step = saved.step, .validation_loss = *loss};
    } catch (const base::UserError&) {  // damaged; reported when it is opened for loading
    }
  }
  checkpoint::remove_best(folder);
  if (best) checkpoint::write_best(folder, *best);
  return best;
}

// The same loss on all ranks.
std::optional<double> best_loss(Rank& rank) {
  double loss = std::numeric_limits<double>::quiet_NaN();
  comm::together(*rank.all, [&] {
    if (!rank.leads()) return;
    if (const auto best = read_or_find_best(rank.folder())) loss = best->validation_loss;
  });
  loss = std::bit_cast<double>(comm::of_rank_0(*rank.all, std::bit_cast<int64_t>(loss)));
  return std::isnan(loss) ? std::nullopt : std::optional(loss);
}

void resume_from(Rank& rank, const checkpoint::CheckpointReader& reader, Progress& progress) {
  checkpoint::load_states(*rank.executor, *rank.all, reader, checkpoint::Load::everything);
  const Saved saved = saved_from(reader.state(), reader.folder() / checkpoint::kIndexFile);
  progress.step = reader.step();
  progress.tokens = saved.tokens;
  progress.checkpoint = reader.folder();
  progress.interrupted = saved.interrupted;
  // The run may have been killed between a save and writing best.json.
  if (saved.best_validation_loss) set_best(rank, *saved.best_validation_loss, progress);
}

// Weights can be loaded with another tokenizer of the same size, but were not trained with it.
void warn_of_tokenizer(const Rank& rank, const exchange::SavedModel& from) {
  const std::string &then = from.tokenizer, &now = rank.corpus.tokenizer_json;
  if (!rank.leads() || then.empty() || now.empty() || then == now) return;
  spdlog::warn(
      "the weights of \"{}\" were trained with another tokenizer than that of the data: \"{}\" of fingerprint "
      "{}, \"{}\" of {}",
      from.folder().string(), (from.folder() / "tokenizer.json").string(), data::tokenizer_fingerprint(then),
      rank.corpus.identity[0].path, rank.corpus.identity[0].fingerprint);
}

// Weights of equal shapes may belong to a model that computes something else, for example with another rope_theta.
void warn_of_model(const Rank& rank, const exchange::SavedModel& from) {
  if (!rank.leads()) return;
  const config::Settings then = from.settings();
  for (const config::Key& key : config::keys()) {
    if (key.section != "model" || key.name == "name" || key.name == "bias" || key.name == "context" ||
        key.name == "dropout" || key.name == "objective" || key.name == "outputs" || key.name == "stem" ||
        key.get(then) == key.get(rank.settings()))
      continue;
    spdlog::warn("the weights of \"{}\" are of a model with {} = {}; here it is {}", from.folder().string(), key.name,
                 config::to_toml(key.get(then)), config::to_toml(key.get(rank.settings())));
  }
}

bool begins_new(const config::Train& train, std::string_view name) {
  return std::ranges::any_of(train.init_new, [&](const std::string& begin) { return name.starts_with(begin); });
}

// Throws UserError for a prefix that matches no weight of the model.
void require_begun(const Rank& rank) {
  const std::vector<std::string>& begins = rank.settings().train.init_new;
  if (begins.empty()) return;
  graph::StateTable states;
  models::build_forward(rank.settings(), states);
  for (const std::string& begin : begins)
    if (std::ranges::none_of(states, [&](const graph::State& s) { return s.name.starts_with(begin); }))
      throw base::UserError("train",
                            "train.init_new: no weight's name begins with \"{}\"; `kintsugi show` prints the names",
                            base::one_line(begin, 60));
}

// Whether the initial model has adapters of the run's shapes.
bool takes_adapters(const Rank& rank, const exchange::SavedModel& from) {
  const config::Lora then = from.settings().lora;
  return then.rank > 0 && then.rank == rank.settings().lora.rank && then.targets == rank.settings().lora.targets;
}

// Throws UserError if adapters that the weights depend on would be dropped.
void require_adapters(const Rank& rank, const exchange::SavedModel& from) {
  if (from.settings().lora.rank == 0 || takes_adapters(rank, from)) return;
  throw base::UserError(
      "train",
      "the model of train.init_from has adapters of rank {}; give [lora] the same rank and targets to "
      "train them on, or merge them first: kintsugi export --merge",
      from.settings().lora.rank);
}

// The stem of a ResNet follows from the size of the images, unless the run names it.
void require_stem(const Rank& rank, const exchange::SavedModel& from) {
  constexpr std::string_view kFirst = "conv1.weight";
  const config::Model &ours = rank.settings().model, theirs = from.settings().model;
  if (!ours.family.starts_with("resnet") || theirs.family != ours.family || begins_new(rank.settings().train, kFirst))
    return;
  graph::StateTable states;
  models::build_forward(rank.settings(), states);
  const auto first = std::ranges::find(states, kFirst, &graph::State::name);
  const int64_t kernel = from.weights->type(kFirst).shape[0].size, wanted = first->type.shape[0].size;
  if (kernel == wanted) return;
  throw base::UserError("train",
                        "the first convolution of \"{}\" is {} x {}, that of a ResNet with images of {} x {} is {} x "
                        "{}; set model.stem = \"{}\", or train.init_new = [\"conv1\"]",
                        from.folder().string(), kernel, kernel, ours.image_height, ours.image_width, wanted, wanted,
                        kernel > wanted ? "large" : "small");
}

// Whether the frozen matrices are stored as int8 codes.
bool is_coded(const config::Lora& lora) {
  return models::frozen_dtype(lora) == tensor::DType::i8;
}

void write_best(const Rank& rank, const checkpoint::Best& best) {
  if (rank.leads() && checkpoint::read_best(rank.folder()) != best) checkpoint::write_best(rank.folder(), best);
}

void settle_replicas(Rank& rank) {
  const std::string& replicas = rank.settings().parallel.replicas;
  if (replicas == "broadcast") broadcast_replicas(*rank.executor, rank.world);
  if (replicas == "check") check_replicas(*rank.executor, rank.world);
}

}  // namespace

void set_best(const Rank& rank, double validation_loss, Progress& progress) {
  progress.best_validation_loss = validation_loss;
  write_best(rank, {.step = progress.step, .validation_loss = validation_loss});
}

Progress restore(Rank& rank, bool resume, const std::function<void(const std::string&)>& note) {
  const config::Train& train = rank.settings().train;
  const std::filesystem::path folder = rank.folder();
  Progress progress;
  rank.executor->initialize(train.seed,
                            !rank.newest && (train.init_from.empty() || !train.init_new.empty() ||
                                             rank.settings().lora.rank > 0 || rank.settings().model.experts > 0));
  progress.best_validation_loss = best_loss(rank);
  if (rank.newest) {
    resume_from(rank, *rank.newest, progress);
    note(fmt::format("resumed at step {} from {}", progress.step, rank.newest->folder().string()));
    rank.newest.reset();
  } else if (!train.init_from.empty()) {
    exchange::SavedModel from = exchange::open_model(train.init_from, *rank.all);
    const bool adapts = takes_adapters(rank, from),
               upcycles = exchange::is_upcycled(rank.settings().model, from.settings().model);
    comm::together(*rank.all, [&] {
      require_begun(rank);
      require_adapters(rank, from);
      require_stem(rank, from);
      warn_of_tokenizer(rank, from);
      const bool was_coded = is_coded(from.settings().lora), coded = is_coded(rank.settings().lora);
      if (was_coded && !coded) from.weights = exchange::dequantized(std::move(from.weights), from.settings());
      if (upcycles) from.weights = exchange::upcycled(std::move(from.weights), rank.settings().model);
      if (coded && !was_coded) from.weights = exchange::quantized(std::move(from.weights), rank.settings());
    });
    checkpoint::load_states(*rank.executor, *rank.all, *from.weights, checkpoint::Load::weights,
                            [&](std::string_view name) {
                              return begins_new(train, name) || (!adapts && models::is_adapter(name)) ||
                                     (upcycles && exchange::is_of_router(name));
                            });
    if (!upcycles) comm::together(*rank.all, [&] { warn_of_model(rank, from); });
    note(fmt::format("weights from {}{}", from.folder().string(),
                     upcycles ? ", each expert a copy of its feed-forward layer, with new routers" : ""));
  } else if (resume) {
    note("no checkpoint yet: starting from step 0");
  }
  settle_replicas(rank);
  return progress;
}

Saver::Saver(Rank& rank) : rank_(rank) {
  const config::Checkpoint& s = rank.settings().checkpoint;
  if (!rank.executor->on_device() && s.local.empty()) return;
  const auto failure = comm::failure_of(*rank.all, [&] {
    save_.emplace(*rank.executor, checkpoint::LocalFolder{s.local, 1e6 * s.drain_megabytes});
  });
  if (!failure && !s.local.empty() && s.neighbour && rank.world.size() > 1) {
    copies_ = std::make_unique<checkpoint::NeighbourCopies>(rank.world, launch::this_process().host, s.local);
    if (!copies_->several_nodes()) copies_.reset();
  }
  if (!failure) return;
  save_.reset();
  if (rank.leads()) spdlog::warn("{}: the run waits for each checkpoint until it is written", *failure);
}

void Saver::save(std::optional<double> best, Progress& progress) {
  finish(progress);
  const config::Settings& s = rank_.settings();
  const Saved saved = {.tokens = progress.tokens, .best_validation_loss = best, .interrupted = progress.interrupted};
  const checkpoint::Contents contents = {.state = to_json(saved, progress.step, s.train.seed, rank_.corpus.identity),
                                         .config = config::to_toml(rank_.config),
                                         .tokenizer = rank_.corpus.tokenizer_json};
  best_.reset();
  if (best) best_ = {.step = progress.step, .validation_loss = *best};
  if (best) progress.best_validation_loss = best;
  if (save_) return save_->begin(*rank_.all, rank_.folder(), progress.step, contents);
  const auto began = std::chrono::steady_clock::now();
  this->saved(checkpoint::save_states(*rank_.executor, *rank_.all, rank_.folder(), progress.step, contents), progress);
  times_ = {.stage = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
}

void Saver::advance() {
  if (!copies_ || !under_way() || copied_) return;
  if (copies_->under_way()) {
    copied_ = copies_->advance();
  } else if (!comm::on_any(*rank_.all, save_->staged() == nullptr)) {
    copies_->begin(rank_.folder(), *save_->staged());
    copied_ = copies_->advance();
  }
}

void Saver::finish(Progress& progress) {
  if (!under_way()) return;
  std::filesystem::path checkpoint = save_->finish(*rank_.all);
  double copying = 0;
  if (copies_) {
    copies_->end();
    copying = copies_->seconds();
    copied_ = false;
  }
  saved(std::move(checkpoint), progress);
  times_ = {.stage = save_->stage_seconds() + copying, .drain = save_->drain_seconds()};
}

void Saver::finish_alone(Progress& progress) noexcept {
  if (!save_) return;
  try {
    if (const auto checkpoint = save_->finish_alone()) saved(*checkpoint, progress);
  } catch (const std::exception&) {  // the error that ended the run takes precedence
  }
}

void Saver::saved(std::filesystem::path checkpoint, Progress& progress) {
  progress.checkpoint = std::move(checkpoint);
  if (best_) write_best(rank_, *best_);
  if (rank_.leads()) checkpoint::prune(rank_.folder(), rank_.settings().checkpoint.keep);
}

}  // namespace kintsugi::train
