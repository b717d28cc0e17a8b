#include "kintsugi/exchange/import_folder.h"

#include <algorithm>
#include <vector>

#include "kintsugi/checkpoint/writer.h"
#include "kintsugi/exchange/new_folder.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/exchange/read_strided.h"

namespace kintsugi::exchange {
namespace {

using checkpoint::Range;
using checkpoint::Sink;

// In our order, a part at a time.
void read_weight(const FolderReader& reader, const std::string& name, const Sink& sink) {
  const tensor::Type& type = reader.type(name);
  const int64_t size = size_of(type.dtype), all = type.shape.elements(), most = kStagedBytes / size;
  std::vector<std::byte> block;
  for (int64_t at = 0; at < all; at += most) {
    const Range part = {at, std::min(at + most, all)};
    block.resize(static_cast<size_t>(part.size() * size));
    reader.read({.name = name, .box = {}, .flat = part}, type.dtype, block);
    sink(block);
  }
}

}  // namespace

std::filesystem::path import_folder(const ImportOptions& options) {
  const FolderReader reader(options.folder, options.allow_not_finite);
  const checkpoint::Contents contents = {.state = "{}", .config = config_of(reader), .tokenizer = tokenizer_of(reader)};
  require_empty("import", options.run);
  std::error_code error;
  const bool there = std::filesystem::exists(options.run, error);
  try {
    checkpoint::CheckpointWriter writer(options.run, 0);
    for (const std::string& name : reader.names())
      writer.add({.name = name, .type = reader.type(name), .kind = checkpoint::Kind::weight, .box = {}, .flat = {}},
                 [&](const Sink& sink) { read_weight(reader, name, sink); });
    writer.write();
    return writer.finish(contents);
  } catch (...) {
    if (!there) std::filesystem::remove_all(options.run, error);
    throw;
  }
}

}  // namespace kintsugi::exchange
