#include "app/show_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/print_entry.h"
#include "kintsugi/base/format.h"
#include "kintsugi/images/image_file.h"

namespace kintsugi::app {

void show_images(const std::filesystem::path& path, const std::filesystem::path& labels) {
  const images::ImageFile file(path, labels);
  print_entry("images", fmt::format("{}, {}", path.string(), file.format()));
  print_entry("number", base::group_digits(file.size()));
  print_entry("size",
              fmt::format("{} channel{}, {}{} x {} pixels, {}", file.channels(), file.channels() == 1 ? "" : "s",
                          file.depth() > 0 ? fmt::format("{} x ", file.depth()) : "", file.height(), file.width(),
                          name_of(file.dtype())));
  if (!file.labels_path().empty()) print_entry("labels", file.labels_path().string());
  std::vector<int64_t> counts(static_cast<size_t>(file.classes()));
  for (int64_t i = 0; i < file.size(); ++i) ++counts[static_cast<size_t>(file.label(i))];
  const auto [least, most] = std::ranges::minmax(counts);
  print_entry("classes", fmt::format("{}, of {} to {} images", file.classes(), base::group_digits(least),
                                     base::group_digits(most)));
}

}  // namespace kintsugi::app
