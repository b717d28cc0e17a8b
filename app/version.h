#pragma once

#include <string>

namespace kintsugi::app {

// The page of --version: version, build, compiler, features, libraries, processor. Without a final line break.
std::string version_text();

}  // namespace kintsugi::app
