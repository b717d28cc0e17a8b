#include "kintsugi/checkpoint/writer.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/read_only_file.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/local_parts.h"
#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/checkpoint/where.h"

namespace kintsugi::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunk = size_t{1} << 20;  // bytes checksummed and copied at a time, whatever the size of the tensor

// Runs f, converting its UserErrors into errors of the save.
template <typename F>
void saving(int64_t step, F&& f) {
  try {
    f();
  } catch (const base::UserError& error) {
    std::string_view what = error.what();
    if (const size_t place = what.find("] "); place != what.npos) what.remove_prefix(place + 2);
    throw base::UserError(kWhere, "step {} is not saved, earlier checkpoints are untouched: {}", step, what);
  }
}

fs::path part_list(const fs::path& folder, int rank) {
  return folder / fmt::format("rank_{:05}.json", rank);
}

void write_whole(const fs::path& path, std::string_view content) {
  base::FileWriter file(path);
  file.write(content);
  file.close();
}

}  // namespace

void copy_part(const fs::path& file, const fs::path& folder, int rank, std::string_view index,
               double bytes_per_second) {
  using Clock = std::chrono::steady_clock;
  const base::ReadOnlyFile from(file);
  base::FileWriter to(folder / rank_file(rank));
  const auto began = Clock::now();
  base::for_each_block(from, [&](std::span<const std::byte> block) {
    to.write(block);
    if (bytes_per_second > 0)
      std::this_thread::sleep_until(began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                                static_cast<double>(to.size()) / bytes_per_second)));
  });
  to.close();
  base::write_file_atomically(part_list(folder, rank), index);
}

CheckpointWriter::CheckpointWriter(fs::path run_folder, int64_t step, int rank, int ranks)
    : run_folder_(std::move(run_folder)), folder_(part_folder(run_folder_, step)), rank_(rank), ranks_(ranks) {
  base::require(step >= 0 && 0 <= rank && rank < ranks, kWhere, "step {}, rank {} of {}", step, rank, ranks);
  index_.step = step;
  keys_.insert("__metadata__");
  saving(step, [&] {
    if (rank_ == 0) {
      base::make_folders(run_folder_);
      remove_leftovers(run_folder_);
      base::make_folders(folder_);
    } else if (std::error_code error; !fs::is_directory(folder_, error)) {
      throw base::UserError(kWhere, "rank {} finds no {}, which rank 0 should have made", rank_,
                            base::in_quotes(folder_.string()));
    }
  });
}

CheckpointWriter::~CheckpointWriter() {
  if (finished_ || rank_ != 0) return;
  base::remove_if_possible(folder_);  // if it fails, the next save retries
}

void CheckpointWriter::add(const Piece& piece, std::span<const std::byte> bytes) {
  const Box box = piece.box.value_or(whole_box(piece.type.shape));
  const int64_t expected = piece.flat.value_or(whole_range(box)).size() * size_of(piece.type.dtype);
  base::require(static_cast<int64_t>(bytes.size()) == expected, kWhere, "a piece of {} has {} bytes, {} are given",
                piece.name, expected, bytes.size());
  add(piece, [bytes](const Sink& sink) { sink(bytes); });
}

void CheckpointWriter::add(const Piece& piece, Source source) {
  StoredPiece stored;
  stored.part.box = piece.box.value_or(whole_box(piece.type.shape));
  stored.part.flat = piece.flat.value_or(whole_range(stored.part.box));
  base::require(fits(stored.part.box, piece.type.shape), kWhere, "box {} does not fit into {} {}",
                to_string(stored.part.box), piece.name, to_string(piece.type.shape));
  base::require(fits(stored.part.flat, stored.part.box), kWhere, "range {} to {} does not fit into box {} of {}",
                stored.part.flat.begin, stored.part.flat.end, to_string(stored.part.box), piece.name);
  StoredTensor& tensor = index_.tensors.try_emplace(piece.name, StoredTensor{piece.type, piece.kind, {}}).first->second;
  base::require(tensor.type == piece.type && tensor.kind == piece.kind, kWhere, "{} is added as two different tensors",
                piece.name);
  if (stored.part.flat.size() == 0) return;
  stored.file = rank_file(rank_);
  stored.key = free_key(piece.name);
  added_.push_back({piece.name, tensor.pieces.size(), std::move(source)});
  tensor.pieces.push_back(std::move(stored));
}

// Uses the tensor's own name if it is free, so that other programs find whole tensors under it.
std::string CheckpointWriter::free_key(const std::string& name) {
  std::string key = name;
  for (int i = 1; !keys_.insert(key).second; ++i) key = fmt::format("{}#{}", name, i);
  return key;
}

void CheckpointWriter::write(base::Writing way) {
  saving(index_.step, [&] {
    write_file(folder_ / rank_file(rank_), way, true);
    base::write_file_atomically(part_list(folder_, rank_), print_index(index_));
  });
}

void CheckpointWriter::stage(const fs::path& local, const Contents& contents) {
  saving(index_.step, [&] {
    base::make_folders(local);
    const fs::path file = local_file(local, run_folder_, rank_, LocalKind::staged);
    remove_part(file);
    write_file(file, base::Writing::through_cache, false);
    staged_ = std::make_unique<LocalPart>(LocalPart{.file = file,
                                                    .step = index_.step,
                                                    .rank = rank_,
                                                    .ranks = ranks_,
                                                    .bytes = index_.files.at(rank_file(rank_)).bytes,
                                                    .list = print_index(index_)});
    if (rank_ == 0) staged_->contents = contents;
    write_description(file, describe(*staged_));
  });
}

void CheckpointWriter::drain(double bytes_per_second) {
  saving(index_.step, [&] { copy_part(staged_->file, folder_, rank_, staged_->list, bytes_per_second); });
}

void CheckpointWriter::remove_staged() {
  if (staged_) remove_part(staged_->file);
  staged_.reset();
}

void CheckpointWriter::write_file(const fs::path& path, base::Writing way, bool sync) {
  std::vector<SafetensorsTensor> tensors;
  for (const Added& added : added_) {
    const StoredTensor& tensor = index_.tensors.at(added.name);
    const StoredPiece& piece = tensor.pieces[added.position];
    const bool whole = piece.part.flat == whole_range(piece.part.box);
    tensors.push_back(
        {piece.key, tensor.type.dtype, whole ? piece.part.box.size : std::vector{piece.part.flat.size()}});
  }
  SafetensorsWriter file(path, tensors, {{"step", std::to_string(index_.step)}, {"rank", std::to_string(rank_)}}, way);
  for (size_t i = 0; i < added_.size(); ++i) {
    Checksum checksum;
    uint64_t bytes = 0;
    added_[i].source([&](std::span<const std::byte> span) {
      bytes += span.size();
      while (!span.empty()) {
        const std::span<const std::byte> some = span.first(std::min(span.size(), kChunk));
        checksum.add(some);
        file.write(some);
        span = span.subspan(some.size());
      }
    });
    base::require(bytes == tensors[i].bytes(), kWhere, "a piece of {} has {} bytes, {} are given", added_[i].name,
                  tensors[i].bytes(), bytes);
    index_.tensors.at(added_[i].name).pieces[added_[i].position].checksum = checksum.value();
  }
  sync ? file.close() : file.close_unsynced();
  index_.files[rank_file(rank_)] = {file.size(), checksum_of(file.head())};
}

bool CheckpointWriter::all_have_written() const {
  std::error_code error;
  for (int rank = 0; rank < ranks_; ++rank)
    if (!fs::exists(part_list(folder_, rank), error)) return false;
  return true;
}

fs::path CheckpointWriter::finish(const Contents& contents) {
  base::require(rank_ == 0 && !finished_, kWhere, "rank {} finishes step {}", rank_, index_.step);
  const fs::path place = step_folder(run_folder_, index_.step);
  saving(index_.step, [&] {
    join(contents);
    move_into_place(folder_, place);
  });
  finished_ = true;
  return place;
}

void CheckpointWriter::join(const Contents& contents) {
  Index whole;
  whole.step = index_.step;
  const auto state = base::Json::parse(kWhere, "the state", contents.state);
  base::require(state.is_object(), kWhere, "the state is no JSON object: {}", contents.state);
  whole.state = state.compact();
  for (int rank = 0; rank < ranks_; ++rank) {
    const fs::path path = part_list(folder_, rank);
    std::error_code error;
    if (!fs::exists(path, error)) throw base::UserError(kWhere, "rank {} has not written its part", rank);
    merge(path.string(), whole, parse_index(path.string(), base::read_file(path)));
    fs::remove(path, error);
  }
  const auto beside = [&](std::string_view name, std::string_view content) {
    write_whole(folder_ / name, content);
    whole.files[std::string(name)] = {content.size(), checksum_of(content)};
  };
  beside(kConfigFile, contents.config);
  if (!contents.tokenizer.empty()) beside(kTokenizerFile, contents.tokenizer);
  check_coverage((folder_ / kIndexFile).string(), whole);
  const std::string text = print_index(whole);
  write_whole(folder_ / kIndexFile, text);
  write_whole(folder_ / kIndexChecksumFile, checksum_text(checksum_of(text)) + "\n");
}

}  // namespace kintsugi::checkpoint
