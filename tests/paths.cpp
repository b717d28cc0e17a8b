#include "tests/paths.h"

namespace kintsugi::tests {

std::string shared_folder() {
  return KINTSUGI_SHARED;
}

std::string source_folder() {
  return KINTSUGI_SOURCE;
}

std::string kintsugi_command() {
  return KINTSUGI_COMMAND;
}

}  // namespace kintsugi::tests
