#include "kintsugi/config/resolved_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/testing.h"

namespace kintsugi::config::resolved_file_test {

TEST(WrittenOrigins, AreThoseOfTheConfiguration) {
  const std::vector<std::string> sets = {"train.learning_rate=0.25"};
  const std::string given = "[model]\nname = \"gpt2\"\n[data]\ntrain = \"a # b\"\n[train]\nsteps = 7\n";
  const Resolved r = resolve(read_text(given, "run.toml", sets), 2);
  const std::string toml = to_toml(r);
  const std::vector<std::string> origins = written_origins(toml, r.settings);
  ASSERT_EQ(origins.size(), keys().size());
  for (size_t i = 0; i < origins.size(); ++i) EXPECT_EQ(origins[i], r.origins[i].text()) << keys()[i].full_name();
  const auto origin = [&](std::string_view key) { return origins[static_cast<size_t>(key_index(key))]; };
  EXPECT_EQ(origin("data.train"), "run.toml:4");
  EXPECT_EQ(origin("train.learning_rate"), "--set");

  // A value without a line in the file has no origin comment.
  Settings changed = r.settings;
  changed.train.steps = 70;
  EXPECT_EQ(written_origins(toml, changed)[static_cast<size_t>(key_index("train.steps"))], "");
  for (const std::string& none : written_origins("[train]\nsteps = 7\n", r.settings)) EXPECT_EQ(none, "");
}

TEST(WrittenOrigins, SayWhatWasGiven) {
  for (const char* given : {"run.toml:4", "--set", "size gpt2", "folder x"}) EXPECT_TRUE(says_given(given)) << given;
  for (const char* not_given : {"", "default", "derived: heads", "saved in the run"})
    EXPECT_FALSE(says_given(not_given)) << not_given;
}

}  // namespace kintsugi::config::resolved_file_test
