// The paths of this build and of its inputs.
#pragma once

#include <string>

namespace kintsugi::tests {

std::string shared_folder();     // real inputs; it may not exist
std::string source_folder();     // the project's own
std::string kintsugi_command();  // the path of the program `kintsugi`

}  // namespace kintsugi::tests
