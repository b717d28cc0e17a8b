// Labelled images in the file formats of published data sets.
//
//   CIFAR-10   records of a label (0 to 9) and 3 x 32 x 32 bytes, channels first
//   CIFAR-100  records of a coarse label (0 to 19), a label (0 to 99) and 3 x 32 x 32 bytes
//   idx        [image height width] or [image height width channel], uint8; labels in a separate file
//   npy        the same, or [image channel height width]; volumes [image channel depth height width], or with channels
//              last; uint8 or fp32
//
// The format is detected by content. Files may be gzipped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/images/byte_file.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::images {

// The kind of labels: a class per image; numbers per image; a class per pixel, uint8, where 255 means none; numbers per
// pixel, fp32. `none`: labels are optional; those embedded in the file or in the counterpart of an idx file are read.
enum class LabelKind : uint8_t { classes, numbers, pixels, fields, none };

class ImageFile {
 public:
  // `labels`: a file of labels (idx, npy, or text with one number per line) for formats without embedded labels; empty:
  // the counterpart of a published idx pair next to the images, "labels-idx1" for "images-idx3". Throws UserError,
  // naming the file, for corrupt files, another rank or type, labels out of range, and a number of labels other than
  // that of images. Numbers are a CSV with one line per image, or npy, fp32 [image] or [image number]; pixel classes
  // are npy or idx, uint8, with the sizes of the images; fields are npy, fp32, with the sizes of the images and any
  // number of channels, in the forms of images, without NaN or infinity.
  ImageFile(const std::filesystem::path& path, const std::filesystem::path& labels,
            LabelKind kind = LabelKind::classes);

  const std::filesystem::path& path() const { return bytes_->path(); }
  const std::filesystem::path& labels_path() const { return labels_path_; }  // empty: in the same file
  const std::string& format() const { return format_; }                      // "CIFAR-10", "idx"
  tensor::DType dtype() const { return dtype_; }
  int64_t size() const { return images_; }
  LabelKind label_kind() const { return kind_; }
  int64_t channels() const { return channels_; }
  int64_t depth() const { return depth_; }  // 0: two-dimensional images
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  int64_t pixels() const { return std::max<int64_t>(depth_, 1) * height_ * width_; }
  int64_t bytes_per_image() const { return channels_ * pixels() * tensor::size_of(dtype_); }
  int64_t classes() const { return classes_; }  // of the format, or the largest label plus one
  int64_t numbers() const { return numbers_; }  // per image, where labels are numbers; the channels of fields

  int32_t label(int64_t i) const { return labels_.empty() ? -1 : labels_[static_cast<size_t>(i)]; }  // -1: unknown
  std::span<const float> numbers_of(int64_t i) const {
    return std::span(targets_).subspan(static_cast<size_t>(i * numbers_), static_cast<size_t>(numbers_));
  }
  // Reads the class of each pixel [[depth] height width] of image i, -1 for none. Allocates nothing.
  void read_classes(int64_t i, std::span<int32_t> to) const;
  // Reads the fields of image i as [[depth] height width channel]. Allocates nothing.
  void read_fields(int64_t i, std::span<float> to) const;
  // The first image whose fields are zero everywhere, which have no relative error; -1: none.
  int64_t image_of_zeros() const { return image_of_zeros_; }
  // Reads image i as [channel [depth] height width]. Const use is thread-safe. Allocates nothing.
  void read(int64_t i, std::span<std::byte> to) const;
  std::string fingerprint() const;  // of images and labels

 private:
  void open_cifar();
  void open_arrays(const std::filesystem::path& labels);
  void open_label_file(const std::filesystem::path& given);
  void read_classes_of_images(const std::shared_ptr<const ByteFile>& file);
  void read_numbers(const std::shared_ptr<const ByteFile>& file);
  void open_classes_of_pixels(const std::shared_ptr<const ByteFile>& file);
  void open_fields(const std::shared_ptr<const ByteFile>& file);

  LabelKind kind_ = LabelKind::classes;
  int64_t images_ = 0, numbers_ = 0, image_of_zeros_ = -1;
  std::shared_ptr<const ByteFile> bytes_, of_pixels_;
  int64_t of_pixels_begin_ = 0;
  bool fields_last_ = false;  // their channels
  std::filesystem::path labels_path_;
  std::string format_, labels_fingerprint_;
  tensor::DType dtype_ = tensor::DType::u8;
  int64_t channels_ = 0, depth_ = 0, height_ = 0, width_ = 0, classes_ = 0;
  int64_t begin_ = 0, stride_ = 0;  // of images in the file, in bytes
  bool channels_last_ = false;
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
};

// Whether the file has the magic number of one of these formats or the size of CIFAR records.
bool is_image_file(const std::filesystem::path& path);

}  // namespace kintsugi::images
