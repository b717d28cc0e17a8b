#include "kintsugi/corpus/scan.h"

#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/read_only_file.h"

namespace kintsugi::corpus {
namespace {

constexpr char kMagic[8] = {'K', 'I', 'N', 'T', 'S', 'C', 'A', 'N'};
constexpr uint32_t kVersion = 1;
constexpr size_t kSegment = 16'384;  // documents
constexpr uint64_t kHeader = 24;

template <typename T>
void put(std::ofstream& out, const T& value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T get(const base::ReadOnlyFile& file, uint64_t at) {
  T value;
  file.read_at(at, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

template <typename T>
void get_all(const base::ReadOnlyFile& file, uint64_t at, std::vector<T>& to, size_t from, uint64_t count) {
  file.read_at(at, std::as_writable_bytes(std::span(to).subspan(from, static_cast<size_t>(count))));
}

}  // namespace

ScanWriter::ScanWriter(std::filesystem::path path, uint64_t stamp, size_t bands)
    : path_(std::move(path)), bands_(bands), out_(path_.string() + ".part", std::ios::binary | std::ios::trunc) {
  out_.write(kMagic, sizeof kMagic);
  put(out_, kVersion);
  put(out_, static_cast<uint32_t>(bands));
  put(out_, stamp);
}

void ScanWriter::add(Note note) {
  notes_.push_back(std::move(note));
  if (notes_.size() == kSegment) flush();
}

void ScanWriter::flush() {
  if (notes_.empty()) return;
  put(out_, static_cast<uint64_t>(notes_.size()));
  for (const Note& note : notes_) put(out_, note.verdict);
  for (const Note& note : notes_) put(out_, note.bytes);
  for (const Note& note : notes_) put(out_, note.digest);
  for (size_t band = 0; band < bands_; ++band)
    for (const Note& note : notes_) put(out_, note.keys.empty() ? uint64_t{0} : note.keys[band]);
  notes_.clear();
}

void ScanWriter::finish(uint64_t bad_lines) {
  flush();
  put(out_, uint64_t{0});
  put(out_, bad_lines);
  out_.close();
  if (!out_) throw base::UserError("prepare", "\"{}\" cannot be written: {}", path_.string(), std::strerror(errno));
  std::filesystem::rename(path_.string() + ".part", path_);
}

std::optional<Scan> Scan::open(const std::filesystem::path& path, uint64_t stamp, size_t bands) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const base::ReadOnlyFile file(path);
  Scan scan;
  scan.path_ = path;
  scan.bands_ = bands;
  if (file.size() < kHeader + 16) return std::nullopt;
  char magic[8];
  file.read_at(0, std::as_writable_bytes(std::span(magic)));
  if (std::memcmp(magic, kMagic, sizeof magic) != 0 || get<uint32_t>(file, 8) != kVersion ||
      get<uint32_t>(file, 12) != bands || get<uint64_t>(file, 16) != stamp)
    return std::nullopt;
  const uint64_t per_document = 1 + 8 + 16 + 8 * bands;
  for (uint64_t at = kHeader; at + 16 <= file.size();) {
    const auto count = get<uint64_t>(file, at);
    if (count == 0) {
      scan.bad_lines_ = get<uint64_t>(file, at + 8);
      return scan;
    }
    if (count > kSegment || file.size() - at - 8 < count * per_document) return std::nullopt;
    const size_t from = scan.verdicts_.size();
    scan.segments_.push_back({at + 8, count});
    scan.verdicts_.resize(from + count);
    scan.bytes_.resize(from + count);
    get_all(file, at + 8, scan.verdicts_, from, count);
    get_all(file, at + 8 + count, scan.bytes_, from, count);
    for (size_t i = from; i < scan.verdicts_.size(); ++i)
      if (static_cast<size_t>(scan.verdicts_[i]) >= kVerdicts) return std::nullopt;
    at += 8 + count * per_document;
  }
  return std::nullopt;
}

std::vector<Digest> Scan::digests() const {
  const base::ReadOnlyFile file(path_);
  std::vector<Digest> digests(size());
  size_t from = 0;
  for (const Segment& s : segments_) {
    get_all(file, s.at + 9 * s.count, digests, from, s.count);
    from += s.count;
  }
  return digests;
}

std::vector<uint64_t> Scan::keys(size_t band) const {
  const base::ReadOnlyFile file(path_);
  std::vector<uint64_t> keys(size());
  size_t from = 0;
  for (const Segment& s : segments_) {
    get_all(file, s.at + (25 + 8 * band) * s.count, keys, from, s.count);
    from += s.count;
  }
  return keys;
}

}  // namespace kintsugi::corpus
