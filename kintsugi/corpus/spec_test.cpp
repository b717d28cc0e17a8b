#include "kintsugi/corpus/spec.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"

namespace kintsugi::corpus {
namespace spec_test {
namespace {

std::string error_of(std::string_view text) {
  try {
    read_spec(text, "corpus.toml");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(CorpusSpec, IsReadInFileOrder) {
  const Spec spec = read_spec(R"(
[source.papers]
path = ["papers/*.jsonl", "more.jsonl.gz"]
field = "abstract"
[source.graph]
path = "mag.jsonl"
format = "inverted"
field = "IndexedAbstract"
[source.books]
path = "books/train"
format = "tokens"
tokenizer = "gpt2"
[filter]
languages = ["en", "fr"]
min_bytes = 100
quality = "gopher"
skip_bad_lines = 3
[deduplicate]
near = 0.8
[decontaminate]
path = "eval"
words = 8
)",
                              "corpus.toml");
  ASSERT_EQ(spec.sources.size(), 3u);
  EXPECT_EQ(spec.sources[0].domain, "papers");
  EXPECT_EQ(spec.sources[0].paths, (std::vector<std::string>{"papers/*.jsonl", "more.jsonl.gz"}));
  EXPECT_EQ(spec.sources[0].field, "abstract");
  EXPECT_EQ(spec.sources[1].format, Format::inverted);
  EXPECT_EQ(spec.sources[2].tokenizer, "gpt2");
  EXPECT_EQ(spec.filter.languages, (std::vector<std::string>{"en", "fr"}));
  EXPECT_EQ(spec.filter.min_bytes, 100);
  EXPECT_EQ(spec.filter.skip_bad_lines, 3);
  EXPECT_TRUE(spec.filter.gopher);
  EXPECT_TRUE(spec.deduplicate.exact);
  EXPECT_EQ(spec.deduplicate.near, 0.8);
  EXPECT_EQ(spec.decontaminate.words, 8);
}

TEST(CorpusSpec, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(error_of("[filter]\nmin_bytes = 5\n"),
            "[prepare] corpus.toml: no source; add a section [source.NAME] with path = \"...\"");
  EXPECT_EQ(error_of("[sources]\n"),
            "[prepare] corpus.toml:1: unknown section [sources]; known sections: source.NAME, filter, deduplicate, "
            "decontaminate");
  EXPECT_EQ(error_of("[source.a]\nformat = \"jsonl\"\n"), "[prepare] corpus.toml:1: [source.a] has no path");
  EXPECT_EQ(error_of("[source.a]\npath = \"x\"\nformat = \"csv\"\n"),
            "[prepare] corpus.toml:3: source.a.format is \"csv\"; known formats: text, jsonl, inverted, tokens");
  EXPECT_EQ(error_of("[source.a]\npath = \"x\"\nformat = \"tokens\"\n"),
            "[prepare] corpus.toml:1: [source.a] has the format tokens and no tokenizer; name the tokenizer that made "
            "the ids");
  EXPECT_EQ(error_of("[source.\"a b\"]\npath = \"x\"\n"),
            "[prepare] corpus.toml:1: source.a b must have a name of 1 to 64 letters, digits, _ and -");
  EXPECT_EQ(error_of("[source.a]\npath = \"x\"\n[deduplicate]\nnear = 2\n"),
            "[prepare] corpus.toml:4: deduplicate.near must be a number from 0 to 1");
  EXPECT_EQ(error_of("[source.a]\npath = \"x\"\n[filter]\nlanguage = \"en\"\n"),
            "[prepare] corpus.toml:4: filter.language is not a key of this section; known keys: languages, min_bytes, "
            "max_bytes, skip_bad_lines, quality");
  EXPECT_EQ(error_of("[source.a]\npath = [1]\n"),
            "[prepare] corpus.toml:2: source.a.path must be a text or a list of texts");
}

}  // namespace
}  // namespace spec_test
}  // namespace kintsugi::corpus
