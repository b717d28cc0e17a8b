#include "kintsugi/checkpoint/safetensors.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/lfs_pointer.h"
#include "kintsugi/checkpoint/checksum.h"

namespace kintsugi::checkpoint {
namespace {

constexpr uint64_t kStart = 64;  // bytes by which a file type is recognized

}  // namespace

uint64_t checksum_of(const TensorInFile& tensor) {
  Checksum checksum;
  tensor.for_each_block([&](std::span<const std::byte> block) { checksum.add(block); });
  return checksum.value();
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  std::vector<std::byte> start(std::min<uint64_t>(file_.size(), kStart));
  file_.read_at(0, start);
  if (base::is_lfs_pointer({reinterpret_cast<const char*>(start.data()), start.size()}))
    throw base::UserError("safetensors", "{} is {}", base::in_quotes(path.string()), base::kLfsAdvice);
  start.resize(std::min(start.size(), sizeof(uint64_t)));
  start.resize(safetensors_head_size(path.string(), start, file_.size()));
  file_.read_at(0, start);
  header_ = parse_safetensors_header(path.string(), start, file_.size());
}

std::vector<std::byte> SafetensorsFile::head() const {
  std::vector<std::byte> head(header_.data_begin);
  file_.read_at(0, head);
  return head;
}

TensorInFile SafetensorsFile::at(std::string_view name) const {
  const auto found = header_.tensors.find(name);
  if (found != header_.tensors.end()) {
    const SafetensorsEntry& entry = found->second;
    return {entry.dtype, entry.shape, entry.end - entry.begin, header_.data_begin + entry.begin, &file_};
  }
  if (const auto foreign = header_.foreign.find(name); foreign != header_.foreign.end())
    throw base::UserError("safetensors", "{}: tensor {} has dtype {}, which is not read",
                          base::in_quotes(file_.path().string()), base::in_quotes(name), foreign->second);
  std::vector<std::string_view> names;
  for (const auto& [other, entry] : header_.tensors) names.push_back(other);
  if (names.empty())
    throw base::UserError("safetensors", "{} holds no tensors, so none named {}",
                          base::in_quotes(file_.path().string()), base::in_quotes(name));
  throw base::UserError("safetensors", "{} has no tensor {}; the nearest is {}", base::in_quotes(file_.path().string()),
                        base::in_quotes(name), base::in_quotes(base::nearest(name, names)));
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, const std::vector<SafetensorsTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata, base::Writing way)
    : head_(print_safetensors_header(tensors, metadata)), file_(path, way) {
  file_.write(head_);
  for (const SafetensorsTensor& tensor : tensors) left_ += tensor.bytes();
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  base::require(bytes.size() <= left_, "safetensors", "{} bytes are written where {} are left", bytes.size(), left_);
  left_ -= bytes.size();
  file_.write(bytes);
}

void SafetensorsWriter::close() {
  base::require(left_ == 0, "safetensors", "the file is closed {} bytes before its end", left_);
  file_.close();
}

void SafetensorsWriter::close_unsynced() {
  base::require(left_ == 0, "safetensors", "the file is closed {} bytes before its end", left_);
  file_.close_unsynced();
}

}  // namespace kintsugi::checkpoint
