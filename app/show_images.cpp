#include "app/show_images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "app/print_entry.h"
#include "kintsugi/base/format.h"
#include "kintsugi/images/channel_statistics.h"
#include "kintsugi/images/image_file.h"

namespace kintsugi::app {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;  // read for means and deviations

void show_classes(const images::ImageFile& file) {
  if (!file.labels_path().empty()) print_entry("labels", file.labels_path().string());
  std::vector<int64_t> counts(static_cast<size_t>(file.classes()));
  for (int64_t i = 0; i < file.size(); ++i) ++counts[static_cast<size_t>(file.label(i))];
  const auto [least, most] = std::ranges::minmax(counts);
  print_entry("classes", fmt::format("{}, of {} to {} images", file.classes(), base::group_digits(least),
                                     base::group_digits(most)));
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
  // The labels of npy files have no fixed names.
  const bool alone = labels.empty() && images::ImageFile(path, "", images::LabelKind::none).format() == "npy";
  const images::ImageFile file(path, labels, alone ? images::LabelKind::none : images::LabelKind::classes);
  print_entry("images", fmt::format("{}, {}", path.string(), file.format()));
  print_entry("number", base::group_digits(file.size()));
  print_entry("size",
              fmt::format("{} channel{}, {}{} x {} pixels, {}", file.channels(), file.channels() == 1 ? "" : "s",
                          file.depth() > 0 ? fmt::format("{} x ", file.depth()) : "", file.height(), file.width(),
                          name_of(file.dtype())));
  if (!alone) show_classes(file);
  show_statistics(file);
}

}  // namespace kintsugi::app
