// dump_programs FOLDER: the programs of all cases of program_cases.h as text, a file for each case. Two versions of the
// project compile the same programs where tests/compare_programs.sh finds their folders alike. A case that cannot be
// built is a file with the error.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>

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
  for (const tests::ProgramCase& c : tests::program_cases(KINTSUGI_SOURCE)) {
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
