// Saves a checkpoint from one rank, or from several that share a file system.
//
//   one rank                         several
//   CheckpointWriter w(run, step);   rank 0 constructs its writer; barrier; the others construct theirs
//   w.add(...); ...                  each adds its pieces
//   w.write();                       each writes; barrier
//   w.finish(contents);              rank 0 finishes
//
// Until finish() returns no new checkpoint is visible, and the earlier ones are unchanged. Every error is a UserError
// that names the step; if a rank failed, rank 0 must not call finish(), which would fail because that rank's part is
// missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/index.h"

namespace kintsugi::checkpoint {

// The part of a tensor that a rank stores: without `box`, the whole tensor; without `flat`, the whole box.
struct Piece {
  std::string name;
  tensor::Type type;  // of the whole tensor
  Kind kind = Kind::weight;
  std::optional<Box> box;
  std::optional<Range> flat;  // elements of the box, row-major
};

// Supplies the bytes of a piece in order, in any number of spans, when they are written.
using Sink = std::function<void(std::span<const std::byte>)>;
using Source = std::function<void(const Sink&)>;

// What is stored besides the tensors.
struct Contents {
  std::string state = "{}";  // a JSON object: cursor, random state, loss scale
  std::string config;        // config.toml
  std::string tokenizer;     // tokenizer.json; empty if there is none
};

struct LocalPart;

// Copies the file of a rank and its index to the temporary folder of a checkpoint, at most `bytes_per_second` if that
// is not 0, and syncs it.
void copy_part(const std::filesystem::path& file, const std::filesystem::path& folder, int rank, std::string_view index,
               double bytes_per_second = 0);

class CheckpointWriter {
 public:
  // Rank 0 removes leftovers of earlier saves from the run's folder and creates the temporary folder.
  CheckpointWriter(std::filesystem::path run_folder, int64_t step, int rank = 0, int ranks = 1);
  ~CheckpointWriter();  // rank 0, if unfinished: removes the temporary folder to free disk space
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // write() reads `bytes`, which must stay valid until then; they are not copied. An empty piece stores nothing.
  void add(const Piece& piece, std::span<const std::byte> bytes);
  void add(const Piece& piece, Source source);

  // Writes and syncs this rank's file; through the page cache by default, which needs no thread and little memory.
  void write(base::Writing way = base::Writing::through_cache);

  // The same in two parts: stage() writes this rank's file to a folder on its node (local_parts.h), after which the
  // bytes of the pieces may change; drain() copies it to the checkpoint and syncs, at most `bytes_per_second` if that
  // is not 0. The staged file has a name of the run and the rank, so that a save that was killed leaves at most one.
  void stage(const std::filesystem::path& local, const Contents& contents);
  void drain(double bytes_per_second = 0);
  const LocalPart& staged() const { return *staged_; }  // after stage()
  void remove_staged();                                 // once the checkpoint is complete

  // For rank 0, while the others may still be writing.
  bool all_have_written() const;
  // Joins what all ranks have written and renames it into place, replacing an existing checkpoint of this step; returns
  // its folder. Throws UserError if a rank's part is missing, or the pieces do not cover their tensors.
  std::filesystem::path finish(const Contents& contents);

 private:
  struct Added {
    std::string name;  // of the tensor in the index
    size_t position;   // among its pieces
    Source source;
  };

  std::string free_key(const std::string& name);
  void write_file(const std::filesystem::path& path, base::Writing way, bool sync);
  void join(const Contents& contents);

  std::filesystem::path run_folder_;
  std::filesystem::path folder_;  // temporary
  std::unique_ptr<LocalPart> staged_;
  int rank_;
  int ranks_;
  Index index_;  // of this rank's pieces
  std::vector<Added> added_;
  std::set<std::string> keys_;
  bool finished_ = false;
};

}  // namespace kintsugi::checkpoint
