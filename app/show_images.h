// The contents of an image file.
#pragma once

#include <filesystem>

namespace kintsugi::app {

// Prints the format, number, size, dtype and classes of the images. `labels`: as for images::ImageFile.
void show_images(const std::filesystem::path& path, const std::filesystem::path& labels);

}  // namespace kintsugi::app
