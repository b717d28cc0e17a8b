#include "kintsugi/exchange/import_folder.h"

#include <algorithm>
#include <future>
#include <string_view>
#include <system_error>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/start_thread.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/writer.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/exchange/new_folder.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/exchange/peft_folder.h"
#include "kintsugi/exchange/read_strided.h"
#include "kintsugi/models/step.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::exchange {
namespace {

using checkpoint::Range;
using checkpoint::Sink;

// The weights in the order of their names, each in our order, a part at a time. Reads parts in blocks, prefetching the
// next block while one is used.
class ReadAhead {
 public:
  explicit ReadAhead(const FolderReader& reader) : reader_(reader) {
    for (const std::string& name : reader.names()) {
      const tensor::Type& type = reader.type(name);
      const int64_t all = type.shape.elements(), most = kPartBytes / size_of(type.dtype);
      for (int64_t at = 0; at < all; at += most) {
        const Range flat = {at, std::min(at + most, all)};
        const auto bytes = static_cast<size_t>(flat.size() * size_of(type.dtype));
        if (blocks_.empty() || blocks_.back().back().end + kAlignment + bytes > static_cast<size_t>(kPartBytes))
          blocks_.emplace_back();
        std::vector<Part>& block = blocks_.back();
        const size_t begin = block.empty() ? 0 : (block.back().end + kAlignment - 1) / kAlignment * kAlignment;
        block.push_back({.name = name, .flat = flat, .begin = begin, .end = begin + bytes});
      }
    }
    begin();
  }

  // Valid until the next call.
  std::span<const std::byte> next() {
    if (used_ == 0 || part_ == blocks_[used_ - 1].size()) {
      coming_.get();
      std::swap(memory_, ahead_);
      begin();
      ++used_;
      part_ = 0;
    }
    const Part& part = blocks_[used_ - 1][part_++];
    return std::span(memory_).subspan(part.begin, part.end - part.begin);
  }

 private:
  static constexpr size_t kAlignment = 8;  // of the largest elements

  struct Part {
    std::string_view name;
    Range flat;
    size_t begin, end;  // bytes of the block
  };

  void begin() {
    if (read_ == blocks_.size()) return;
    try {
      coming_ = std::async(std::launch::async, [this, &block = blocks_[read_]] { read(block); });
    } catch (const std::system_error& error) {
      base::throw_no_thread(error);
    }
    ++read_;
  }
  void read(const std::vector<Part>& block) {
    for (const Part& part : block)
      reader_.read({.name = part.name, .box = {}, .flat = part.flat}, reader_.type(part.name).dtype,
                   std::span(ahead_).subspan(part.begin, part.end - part.begin));
  }

  const FolderReader& reader_;
  std::vector<std::vector<Part>> blocks_;
  size_t read_ = 0, used_ = 0;  // number of blocks whose read, or use, has begun
  size_t part_ = 0;             // next part of the current block
  std::vector<std::byte> memory_ = std::vector<std::byte>(kPartBytes), ahead_ = memory_;
  std::future<void> coming_;  // read of ahead_ in flight; the last member, so that it is joined first
};

void write_weights(const FolderReader& reader, checkpoint::CheckpointWriter& writer) {
  ReadAhead parts(reader);
  for (const std::string& name : reader.names()) {
    const tensor::Type& type = reader.type(name);
    writer.add({.name = name, .type = type, .kind = checkpoint::Kind::weight, .box = {}, .flat = {}},
               [&](const Sink& sink) {
                 for (int64_t left = type.bytes(); left > 0;) {
                   const std::span<const std::byte> part = parts.next();
                   sink(part);
                   left -= static_cast<int64_t>(part.size());
                 }
               });
  }
  writer.write(base::Writing::to_disk);
}

// An adapter together with the weights of its base model.
Imported import_adapted(const ImportOptions& options) {
  const auto self = comm::self_communicator();
  const SavedModel saved = open_model(options.folder, *self);
  const config::Settings settings = saved.settings();
  const models::Graphs graphs = models::build_evaluation(settings, 1, 1);
  checkpoint::CheckpointWriter writer(options.run, 0);
  std::vector<std::byte> part;
  for (const graph::State& state : *graphs.states) {
    if (state.kind != graph::StateKind::weight) continue;
    const tensor::Type type = saved.weights->type(state.name);
    writer.add({.name = state.name, .type = type, .kind = checkpoint::Kind::weight, .box = {}, .flat = {}},
               [&saved, &part, type, name = state.name](const Sink& sink) {
                 const int64_t all = type.shape.elements(), most = kPartBytes / size_of(type.dtype);
                 for (int64_t at = 0; at < all; at += most) {
                   const Range flat = {at, std::min(at + most, all)};
                   part.resize(static_cast<size_t>(flat.size() * size_of(type.dtype)));
                   saved.weights->read({.name = name, .box = {}, .flat = flat}, type.dtype, part);
                   sink(part);
                 }
               });
  }
  writer.write(base::Writing::to_disk);
  return {.checkpoint =
              writer.finish({.state = std::string(kNoState), .config = saved.config, .tokenizer = saved.tokenizer}),
          .vocab = settings.model.vocab,
          .ids = 0,
          .notes = saved.notes};
}

Imported import_whole(const ImportOptions& options) {
  require_no_weight_file(options.folder);
  const FolderReader reader(options.folder, options.allow_not_finite);
  reader.require_head();
  const auto tokenizer = text::find_tokenizer(reader.folder());
  const checkpoint::Contents contents = {
      .state = std::string(kNoState), .config = config_of(reader), .tokenizer = tokenizer ? tokenizer->to_json() : ""};
  checkpoint::CheckpointWriter writer(options.run, 0);
  write_weights(reader, writer);
  return {.checkpoint = writer.finish(contents),
          .vocab = reader.config().model.vocab,
          .ids = tokenizer ? tokenizer->vocab_size() : 0,
          .notes = reader.notes()};
}

// Leftovers of a killed import.
bool holds_leftovers_only(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (!entry.path().filename().string().starts_with(".part-")) return false;
  return !error;
}

}  // namespace

Imported import_folder(const ImportOptions& options) {
  std::error_code error;
  const bool there = std::filesystem::exists(options.run, error);
  if (!there) base::make_folders(options.run);
  const auto lock = FolderLock::try_take(options.run);
  if (!lock && std::filesystem::is_directory(options.run, error))
    throw base::UserError("import", "{} is written by another import", base::in_quotes(options.run.string()));
  try {
    if (lock && holds_leftovers_only(options.run)) checkpoint::remove_leftovers(options.run);
    require_empty("import", options.run);
    return is_adapter_folder(options.folder) ? import_adapted(options) : import_whole(options);
  } catch (...) {
    if (lock && !there && holds_leftovers_only(options.run)) checkpoint::remove_leftovers(options.run);
    if (!there) std::filesystem::remove(options.run, error);  // only if empty
    throw;
  }
}

}  // namespace kintsugi::exchange
