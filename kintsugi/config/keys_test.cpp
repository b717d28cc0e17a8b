#include "kintsugi/config/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/config/check_value.h"
#include "kintsugi/config/keys_help.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/config/testing.h"
#include "kintsugi/config/toml_reader.h"

namespace kintsugi::config::keys_test {

TEST(Keys, TheListIsSound) {
  std::set<std::string> names;
  for (const Key& key : keys()) {
    EXPECT_TRUE(names.insert(key.full_name()).second) << key.full_name();
    EXPECT_EQ(std::ranges::count(sections(), key.section), 1) << key.full_name();
    EXPECT_FALSE(key.help.empty());
    EXPECT_EQ(find_key(key.section, key.name), &key - keys().data());
    EXPECT_EQ(key_index(key.full_name()), &key - keys().data());
  }
  EXPECT_EQ(find_key("train", "nothing"), -1);
  EXPECT_THROW(key_index("train.nothing"), base::InternalError);
}

// Every default that is not derived is a valid value.
TEST(Keys, DefaultsAreAllowed) {
  for (const Key& key : keys()) {
    const Value standard = key.get(Settings{});
    if ((key.section == "train" || key.section == "evaluate") && !key.rule.empty() &&
        to_toml(standard).starts_with("-1"))
      continue;  // not given
    Raw raw;
    ASSERT_TRUE(read_toml_value(to_toml(standard), raw)) << key.full_name();
    EXPECT_EQ(check_value(key, raw, "here"), standard) << key.full_name();
  }
}

TEST(Keys, Meant) {
  EXPECT_EQ(meant_key("train", "learningrate"), "learning_rate");
  EXPECT_EQ(meant_key("train", "lr"), "learning_rate");
  EXPECT_EQ(meant_key("model", "n_layer"), "layers");
  EXPECT_EQ(meant_key("model", "warmup_step"), "train.warmup_steps");
  EXPECT_EQ(meant_key("model", "xyz"), "");
  EXPECT_EQ(meant_key("model", ""), "");
  EXPECT_EQ(meant_key("model", std::string(10000, 'a')), "");
}

// If the list changes, the page must change: the failure prints the expected text.
TEST(Keys, ThePageIsTrue) {
  const std::filesystem::path page = std::filesystem::path(__FILE__).parent_path() / "../../docs/configuration.md";
  const std::string text = base::read_file(page);
  EXPECT_NE(text.find(markdown_tables()), std::string::npos) << "docs/configuration.md should hold:\n"
                                                             << markdown_tables();
}

TEST(Keys, TheExamplesOfThePageResolve) {
  const std::filesystem::path page = std::filesystem::path(__FILE__).parent_path() / "../../docs/configuration.md";
  const std::string text = base::read_file(page);
  int examples = 0;
  for (size_t at = 0; (at = text.find("```toml\n[", at)) != std::string::npos; ++examples) {
    at += 8;
    const Resolved r = resolve(read_text(text.substr(at, text.find("```", at) - at), "example"), 2);
    EXPECT_FALSE(r.settings.data.train.empty());
  }
  EXPECT_EQ(examples, 3);
}

// Random changes to a valid file, and random bytes: a one-line error or settings, nothing else.
TEST(Fuzz, NeverACrash) {
  const std::string seed_text =
      "[model]\nname = \"gpt2\" # size\nlayers = 0x2\n[data.train]\n\"a/b\" = 0.5\n'c' = 1_0\n[train]\nbetas = [0.9, "
      "1e-1]\n"
      "folder = '''x'''\nsteps = 1979-05-27T07:32:00Z\n[[x]]\ny = {a = [1, [2, {b = 3}]]}\n";
  const std::string pieces[] = {"[",  "]",     "=",   "\"",  "'''",  "\n",           "{",     "}",
                                ".",  ",",     "#",   "\\u", "\xff", "\0",           "1e999", "model",
                                "[[", "train", "= -", "inf", "0b1",  "\xef\xbb\xbf", "\r",    "\\"};
  std::mt19937_64 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int good = 0, bad = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string text;
    if (i % 3 == 0) {
      text.resize(below(200));
      for (char& c : text) c = static_cast<char>(random());
    } else {
      text = seed_text.substr(0, i % 3 == 1 ? seed_text.size() : below(seed_text.size()));
      for (size_t edits = below(6); edits-- > 0 && !text.empty();) {
        const std::string& piece = pieces[below(std::size(pieces))];
        if (below(2)) {
          text.insert(below(text.size()), piece);
        } else {
          text.erase(below(text.size()), below(9));
        }
      }
    }
    const std::vector<std::string> sets = {text.substr(0, below(40)),
                                           "train." + text.substr(below(text.size() + 1), 30)};
    for (const bool with_sets : {false, true}) {
      try {
        const Resolved r =
            resolve(read_text(with_sets ? "" : text, "fuzz.toml", with_sets ? sets : std::vector<std::string>{}), 2);
        EXPECT_EQ(read_text(to_toml(r), "saved.toml").settings, r.settings);
        ++good;
      } catch (const base::UserError& error) {
        EXPECT_EQ(std::string_view(error.what()).find_first_of("\n\r"), std::string_view::npos) << error.what();
        ++bad;
      }
    }
  }
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 1000);
}

TEST(Fuzz, DeepNesting) {
  for (const char* open : {"[", "{a="}) {
    std::string text = "[model]\nlayers = ";
    for (int i = 0; i < 100000; ++i) text += open;
    EXPECT_THROW(read_text(text, "deep.toml"), base::UserError);
  }
}

}  // namespace kintsugi::config::keys_test
