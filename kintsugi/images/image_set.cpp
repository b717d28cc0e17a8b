#include "kintsugi/images/image_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"

namespace kintsugi::images {
namespace {

namespace fs = std::filesystem;

struct Published {
  std::string_view train, test;  // prefixes of file names
};
constexpr std::array kPublished = {Published{"data_batch_", "test_batch"}, Published{"train.bin", "test.bin"},
                                   Published{"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"}};

std::string text_of(const ImageFile& file) {
  const std::string depth = file.depth() > 0 ? fmt::format("{} x ", file.depth()) : "";
  return fmt::format("{} x {}{} x {} of {}", file.channels(), depth, file.height(), file.width(),
                     name_of(file.dtype()));
}

}  // namespace

std::vector<fs::path> image_files(const fs::path& path, Use use) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> found;
  for (const Published& published : kPublished) {
    std::vector<fs::path> files;
    const std::string_view begin = use == Use::train ? published.train : published.test;
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      if (entry.is_regular_file() && entry.path().filename().string().starts_with(begin)) files.push_back(entry.path());
    std::ranges::sort(files);
    if (!files.empty() && !found.empty())
      throw base::UserError("images", "the folder \"{}\" has files of two data sets, {} and {}; name files instead",
                            path.string(), found[0].filename().string(), files[0].filename().string());
    if (!files.empty()) found = std::move(files);
  }
  if (found.empty())
    throw base::UserError(
        "images",
        "the folder \"{}\" has no published {} set: {} of CIFAR-10, {} of CIFAR-100, or {} of MNIST; name files "
        "instead",
        path.string(), use == Use::train ? "training" : "test",
        use == Use::train ? "data_batch_*.bin" : "test_batch.bin", use == Use::train ? "train.bin" : "test.bin",
        use == Use::train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte");
  return found;
}

ImageSet::ImageSet(const std::vector<fs::path>& paths, const fs::path& labels, Use use, LabelKind kind) {
  for (const fs::path& path : paths)
    for (const fs::path& file : image_files(path, use)) files_.emplace_back(file, labels, kind);
  base::require(!files_.empty(), "images", "no file");
  if (files_.size() > 1 && !labels.empty())
    throw base::UserError("images", "\"{}\" has the labels of one file of images, but there are {}; join them",
                          labels.string(), files_.size());
  const ImageFile& first = files_[0];
  int64_t end = 0;
  for (const ImageFile& file : files_) {
    if (file.dtype() != first.dtype() || file.channels() != first.channels() || file.height() != first.height() ||
        file.width() != first.width() || file.depth() != first.depth())
      throw base::UserError("images", "\"{}\" has images {}, \"{}\" {}; the images of a set have one size and dtype",
                            first.path().string(), text_of(first), file.path().string(), text_of(file));
    if (file.format() != first.format() && (file.labels_path().empty() || first.labels_path().empty()))
      throw base::UserError("images", "\"{}\" is {}, \"{}\" {}; their classes differ", first.path().string(),
                            first.format(), file.path().string(), file.format());
    ends_.push_back(end += file.size());
  }
}

std::string ImageSet::size_text() const {
  return text_of(files_[0]);
}

std::span<const float> ImageSet::numbers_of(int64_t i) const {
  const auto [file, at] = locate(i);
  return file->numbers_of(at);
}

void ImageSet::read_classes(int64_t i, std::span<int32_t> to) const {
  const auto [file, at] = locate(i);
  file->read_classes(at, to);
}

void ImageSet::read_fields(int64_t i, std::span<float> to) const {
  const auto [file, at] = locate(i);
  file->read_fields(at, to);
}

int64_t ImageSet::classes() const {
  int64_t most = 0;
  for (const ImageFile& file : files_) most = std::max(most, file.classes());
  return most;
}

std::pair<const ImageFile*, int64_t> ImageSet::locate(int64_t i) const {
  const auto at = static_cast<size_t>(std::ranges::upper_bound(ends_, i) - ends_.begin());
  base::require(i >= 0 && at < files_.size(), "images", "image {} of {}", i, size());
  return {&files_[at], at == 0 ? i : i - ends_[at - 1]};
}

int32_t ImageSet::label(int64_t i) const {
  const auto [file, at] = locate(i);
  return file->label(at);
}

void ImageSet::read(int64_t i, std::span<std::byte> to) const {
  const auto [file, at] = locate(i);
  file->read(at, to);
}

void ImageSet::require_labels(int64_t classes) const {
  if (label_kind() == LabelKind::pixels) {
    for (const ImageFile& file : files_)
      if (file.classes() > classes)
        throw base::UserError("images",
                              "\"{}\" has a pixel of class {}; the model has classes 0 to {}, and 255 is none",
                              file.labels_path().string(), file.classes() - 1, classes - 1);
  }
  if (label_kind() != LabelKind::classes && label_kind() != LabelKind::none) return;
  for (const ImageFile& file : files_)
    for (int64_t i = 0; i < file.size(); ++i)
      if (file.label(i) >= classes)
        throw base::UserError("images", "image {} of \"{}\" has label {}; the model has classes 0 to {}", i,
                              file.path().string(), file.label(i), classes - 1);
}

void ImageSet::require_norms() const {
  for (const ImageFile& file : files_)
    if (file.image_of_zeros() >= 0)
      throw base::UserError("images",
                            "\"{}\": the fields of image {} are zero everywhere, and their relative error is not "
                            "defined; leave it out, or set train.loss = \"mse\"",
                            file.labels_path().string(), file.image_of_zeros());
}

void ImageSet::require_all_classes(int64_t classes) const {
  if (label_kind() != LabelKind::classes) return;
  std::vector<bool> seen(static_cast<size_t>(classes));
  for (const ImageFile& file : files_)
    for (int64_t i = 0; i < file.size(); ++i)
      if (file.label(i) < classes) seen[static_cast<size_t>(file.label(i))] = true;
  const auto empty = std::ranges::find(seen, false);
  if (empty == seen.end()) return;
  const std::string others = files_.size() > 1 ? fmt::format(" or the {} other files", files_.size() - 1) : "";
  // As with the outputs of published weights. The classes of CIFAR are those of the format.
  if (const int64_t known = this->classes(); known < classes)
    throw base::UserError(
        "images",
        "the model has {} classes, and \"{}\"{} {}; set model.outputs = {}, or = {} to train without the others",
        classes, files_[0].path().string(), others.empty() ? " has" : others + " have", known, known, classes);
  throw base::UserError("images",
                        "class {} of 0 to {} has no image in \"{}\"{}; number the classes from 0 without gaps, or set "
                        "model.outputs = {} to train without it",
                        empty - seen.begin(), classes - 1, files_[0].path().string(), others, classes);
}

}  // namespace kintsugi::images
