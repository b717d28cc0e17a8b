#include "kintsugi/checkpoint/reader.h"

#include <algorithm>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/convert.h"
#include "kintsugi/checkpoint/where.h"

namespace kintsugi::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kWindow = 1 << 18;  // bytes to prefetch

// Reads runs of a tensor's bytes, in ascending order, through a block buffer.
class Window {
 public:
  explicit Window(const TensorInFile& tensor) : tensor_(tensor), held_(std::min(tensor.bytes, kWindow)) {}

  // At most kWindow bytes from `at`; valid until the next call.
  const std::byte* bytes(uint64_t at, uint64_t count) {
    if (at < begin_ || at + count > end_) {
      begin_ = at;
      end_ = std::min(at + held_.size(), tensor_.bytes);
      tensor_.read_at(begin_, std::span(held_).first(end_ - begin_));
    }
    return held_.data() + (at - begin_);
  }

 private:
  TensorInFile tensor_;
  std::vector<std::byte> held_;
  uint64_t begin_ = 0, end_ = 0;  // range of the buffered bytes
};

}  // namespace

CheckpointReader::CheckpointReader(fs::path folder) : folder_(std::move(folder)) {
  const fs::path path = folder_ / kIndexFile;
  std::error_code error;
  if (!fs::exists(path, error) && error)
    throw base::UserError(kWhere, "cannot read {}: {}", base::in_quotes(folder_.string()), error.message());
  if (!fs::exists(path, error))
    throw base::UserError(kWhere, "{} has no {}; is it a checkpoint's folder?", base::in_quotes(folder_.string()),
                          kIndexFile);
  const std::string text = base::read_file(path);
  const std::string sum = base::read_file(folder_ / kIndexChecksumFile);
  checksum_ = checksum_of(text);
  if (sum != checksum_text(checksum_) + "\n")
    throw base::UserError(kWhere, "{} is damaged: its checksum is {}, {} says {}", base::in_quotes(path.string()),
                          checksum_text(checksum_), kIndexChecksumFile, base::in_quotes(sum.substr(0, sum.find('\n'))));
  index_ = parse_index(path.string(), text);
  check_coverage(path.string(), index_);
  for (const auto& [name, stored] : index_.files) {
    const std::string shown = base::in_quotes((folder_ / name).string());
    const uintmax_t bytes = fs::file_size(folder_ / name, error);
    if (error) throw base::UserError(kWhere, "{} is missing: {}", shown, error.message());
    if (bytes != stored.bytes)
      throw base::UserError(kWhere, "{} is damaged: it has {} bytes, the index says {}", shown, bytes, stored.bytes);
  }
}

std::string CheckpointReader::config() const {
  return beside(kConfigFile);
}
std::string CheckpointReader::tokenizer() const {
  return beside(kTokenizerFile);
}

std::string CheckpointReader::beside(std::string_view name) const {
  const auto found = index_.files.find(name);
  if (found == index_.files.end()) return "";
  {
    const std::lock_guard lock(mutex_);
    if (const auto held = texts_.find(name); held != texts_.end()) return held->second;
  }
  std::string text = base::read_file(folder_ / name);
  if (const uint64_t sum = checksum_of(text); sum != found->second.checksum)
    throw base::UserError(kWhere, "{} is damaged: its checksum is {}, the index says {}",
                          base::in_quotes((folder_ / name).string()), checksum_text(sum),
                          checksum_text(found->second.checksum));
  return text;
}

const StoredTensor& CheckpointReader::at(std::string_view name) const {
  if (const auto found = index_.tensors.find(name); found != index_.tensors.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [other, tensor] : index_.tensors) names.push_back(other);
  throw base::UserError(kWhere, "{} has no tensor {}{}", base::in_quotes(folder_.string()), base::in_quotes(name),
                        names.empty() ? "" : "; the nearest is " + base::in_quotes(base::nearest(name, names)));
}

const SafetensorsFile& CheckpointReader::file(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(name);
  if (found != open_.end()) return found->second;
  SafetensorsFile opened(folder_ / name);
  if (const uint64_t sum = checksum_of(opened.head()); sum != index_.files.at(name).checksum)
    throw base::UserError(kWhere, "{}: the header is damaged: its checksum is {}, the index says {}; load another step",
                          base::in_quotes((folder_ / name).string()), checksum_text(sum),
                          checksum_text(index_.files.at(name).checksum));
  return open_.emplace(name, std::move(opened)).first->second;
}

TensorInFile CheckpointReader::locate(const StoredTensor& tensor, const StoredPiece& piece) const {
  const TensorInFile stored = file(piece.file).at(piece.key);
  {
    const std::lock_guard lock(mutex_);
    if (checked_.contains(&piece)) return stored;
  }
  const std::string shown = base::in_quotes((folder_ / piece.file).string());
  const auto bytes = static_cast<uint64_t>(piece.part.flat.size() * size_of(tensor.type.dtype));
  if (stored.dtype != tensor.type.dtype || stored.bytes != bytes)
    throw base::UserError(kWhere, "{}: tensor {} has {} bytes of {}, the index says {} of {}", shown,
                          base::in_quotes(piece.key), stored.bytes, name_of(stored.dtype), bytes,
                          name_of(tensor.type.dtype));
  if (const uint64_t sum = checksum_of(stored); sum != piece.checksum)
    throw base::UserError(kWhere, "{}: tensor {} is damaged: its checksum is {}, the index says {}; load another step",
                          shown, base::in_quotes(piece.key), checksum_text(sum), checksum_text(piece.checksum));
  const std::lock_guard lock(mutex_);
  checked_.insert(&piece);
  return stored;
}

void CheckpointReader::read(const Slice& slice, tensor::DType dtype, std::span<std::byte> out) const {
  const StoredTensor& tensor = at(slice.name);
  const tensor::DType from = tensor.type.dtype;
  if (!converts(from, dtype))
    throw base::UserError(kWhere, "{}: tensor {} holds {}, which is not read as {}", base::in_quotes(folder_.string()),
                          base::in_quotes(slice.name), name_of(from), name_of(dtype));
  const Box box = slice.box.value_or(whole_box(tensor.type.shape));
  base::require(fits(box, tensor.type.shape), kWhere, "box {} does not fit into {} {}", to_string(box), slice.name,
                to_string(tensor.type.shape));
  const Part wanted{box, slice.flat.value_or(whole_range(box))};
  base::require(fits(wanted.flat, box), kWhere, "range {} to {} does not fit into box {} of {}", wanted.flat.begin,
                wanted.flat.end, to_string(box), slice.name);
  base::require(out.size() == static_cast<size_t>(wanted.flat.size() * size_of(dtype)), kWhere,
                "{} elements of {} {} are read into {} bytes", wanted.flat.size(), slice.name, name_of(dtype),
                out.size());
  int64_t filled = 0;
  const int64_t most = static_cast<int64_t>(kWindow) / size_of(from);
  for (const StoredPiece& piece : tensor.pieces) {
    std::optional<Window> window;
    for_each_common_run(wanted, piece.part, [&](int64_t to, int64_t at, int64_t count) {
      if (!window) window.emplace(locate(tensor, piece));
      for (int64_t done = 0; done < count; done += most) {
        const int64_t now = std::min(count - done, most);
        const std::byte* bytes = window->bytes(static_cast<uint64_t>((at + done) * size_of(from)),
                                               static_cast<uint64_t>(now * size_of(from)));
        convert(from, bytes, dtype, out.data() + (to + done) * size_of(dtype), now);
      }
      filled += count;
    });
  }
  base::require(filled == wanted.flat.size(), kWhere, "{} of {} elements of {} were found", filled, wanted.flat.size(),
                slice.name);
}

void CheckpointReader::verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const {
  for (const auto& [name, stored] : index_.files) {
    if (wanted || share != 0) break;
    if (name.ends_with(".safetensors"))
      file(name);
    else
      beside(name);
  }
  // Iterates over the pieces in order, divided by bytes into shares of about equal size.
  const auto each = [&](const std::function<void(const StoredTensor&, const StoredPiece&, int64_t)>& f) {
    for (const auto& [name, tensor] : index_.tensors)
      if (!wanted || wanted(name))
        for (const StoredPiece& piece : tensor.pieces)
          f(tensor, piece, piece.part.flat.size() * size_of(tensor.type.dtype));
  };
  int64_t all = 0, at = 0;
  each([&](const StoredTensor&, const StoredPiece&, int64_t bytes) { all += bytes; });
  each([&](const StoredTensor& tensor, const StoredPiece& piece, int64_t bytes) {
    if (in_share(at, all, share, shares)) locate(tensor, piece);
    at += bytes;
  });
}

void CheckpointReader::hold() const {
  for (const auto& [name, stored] : index_.files) {
    if (name.ends_with(".safetensors")) {
      file(name);
    } else {
      std::string text = beside(name);
      const std::lock_guard lock(mutex_);
      texts_.insert_or_assign(name, std::move(text));
    }
  }
}

void CheckpointReader::trust(const std::function<bool(std::string_view)>& wanted) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, tensor] : index_.tensors)
    if (!wanted || wanted(name))
      for (const StoredPiece& piece : tensor.pieces) checked_.insert(&piece);
}

}  // namespace kintsugi::checkpoint
