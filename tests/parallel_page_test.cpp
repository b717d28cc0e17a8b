// The examples of docs/parallel.md: each resolves without a warning, fits its model, and gives the plan printed after
// it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "kintsugi/base/file.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/plan/check_plan.h"
#include "tests/paths.h"

namespace kintsugi::plan::parallel_page_test {
namespace {

std::string page() {
  return base::read_file(std::filesystem::path(tests::source_folder()) / "docs/parallel.md");
}

}  // namespace

TEST(ParallelPage, ExamplesMakeTheirPlans) {
  const std::string text = page(), begin = "```toml\n", between = "```\n```\n";
  int examples = 0;
  for (size_t at = 0; (at = text.find(begin, at)) != std::string::npos; ++examples) {
    at += begin.size();
    const size_t middle = text.find(between, at), plan_at = middle + between.size(), end = text.find("```", plan_at);
    ASSERT_NE(end, std::string::npos);
    const std::string example = text.substr(at, middle - at);
    config::Resolved r = config::resolve(config::read_text(example, "example", models::catalog()), 64);
    EXPECT_TRUE(r.warnings.empty()) << example;
    if (r.settings.model.vocab == 0)
      r.settings.model.vocab = 512;  // it follows from the data, which examples leave out
    const Plan plan = plan_from(r.settings.parallel);
    check_plan(plan, compile::dims_of(models::build_training(r.settings)));
    EXPECT_EQ(print(plan), text.substr(plan_at, end - plan_at)) << example;
    at = end;
  }
  EXPECT_EQ(examples, 11);
}

TEST(ParallelPage, NamesEveryKey) {
  const std::string text = page();
  for (const config::Key& key : config::keys())
    if (key.section == "parallel") {
      EXPECT_TRUE(text.find("`" + std::string(key.name)) != std::string::npos ||
                  text.find("\n" + std::string(key.name) + " = ") != std::string::npos)
          << key.name;
    }
}

}  // namespace kintsugi::plan::parallel_page_test
