// The images of several files as one data set.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/images/image_file.h"

namespace kintsugi::images {

// The purpose of opening a folder, which determines the part of a published data set.
enum class Use { train, evaluate };

// Returns a file itself, or the files of a published data set in a folder: data_batch_*.bin or test_batch.bin of
// CIFAR-10, train.bin or test.bin of CIFAR-100, train-images-idx3-ubyte or t10k-images-idx3-ubyte of MNIST, optionally
// with ".gz". Throws UserError for a folder without them.
std::vector<std::filesystem::path> image_files(const std::filesystem::path& path, Use use);

class ImageSet {
 public:
  // `paths`: one or more, each as for image_files. `labels`: as for ImageFile, for a single file. Throws UserError for
  // files whose images differ in size or type.
  ImageSet(const std::vector<std::filesystem::path>& paths, const std::filesystem::path& labels, Use use,
           LabelKind kind = LabelKind::classes);

  const std::vector<ImageFile>& files() const { return files_; }
  int64_t size() const { return ends_.back(); }
  tensor::DType dtype() const { return files_[0].dtype(); }
  LabelKind label_kind() const { return files_[0].label_kind(); }
  int64_t channels() const { return files_[0].channels(); }
  int64_t depth() const { return files_[0].depth(); }
  int64_t height() const { return files_[0].height(); }
  int64_t width() const { return files_[0].width(); }
  int64_t classes() const;

  int64_t numbers() const { return files_[0].numbers(); }
  // "3 x 32 x 32 of uint8"
  std::string size_text() const;

  int32_t label(int64_t i) const;  // -1: unknown
  std::span<const float> numbers_of(int64_t i) const;
  void read_classes(int64_t i, std::span<int32_t> to) const;
  void read_fields(int64_t i, std::span<float> to) const;
  void read(int64_t i, std::span<std::byte> to) const;  // as ImageFile
  // Throws UserError unless each label is below `classes`.
  void require_labels(int64_t classes) const;
  // Throws UserError if the fields of an image are zero everywhere, for a relative error.
  void require_norms() const;
  // Throws UserError if a class has no image.
  void require_all_classes(int64_t classes) const;

 private:
  // Returns the file containing image i, and its index there.
  std::pair<const ImageFile*, int64_t> locate(int64_t i) const;

  std::vector<ImageFile> files_;
  std::vector<int64_t> ends_;  // per file: number of images up to its end
};

}  // namespace kintsugi::images
