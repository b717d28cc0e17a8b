// For tests of prepare: options, errors and texts.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kintsugi/data/prepare.h"
#include "kintsugi/data/test_folder.h"

namespace kintsugi::data {

inline PrepareOptions options_for(const TestFolder& folder, std::vector<std::string> inputs) {
  PrepareOptions options;
  for (const std::string& input : inputs) options.inputs.push_back(folder.text(input));
  options.output = folder / "out";
  options.threads = 2;
  return options;
}

inline std::string prepare_error(const TestFolder& folder, const PrepareOptions& options) {
  std::string text = error_of([&] { prepare(options); });
  for (size_t at; (at = text.find(folder.path().string() + "/")) != std::string::npos;) {
    text.erase(at, folder.path().string().size() + 1);
  }
  return text;
}

// Text with everything that makes cutting hard.
inline std::string mixed_text(size_t paragraphs) {
  const std::vector<std::string> parts = {"The quick brown fox",
                                          "doesn't",
                                          "  two  spaces ",
                                          "\n\n\n",
                                          "12345 678",
                                          "naïve café",
                                          "日本語の文章です。",
                                          "\t tab\n ",
                                          "!!!\n",
                                          "a\u00a0b \u3000 c",
                                          "\xff\xfe bad",
                                          "e\u0301 ",
                                          "x = y_1\n\n    return",
                                          " ",
                                          "Привет мир\r\n"};
  std::string text;
  uint64_t state = 1;
  for (size_t i = 0; i < paragraphs; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    text += parts[(state >> 33) % parts.size()];
  }
  return text;
}

}  // namespace kintsugi::data
