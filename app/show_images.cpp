#include "app/show_images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "app/print_entry.h"
#include "kintsugi/base/format.h"
#include "kintsugi/images/array_file.h"
#include "kintsugi/images/channel_statistics.h"
#include "kintsugi/images/image_file.h"

namespace kintsugi::app {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;  // read for means and deviations

// By the type and shape of the labels.
images::LabelKind kind_of(const std::filesystem::path& labels) {
  if (labels.empty()) return images::LabelKind::none;
  const auto file = std::make_shared<const images::ByteFile>(labels);
  if (!images::is_npy(*file) && !images::is_idx(*file)) return images::LabelKind::classes;
  const images::ArrayFile array = images::open_array(file);
  if (array.type == "<f4") return array.shape.size() > 2 ? images::LabelKind::fields : images::LabelKind::numbers;
  return array.shape.size() > 2 ? images::LabelKind::pixels : images::LabelKind::classes;
}

void show_labels(const images::ImageFile& file) {
  if (!file.labels_path().empty()) print_entry("labels", file.labels_path().string());
  if (file.label_kind() == images::LabelKind::numbers)
    return print_entry("numbers", fmt::format("{} per image", base::group_digits(file.numbers())));
  if (file.label_kind() == images::LabelKind::fields)
    return print_entry("fields", fmt::format("{} channel{}", file.numbers(), file.numbers() == 1 ? "" : "s"));
  if (file.label_kind() == images::LabelKind::pixels)
    return print_entry("classes", fmt::format("{}, of pixels", file.classes()));
  if (file.classes() == 0) return;
  std::map<int32_t, int64_t> counts;
  for (int64_t i = 0; i < file.size(); ++i) ++counts[file.label(i)];
  const int64_t empty = file.classes() - std::ssize(counts);
  int64_t least = file.size(), most = 0;
  for (const auto& [label, count] : counts) {
    least = std::min(least, count);
    most = std::max(most, count);
  }
  print_entry("classes", fmt::format("{}, of {} to {} images{}", base::group_digits(file.classes()),
                                     base::group_digits(least), base::group_digits(most),
                                     empty > 0 ? fmt::format("; {} without images", base::group_digits(empty)) : ""));
}

// As values of model.image_mean and image_deviation. A constant channel is not scaled.
void show_statistics(const images::ImageFile& file) {
  images::ChannelStatistics found = images::channel_statistics(file, kMostBytes);
  std::ranges::replace(found.deviation, 0.0, 1.0);
  const std::string of = found.every == 1 ? "" : fmt::format(", of every {}th image", found.every);
  print_entry("mean", fmt::format("[{:.6g}]{}", fmt::join(found.mean, ", "), of));
  print_entry("deviation", fmt::format("[{:.6g}]{}", fmt::join(found.deviation, ", "), of));
  if (found.not_finite > 0)
    print_entry("not finite", fmt::format("{} numbers are NaN or infinity", base::group_digits(found.not_finite)));
}

}  // namespace

void show_images(const std::filesystem::path& path, const std::filesystem::path& labels) {
  const images::ImageFile file(path, labels, kind_of(labels));
  print_entry("images", fmt::format("{}, {}", path.string(), file.format()));
  print_entry("number", base::group_digits(file.size()));
  print_entry("size",
              fmt::format("{} channel{}, {}{} x {} pixels, {}", file.channels(), file.channels() == 1 ? "" : "s",
                          file.depth() > 0 ? fmt::format("{} x ", file.depth()) : "", file.height(), file.width(),
                          name_of(file.dtype())));
  show_labels(file);
  show_statistics(file);
}

}  // namespace kintsugi::app
