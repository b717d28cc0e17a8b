// Identifies the data of a run by content: stored in checkpoints so that a resumed run uses the same data, and compared
// across ranks.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/base/json_writer.h"

namespace kintsugi::checkpoint {
class CheckpointReader;
}

namespace kintsugi::train {

enum class DataRole { tokenizer, train, validation };

// A file, or a pair of files with one name.
struct DataPart {
  DataRole role = DataRole::train;
  std::string path;
  std::string fingerprint;  // of the content

  bool operator==(const DataPart&) const = default;
};

using DataIdentity = std::vector<DataPart>;  // the tokenizer first, if there is one

// One line per part, with path and fingerprint.
std::string to_lines(const DataIdentity& data);

// Writes a JSON list, which data_of() reads.
void write_data(const DataIdentity& data, base::JsonWriter& json);

// The data with which the run of this checkpoint began. Checkpoints of earlier versions record only the tokenizer;
// unknown parts are omitted. Throws UserError if the state of the checkpoint is damaged.
DataIdentity data_of(const checkpoint::CheckpointReader& reader);

// Throws UserError that names all parts that have changed since the run in `run_folder` began.
void require_same_data(const DataIdentity& began, const DataIdentity& now, const std::string& run_folder);

}  // namespace kintsugi::train
