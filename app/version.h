#pragma once

#include <string>

namespace kintsugi::app {

// The page of --version: version, build, compiler, features, libraries, processor. Ends without a line break.
std::string version_text();

}  // namespace kintsugi::app
