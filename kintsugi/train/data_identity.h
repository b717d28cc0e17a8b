// What a run learns from, by content: a checkpoint keeps it, so that a resumed run has the same, and all ranks compare
// it.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/base/json_writer.h"

namespace kintsugi::checkpoint {
class CheckpointReader;
}

namespace kintsugi::train {

enum class DataRole { tokenizer, train, validation };

// A file, or a pair of files of one name.
struct DataPart {
  DataRole role = DataRole::train;
  std::string path;
  std::string fingerprint;  // of the content

  bool operator==(const DataPart&) const = default;
};

using DataIdentity = std::vector<DataPart>;  // the tokenizer first, if there is one

// A line for each part, with its path and its fingerprint.
std::string to_lines(const DataIdentity& data);

// As a JSON list; data_of reads it.
void write_data(const DataIdentity& data, base::JsonWriter& json);

// What the run of this checkpoint began with. Of a checkpoint of an earlier version only the tokenizer is known; a part
// that is not known is left out. UserError if the state of the checkpoint is damaged.
DataIdentity data_of(const checkpoint::CheckpointReader& reader);

// UserError that names all parts that are not as they were when the run in `run_folder` began.
void require_same_data(const DataIdentity& began, const DataIdentity& now, const std::string& run_folder);

}  // namespace kintsugi::train
