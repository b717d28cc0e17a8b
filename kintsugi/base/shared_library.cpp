#include "kintsugi/base/shared_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::base {

void* open_vendor_library(std::span<const char* const> names) {
  std::vector<std::string> folders;
  const char* list = std::getenv("KINTSUGI_CUDA_LIBRARIES");
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    std::error_code ignored;
    if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
      throw UserError("device", "KINTSUGI_CUDA_LIBRARIES lists \"{}\", which is not a folder", one_line(folder, 200));
    if (!folder.empty()) folders.push_back(std::string(folder) + "/");
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  folders.emplace_back();
  for (const std::string& folder : folders)
    for (const char* name : names)
      if (void* opened = ::dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return opened;
  return nullptr;
}

void* find_function(void* library, const char* name) {
  return ::dlsym(library, name);
}

}  // namespace kintsugi::base
