#include "kintsugi/images/image_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/data/number_table.h"
#include "kintsugi/images/array_file.h"

namespace kintsugi::images {
namespace {

constexpr int64_t kCifarImage = 3 * 32 * 32;
constexpr int32_t kNoClass = 255;  // of a pixel
constexpr int64_t kMostFields = 16384;

struct Cifar {
  const char* name;
  int64_t labels;  // bytes before the image; the last is the label
  int64_t classes;

  int64_t record() const { return labels + kCifarImage; }
};
constexpr std::array kCifars = {Cifar{"CIFAR-10", 1, 10}, Cifar{"CIFAR-100", 2, 100}};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw base::UserError("images", "\"{}\" {}", path.string(), what);
}

// The labels of all records.
std::vector<int32_t> labels_of(const ByteFile& file, const Cifar& cifar) {
  std::vector<int32_t> labels(static_cast<size_t>(file.size() / cifar.record()));
  std::byte label{};
  for (size_t i = 0; i < labels.size(); ++i) {
    file.read_at(static_cast<int64_t>(i) * cifar.record() + cifar.labels - 1, {&label, 1});
    labels[i] = std::to_integer<int32_t>(label);
  }
  return labels;
}

// The first label out of range, or the end.
auto first_bad(const std::vector<int32_t>& labels, int64_t classes) {
  return std::ranges::find_if(labels, [&](int32_t label) { return label >= classes; });
}

bool is_channels(int64_t size) {
  return size >= 1 && size <= 4;
}

// Whether the size is that of CIFAR records.
bool holds_records(const ByteFile& file) {
  return file.size() > 0 &&
         std::ranges::any_of(kCifars, [&](const Cifar& cifar) { return file.size() % cifar.record() == 0; });
}

// The labels file of a published idx pair, for "NAME-images-idx3..." "NAME-labels-idx1..."; empty for other names.
std::filesystem::path counterpart_of(const std::filesystem::path& images) {
  std::string name = images.filename().string();
  const size_t at = name.find("images-idx3");
  return at == name.npos ? "" : images.parent_path() / name.replace(at, 11, "labels-idx1");
}

}  // namespace

bool is_image_file(const std::filesystem::path& path) {
  const ByteFile file(path);
  return is_npy(file) || is_idx(file) || holds_records(file);
}

ImageFile::ImageFile(const std::filesystem::path& path, const std::filesystem::path& labels, LabelKind kind)
    : kind_(kind), bytes_(std::make_shared<const ByteFile>(path)) {
  // The first bytes of a record may resemble an idx header.
  const bool records = holds_records(*bytes_);
  if (is_npy(*bytes_) || is_whole_idx(*bytes_) || (is_idx(*bytes_) && !records)) {
    open_arrays(labels);
    return;
  }
  if (!records) {
    const std::string foreign = foreign_text(*bytes_);
    fail(path, !foreign.empty() ? foreign
               : bytes_->size() == 0
                   ? "is empty"
                   : fmt::format("is neither an npy nor an idx file, and its {} bytes are not a multiple of 3,073 or "
                                 "3,074, the size of a CIFAR-10 or CIFAR-100 record: it is truncated, or of another "
                                 "format",
                                 base::group_digits(bytes_->size())));
  }
  if (kind != LabelKind::classes && kind != LabelKind::none)
    fail(path, "has CIFAR records, with one class per image; the model's objective needs an npy or idx file");
  if (!labels.empty())
    fail(path, fmt::format("contains its labels; leave out the labels file \"{}\"", labels.string()));
  open_cifar();
}

void ImageFile::open_cifar() {
  const int64_t size = bytes_->size();
  const Cifar* found = nullptr;
  for (const Cifar& cifar : kCifars) {
    if (size % cifar.record() != 0) continue;
    std::vector<int32_t> labels = labels_of(*bytes_, cifar);
    // A file of 3,073 x 3,074 bytes may be either: decide by the labels.
    if (found && first_bad(labels, cifar.classes) != labels.end()) continue;
    if (found && first_bad(labels_, found->classes) == labels_.end())
      fail(path(), "may be CIFAR-10 or CIFAR-100 by its size and labels; convert it to an npy file");
    found = &cifar;
    labels_ = std::move(labels);
  }
  if (const auto bad = first_bad(labels_, found->classes); bad != labels_.end())
    fail(path(), fmt::format("record {} has label {}; {} has labels 0 to {}", bad - labels_.begin(), *bad, found->name,
                             found->classes - 1));
  format_ = found->name;
  classes_ = found->classes;
  channels_ = 3;
  height_ = width_ = 32;
  begin_ = found->labels;
  stride_ = found->record();
  images_ = std::ssize(labels_);
}

void ImageFile::open_arrays(const std::filesystem::path& labels) {
  const ArrayFile array = open_array(bytes_);
  format_ = array.format;
  begin_ = array.begin;
  const auto shape = fmt::format("[{}] of {}", fmt::join(array.shape, " "), array.type);
  if (array.type == "|u1")
    dtype_ = tensor::DType::u8;
  else if (array.type == "<f4")
    dtype_ = tensor::DType::f32;
  else
    fail(path(), fmt::format("holds {}; images are uint8 (|u1) or fp32 (<f4)", shape));
  const std::vector<int64_t>& s = array.shape;
  if (s.size() < 3 || s.size() > 5)
    fail(path(), fmt::format("holds {}; images are [image height width], with a channel dim before or after height and "
                             "width, or volumes [image channel depth height width]",
                             shape));
  if (std::ranges::find(s, 0) != s.end()) fail(path(), fmt::format("holds {}: it is empty", shape));
  if (s.size() >= 4) {
    const bool first = is_channels(s[1]), last = is_channels(s.back());
    // Numeric fields are channels first, regardless of their number.
    if (first == last && dtype_ == tensor::DType::u8)
      fail(path(), fmt::format("holds {}; {}", shape,
                               first ? "the channel dim may be the second or the last; fp32 arrays have channels first"
                                     : "the second or the last dim must be the channels, 1 to 4; fp32 arrays may have "
                                       "any number"));
    channels_last_ = last && !first;
    channels_ = channels_last_ ? s.back() : s[1];
    const size_t spatial = channels_last_ ? 1 : 2;
    if (s.size() == 5) depth_ = s[spatial];
    height_ = s[spatial + s.size() - 4];
    width_ = s[spatial + s.size() - 3];
  } else {
    channels_ = 1;
    height_ = s[1];
    width_ = s[2];
  }
  images_ = s[0];
  stride_ = bytes_per_image();
  open_label_file(labels);
}

void ImageFile::open_label_file(const std::filesystem::path& given) {
  const std::filesystem::path counterpart = counterpart_of(path());
  std::error_code error;
  const bool found = !counterpart.empty() && std::filesystem::exists(counterpart, error);
  if (kind_ == LabelKind::none && !found) return;
  if (given.empty() && !found)
    fail(path(), fmt::format("has no labels{}; name their file: data.train_labels, data.validation_labels or --labels",
                             counterpart.empty() ? "" : fmt::format(": \"{}\" does not exist", counterpart.string())));
  labels_path_ = given.empty() ? counterpart : given;
  const auto file = std::make_shared<const ByteFile>(labels_path_);
  labels_fingerprint_ = file->fingerprint();
  switch (kind_) {
    case LabelKind::classes:
    case LabelKind::none:
      return read_classes_of_images(file);
    case LabelKind::numbers:
      return read_numbers(file);
    case LabelKind::pixels:
      return open_classes_of_pixels(file);
    case LabelKind::fields:
      return open_fields(file);
  }
}

void ImageFile::read_classes_of_images(const std::shared_ptr<const ByteFile>& file) {
  if (is_npy(*file) || is_idx(*file)) {
    labels_ = read_labels(open_array(file));
  } else {
    const data::NumberTable table(labels_path_);
    if (table.columns() != 1)
      fail(labels_path_, fmt::format("has {} numbers per line; an image has one label", table.columns()));
    table.require_classes(0, 0);
    for (int64_t i = 0; i < table.rows(); ++i) labels_.push_back(static_cast<int32_t>(table.row(i)[0]));
  }
  if (std::ssize(labels_) != images_)
    fail(labels_path_,
         fmt::format("has {} labels, but \"{}\" has {} images", labels_.size(), path().string(), images_));
  classes_ = int64_t{*std::ranges::max_element(labels_)} + 1;
}

void ImageFile::read_numbers(const std::shared_ptr<const ByteFile>& file) {
  int64_t lines = 0;
  if (is_npy(*file)) {
    const ArrayFile array = open_array(file);
    if (array.type != "<f4" || array.shape.empty() || array.shape.size() > 2)
      fail(labels_path_,
           fmt::format("holds [{}] of {}; the numbers to predict are fp32 (<f4), [image] or [image number]",
                       fmt::join(array.shape, " "), array.type));
    lines = array.shape[0];
    targets_.resize(static_cast<size_t>(array.elements()));
    file->read_at(array.begin, std::as_writable_bytes(std::span(targets_)));
  } else {
    const data::NumberTable table(labels_path_);
    lines = table.rows();
    for (int64_t i = 0; i < lines; ++i) targets_.insert(targets_.end(), table.row(i).begin(), table.row(i).end());
  }
  if (lines != images_)
    fail(labels_path_, fmt::format("has numbers for {} images, but \"{}\" has {}", lines, path().string(), images_));
  numbers_ = std::ssize(targets_) / images_;
  if (numbers_ == 0) fail(labels_path_, "has no numbers");
}

void ImageFile::open_classes_of_pixels(const std::shared_ptr<const ByteFile>& file) {
  if (!is_npy(*file) && !is_idx(*file))
    fail(labels_path_, "is neither an npy nor an idx file; classes of pixels must be in one");
  const ArrayFile array = open_array(file);
  std::vector<int64_t> want = {images_, height_, width_};
  if (depth_ > 0) want.insert(want.begin() + 1, depth_);
  if (array.type != "|u1" || array.shape != want)
    fail(labels_path_, fmt::format("holds [{}] of {}; the classes of pixels of \"{}\" are [{}] of |u1",
                                   fmt::join(array.shape, " "), array.type, path().string(), fmt::join(want, " ")));
  of_pixels_ = file;
  of_pixels_begin_ = array.begin;
  std::array<std::byte, 16384> block;
  for (int64_t at = 0, all = images_ * pixels(); at < all;) {
    const int64_t count = std::min<int64_t>(std::ssize(block), all - at);
    file->read_at(array.begin + at, std::span(block).first(static_cast<size_t>(count)));
    for (int64_t i = 0; i < count; ++i)
      if (const int64_t c = std::to_integer<int64_t>(block[static_cast<size_t>(i)]); c != kNoClass)
        classes_ = std::max(classes_, c + 1);
    at += count;
  }
}

void ImageFile::open_fields(const std::shared_ptr<const ByteFile>& file) {
  if (!is_npy(*file)) fail(labels_path_, "is no npy file; fields are");
  const ArrayFile array = open_array(file);
  std::vector<int64_t> sizes = {height_, width_};
  if (depth_ > 0) sizes.insert(sizes.begin(), depth_);
  const std::vector<int64_t>& s = array.shape;
  // Whether the array has the sizes of the images, from dim `at` on.
  const auto fits = [&](size_t at) { return std::ranges::equal(sizes, std::span(s).subspan(at, sizes.size())); };
  const bool some = !s.empty() && s[0] == images_, one = some && s.size() == sizes.size() + 1 && fits(1),
             all = some && s.size() == sizes.size() + 2, first = all && fits(2), last = all && fits(1);
  if (array.type != "<f4" || !(one || first || last))
    fail(labels_path_,
         fmt::format("holds [{}] of {}; the fields of \"{}\" are fp32 (<f4), [{} channel {}], or with channels last",
                     fmt::join(s, " "), array.type, path().string(), images_, fmt::join(sizes, " ")));
  if (first && last)
    fail(labels_path_,
         fmt::format("holds [{}]: the channels may be the second size or the last; give an array without a last dim "
                     "of channels, [{} {}]",
                     fmt::join(s, " "), images_, fmt::join(sizes, " ")));
  fields_last_ = last;
  numbers_ = one ? 1 : last ? s.back() : s[1];
  if (numbers_ < 1 || numbers_ > kMostFields)
    fail(labels_path_,
         fmt::format("holds [{}]: {} channels; fields have 1 to {}", fmt::join(s, " "), numbers_, kMostFields));
  of_pixels_ = file;
  of_pixels_begin_ = array.begin;
  std::array<float, 4096> block;
  const int64_t each = numbers_ * pixels();
  for (int64_t i = 0; i < images_; ++i) {
    bool zeros = true;
    for (int64_t at = 0; at < each;) {
      const std::span<float> some_of = std::span(block).first(static_cast<size_t>(std::min<int64_t>(4096, each - at)));
      file->read_at(array.begin + (i * each + at) * 4, std::as_writable_bytes(some_of));
      if (std::ranges::any_of(some_of, [](float x) { return !std::isfinite(x); }))
        fail(labels_path_, fmt::format("has NaN or infinity in the fields of image {}", i));
      zeros = zeros && std::ranges::all_of(some_of, [](float x) { return x == 0; });
      at += std::ssize(some_of);
    }
    if (zeros && image_of_zeros_ < 0) image_of_zeros_ = i;
  }
}

void ImageFile::read_fields(int64_t i, std::span<float> to) const {
  const int64_t each = numbers_ * pixels(), plane = pixels();
  base::require(i >= 0 && i < size() && std::ssize(to) == each && of_pixels_, "images",
                "fields of image {} of {} are read into {}", i, size(), to.size());
  if (fields_last_ || numbers_ == 1)
    return of_pixels_->read_at(of_pixels_begin_ + i * each * 4, std::as_writable_bytes(to));
  std::array<float, kMostFields> block;  // [channel pixel]
  const int64_t at_once = kMostFields / numbers_;
  for (int64_t first = 0; first < plane; first += at_once) {
    const int64_t count = std::min(at_once, plane - first);
    for (int64_t c = 0; c < numbers_; ++c)
      of_pixels_->read_at(
          of_pixels_begin_ + (i * each + c * plane + first) * 4,
          std::as_writable_bytes(std::span(block).subspan(static_cast<size_t>(c * count), static_cast<size_t>(count))));
    float* out = to.data() + first * numbers_;
    for (int64_t p = 0; p < count; ++p)
      for (int64_t c = 0; c < numbers_; ++c) *out++ = block[static_cast<size_t>(c * count + p)];
  }
}

void ImageFile::read_classes(int64_t i, std::span<int32_t> to) const {
  base::require(i >= 0 && i < size() && std::ssize(to) == pixels() && of_pixels_, "images",
                "classes of image {} of {} are read into {}", i, size(), to.size());
  // Read bytes to the end of the memory; each is read before it is overwritten.
  const std::span<std::byte> bytes = std::as_writable_bytes(to).last(to.size());
  of_pixels_->read_at(of_pixels_begin_ + i * pixels(), bytes);
  for (size_t p = 0; p < to.size(); ++p) {
    const auto c = std::to_integer<int32_t>(bytes[p]);
    to[p] = c == kNoClass ? -1 : c;
  }
}

void ImageFile::read(int64_t i, std::span<std::byte> to) const {
  base::require(i >= 0 && i < size() && std::ssize(to) == bytes_per_image(), "images",
                "image {} of {} is read into {} bytes", i, size(), to.size());
  const int64_t at = begin_ + i * stride_;
  if (!channels_last_ || channels_ == 1) return bytes_->read_at(at, to);
  std::array<std::byte, 6144> block;  // whole pixels of 1 to 4 channels of 1 or 4 bytes
  const int64_t element = tensor::size_of(dtype_), pixel = channels_ * element, plane = pixels();
  const int64_t most = std::ssize(block) / pixel;
  for (int64_t first = 0; first < plane; first += most) {
    const int64_t count = std::min(most, plane - first);
    bytes_->read_at(at + first * pixel, std::span(block).first(static_cast<size_t>(count * pixel)));
    for (int64_t p = 0; p < count; ++p)
      for (int64_t c = 0; c < channels_; ++c)
        std::copy_n(block.begin() + p * pixel + c * element, element, to.begin() + (c * plane + first + p) * element);
  }
}

std::string ImageFile::fingerprint() const {
  return labels_fingerprint_.empty() ? bytes_->fingerprint() : bytes_->fingerprint() + labels_fingerprint_;
}

}  // namespace kintsugi::images
