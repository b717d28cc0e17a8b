// Libraries of vendors, which are loaded when they are asked for.
#pragma once

#include <span>
#include <string_view>

namespace kintsugi::base {

// The first of these files that can be loaded, from the folders that KINTSUGI_CUDA_LIBRARIES lists, with colons between
// them, or else from those of the loader; null if there is none. It stays loaded.
void* open_vendor_library(std::span<const char* const> names);

// The function of that name; false, and null, if the library has none.
void* find_function(void* library, const char* name);
template <typename F>
bool find_function(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(find_function(library, name));
  return function != nullptr;
}

}  // namespace kintsugi::base
