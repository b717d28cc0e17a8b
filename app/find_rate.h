// `train --find-learning-rate`: a range test, as a table and a picture.
#pragma once

#include <filesystem>

#include "app/run_options.h"
#include "kintsugi/config/origin.h"

namespace kintsugi::app {

// `picture`: the SVG to write. Prints the table and the learning rate to begin with.
void find_learning_rate(const RunOptions& options, config::Resolved config, const std::filesystem::path& picture);

}  // namespace kintsugi::app
