// encode_texts TOKENIZER TEXTS OUTPUT: the ids of each text, and the decoded text, for compare.py; finally the ids that
// the tokenizer puts before and after texts, separated by -1. encode_texts TOKENIZER TEXTS: the speed of encoding all
// texts in one thread, by CPU time. TEXTS: { uint32 size, bytes }. OUTPUT: { uint32 number of ids, ids, uint32 size,
// bytes }.
#include <cstdio>
#include <cstring>
#include <ctime>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/text/tokenizer.h"

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

void append(std::string& out, const void* bytes, size_t size) {
  out.append(static_cast<const char*>(bytes), size);
}

void write_ids(const text::Tokenizer& tokenizer, const std::vector<std::string>& texts, const char* path) {
  std::string out;
  const auto write = [&](const std::vector<int32_t>& ids, const std::string& decoded) {
    const auto count = static_cast<uint32_t>(ids.size()), size = static_cast<uint32_t>(decoded.size());
    append(out, &count, sizeof count);
    append(out, ids.data(), count * sizeof ids[0]);
    append(out, &size, sizeof size);
    out += decoded;
  };
  for (const std::string& text : texts) {
    const std::vector<int32_t> ids = tokenizer.encode(text);
    write(ids, tokenizer.decode(ids));
  }
  text::SpecialTokens around = tokenizer.special_tokens();
  around.before.push_back(-1);
  around.before.insert(around.before.end(), around.after.begin(), around.after.end());
  write(around.before, "");
  base::write_file_atomically(path, out);
}

void measure(const text::Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  double best = 1e9;
  std::vector<int32_t> ids;
  for (int run = 0; run < 3; ++run) {
    const std::clock_t begin = std::clock();
    for (const std::string& text : texts) {
      ids.clear();
      tokenizer.encode(text, ids);
    }
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  std::printf("%.2f\n", static_cast<double>(bytes) / best / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return std::fputs("encode_texts TOKENIZER TEXTS [OUTPUT]\n", stderr), 2;
  try {
    const auto tokenizer = text::load_tokenizer(argv[1]);
    const auto texts = read_texts(argv[2]);
    if (argc == 4) {
      write_ids(*tokenizer, texts, argv[3]);
    } else {
      measure(*tokenizer, texts);
    }
  } catch (const base::UserError& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
