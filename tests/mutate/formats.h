// The formats to read. A new one is a row of the table in formats.cpp.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/mutate/mutations.h"

namespace kintsugi::tests {

struct MutatedFile {
  std::string_view path;  // in the folder of the sample
  Content content = Content::text;
};

// All functions run with the sample's folder as the working directory and use relative names, so results do not depend
// on where that folder is.
struct Format {
  std::string_view name;
  void (*make)(int sample);  // a small valid sample, 0 or 1: they differ
  std::vector<MutatedFile> files;
  void (*read)();                          // in this process, by the functions that the verbs use
  std::vector<std::string_view> commands;  // arguments of `kintsugi` by which it reads the same
  void (*fix_checksums)() = nullptr;       // makes checksums those of the mutated files; null: there are none
};

std::span<const Format> formats();

}  // namespace kintsugi::tests
