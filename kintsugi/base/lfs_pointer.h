// Git LFS pointers: what a repository contains in place of a large file that was not downloaded.
#pragma once

#include <string_view>

namespace kintsugi::base {

// Takes the first bytes of a file.
inline bool is_lfs_pointer(std::string_view head) {
  return head.starts_with("version https://git-lfs.github.com/spec/");
}

inline constexpr std::string_view kLfsAdvice =
    "a pointer of Git LFS, not the file itself; run \"git lfs pull\" where it was cloned";

}  // namespace kintsugi::base
