// Vendor libraries, loaded on demand.
#pragma once

#include <span>
#include <string_view>

namespace kintsugi::base {

// Loads the first of these files that can be loaded, from the colon-separated folders in KINTSUGI_CUDA_LIBRARIES if
// set, else from the loader's; null if there is none. Never unloaded.
void* open_vendor_library(std::span<const char* const> names);

// Null if the library has no such function.
void* find_function(void* library, const char* name);

// The functions of one of these libraries.
class VendorLibrary {
 public:
  explicit VendorLibrary(std::span<const char* const> names) : opened_(open_vendor_library(names)) {}
  explicit operator bool() const { return opened_ != nullptr; }
  template <typename F>
  void find(const char* name, F*& function) {
    function = reinterpret_cast<F*>(find_function(opened_, name));
    found_all_ &= function != nullptr;
  }
  bool found_all() const { return found_all_; }

 private:
  void* opened_;
  bool found_all_ = true;
};

}  // namespace kintsugi::base
