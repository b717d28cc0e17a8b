// split_texts PATTERNS TEXTS OUTPUT: where each pattern splits each text, for patterns.py. PATTERNS, TEXTS: { uint32
// size, bytes }. OUTPUT: a line per pattern, "refused: ..." or for each text the pieces as "end" or "end*" for a match,
// separated by spaces, then ";".
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/text/pattern_engine.h"
#include "kintsugi/text/split_pattern.h"

namespace {

using namespace kintsugi;

std::vector<std::string> read_texts(const char* path) {
  const std::string file = base::read_file(path);
  std::vector<std::string> texts;
  for (size_t at = 0; at < file.size();) {
    uint32_t size = 0;
    std::memcpy(&size, file.data() + at, sizeof size);
    texts.push_back(file.substr(at + sizeof size, size));
    at += sizeof size + size;
  }
  return texts;
}

std::string split_all(const std::string& pattern, const std::vector<std::string>& texts) {
  std::string line = text::compile_common(pattern, "split_texts") ? "+" : "-";  // which engine it is for
  const text::SplitPattern split(pattern, false, "split_texts");
  for (const std::string& text : texts) {
    split.match(text, [&](std::string_view piece, bool is_match) {
      line += fmt::format("{}{} ", piece.data() + piece.size() - text.data(), is_match ? "*" : "");
    });
    line += ';';
  }
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("split_texts PATTERNS TEXTS OUTPUT\n", stderr), 2;
  const auto patterns = read_texts(argv[1]), texts = read_texts(argv[2]);
  std::string out;
  for (const std::string& pattern : patterns) {
    try {
      out += split_all(pattern, texts) + "\n";
    } catch (const base::UserError& error) {
      out += fmt::format("refused: {}\n", error.what());
    }
  }
  base::write_file_atomically(argv[3], out);
}
