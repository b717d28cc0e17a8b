#include "kintsugi/jobs/node_list.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"

namespace kintsugi::jobs::node_list_test {
namespace {

using Names = std::vector<std::string>;

TEST(NodeList, IsExpanded) {
  EXPECT_EQ(expand_nodes("n[1-3]"), (Names{"n1", "n2", "n3"}));
  EXPECT_EQ(expand_nodes("nid[008-010,20],gpu4"), (Names{"nid008", "nid009", "nid010", "nid20", "gpu4"}));
  EXPECT_EQ(expand_nodes("r[1-2]n[1-2]-x"), (Names{"r1n1-x", "r1n2-x", "r2n1-x", "r2n2-x"}));
  EXPECT_EQ(expand_nodes("a,b,a"), (Names{"a", "b"}));
  EXPECT_EQ(expand_nodes(""), Names{});
}

TEST(NodeList, ThatIsNoneIsRefused) {
  for (const char* bad : {"n[1-", "n]1[", "n[3-1]", "n[x]", "n[[1]]", "n[0-999999999]"})
    EXPECT_THROW(expand_nodes(bad), base::UserError) << bad;
}

TEST(NodeList, OutputOfACommandThatFailsIsNone) {
  EXPECT_EQ(output_of("echo n1"), "n1\n");
  EXPECT_EQ(output_of("echo n1; exit 3"), "");
}

}  // namespace
}  // namespace kintsugi::jobs::node_list_test
