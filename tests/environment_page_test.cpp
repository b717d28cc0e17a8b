// docs/environment.md lists the variables that the sources read, and no others.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "kintsugi/base/file.h"
#include "tests/paths.h"

namespace kintsugi::tests::environment_page_test {
namespace {

// Names that follow `before`.
std::set<std::string> variables(const std::string& text, const std::string& before) {
  std::set<std::string> found;
  for (size_t at = text.find(before); at != text.npos; at = text.find(before, at + 1)) {
    const size_t begin = at + before.size();
    found.insert(text.substr(begin, text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", begin) - begin));
  }
  return found;
}

TEST(EnvironmentPage, ListsEveryVariable) {
  namespace fs = std::filesystem;
  std::set<std::string> read;
  for (const char* folder : {"/kintsugi", "/app"})
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(source_folder() + folder)) {
      const std::string name = file.path().filename().string();
      if (!file.is_regular_file() || name.find("_test.") != name.npos || name == "CMakeLists.txt") continue;
      read.merge(variables(base::read_file(file.path().string()), "\"KINTSUGI_"));
    }
  std::set<std::string> listed = variables(base::read_file(source_folder() + "/docs/environment.md"), "| `KINTSUGI_");
  read.erase("");
  EXPECT_EQ(listed, read);
}

}  // namespace
}  // namespace kintsugi::tests::environment_page_test
