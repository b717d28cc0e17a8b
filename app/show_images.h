// What a file of images holds.
#pragma once

#include <filesystem>

namespace kintsugi::app {

// Prints the format, number, size, type and classes of the images. `labels`: as images::ImageFile takes it.
void show_images(const std::filesystem::path& path, const std::filesystem::path& labels);

}  // namespace kintsugi::app
