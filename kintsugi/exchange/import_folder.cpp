#include "kintsugi/exchange/import_folder.h"

#include <algorithm>
#include <future>
#include <string_view>
#include <system_error>
#include <vector>

#include "kintsugi/base/start_thread.h"
#include "kintsugi/checkpoint/writer.h"
#include "kintsugi/exchange/new_folder.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/exchange/read_strided.h"

namespace kintsugi::exchange {
namespace {

using checkpoint::Range;
using checkpoint::Sink;

// The weights in the order of their names, each in our order, a part at a time. While one part is used, the next is
// read.
class ReadAhead {
 public:
  explicit ReadAhead(const FolderReader& reader) : reader_(reader) {
    for (const std::string& name : reader.names()) {
      const tensor::Type& type = reader.type(name);
      const int64_t all = type.shape.elements(), most = kStagedBytes / size_of(type.dtype);
      for (int64_t at = 0; at < all; at += most) parts_.push_back({name, {at, std::min(at + most, all)}});
    }
    begin();
  }

  // `bytes` are those of the part before, whose memory is used again.
  void next(std::vector<std::byte>& bytes) {
    coming_.get();
    std::swap(bytes, ahead_);
    begin();
  }

 private:
  struct Part {
    std::string_view name;
    Range flat;
  };

  void begin() {
    if (at_ == parts_.size()) return;
    try {
      coming_ = std::async(std::launch::async, [this, part = parts_[at_]] { read(part); });
    } catch (const std::system_error& error) {
      base::throw_no_thread(error);
    }
    ++at_;
  }
  void read(const Part& part) {
    const tensor::DType dtype = reader_.type(part.name).dtype;
    ahead_.resize(static_cast<size_t>(part.flat.size() * size_of(dtype)));
    reader_.read({.name = part.name, .box = {}, .flat = part.flat}, dtype, ahead_);
  }

  const FolderReader& reader_;
  std::vector<Part> parts_;
  size_t at_ = 0;  // the part to be read next
  std::vector<std::byte> ahead_;
  std::future<void> coming_;  // of ahead_; the last member, so that it is waited for first
};

void write_weights(const FolderReader& reader, checkpoint::CheckpointWriter& writer) {
  ReadAhead parts(reader);
  std::vector<std::byte> part;
  for (const std::string& name : reader.names()) {
    const tensor::Type& type = reader.type(name);
    writer.add({.name = name, .type = type, .kind = checkpoint::Kind::weight, .box = {}, .flat = {}},
               [&](const Sink& sink) {
                 for (int64_t left = type.bytes(); left > 0; left -= static_cast<int64_t>(part.size())) {
                   parts.next(part);
                   sink(part);
                 }
               });
  }
  writer.write();
}

}  // namespace

std::filesystem::path import_folder(const ImportOptions& options) {
  const FolderReader reader(options.folder, options.allow_not_finite);
  const checkpoint::Contents contents = {
      .state = std::string(kNoState), .config = config_of(reader), .tokenizer = tokenizer_of(reader)};
  require_empty("import", options.run);
  std::error_code error;
  const bool there = std::filesystem::exists(options.run, error);
  try {
    checkpoint::CheckpointWriter writer(options.run, 0);
    write_weights(reader, writer);
    return writer.finish(contents);
  } catch (...) {
    if (!there) std::filesystem::remove_all(options.run, error);
    throw;
  }
}

}  // namespace kintsugi::exchange
