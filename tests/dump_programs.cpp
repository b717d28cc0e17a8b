// dump_programs FOLDER: the programs of all cases of program_cases.h as text, one file per case; a case that fails to
// build contains the error. tests/compare_programs.sh compares the folders of two versions of the project.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/paths.h"
#include "tests/program_cases.h"
#include "tests/program_text.h"

namespace {

namespace fs = std::filesystem;
using namespace kintsugi;

// "layouts/gpt data=2" -> "layouts/gpt_data=2.txt"
fs::path file_of(std::string name) {
  for (char& c : name)
    if (c == ' ') c = '_';
  return name + ".txt";
}

std::string text_of(const tests::ProgramCase& c) {
  try {
    std::string text;
    for (const program::Program& p : c.build()) text += tests::program_text(p);
    return text;
  } catch (const std::exception& e) {
    return fmt::format("error: {}\n", e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: dump_programs FOLDER\n");
    return 2;
  }
  const fs::path folder = argv[1];
  std::set<fs::path> known;
  size_t errors = 0;
  for (const tests::ProgramCase& c : tests::program_cases(tests::source_folder())) {
    const fs::path file = file_of(c.name);
    if (!known.insert(file).second) {
      fmt::print(stderr, "two cases are named {}\n", c.name);
      return 1;
    }
    const std::string text = text_of(c);
    if (text.starts_with("error: ")) {
      ++errors;
      fmt::print("{}: {}", c.name, text);
    }
    fs::create_directories((folder / file).parent_path());
    std::ofstream(folder / file) << text;
  }
  fmt::print("{} cases, {} of them errors\n", known.size(), errors);
  return 0;
}
