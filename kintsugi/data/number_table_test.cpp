#include "kintsugi/data/number_table.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/data/test_folder.h"

namespace kintsugi::data::number_table_test {
namespace {

std::shared_ptr<const NumberTable> table_of(const TestFolder& folder, const std::string& text) {
  base::write_file_atomically(folder / "t.csv", text);
  return std::make_shared<const NumberTable>(folder / "t.csv");
}

std::string error_of(const TestFolder& folder, const std::string& text) {
  try {
    table_of(folder, text);
  } catch (const base::UserError& error) {
    const std::string what = error.what();
    return what.substr(what.find("t.csv\"") + 6);
  }
  return "no error";
}

}  // namespace

TEST(NumberTable, ReadsLinesWithAndWithoutNames) {
  const TestFolder folder;
  for (const char* text : {"a,b\n1,2\n3,-4e-1\n", "1,2\n3,-0.4",
                           "\xef\xbb\xbf"
                           "1 , 2\r\n+3,-.4\r\n\r\n"}) {
    const auto table = table_of(folder, text);
    ASSERT_EQ(table->rows(), 2) << text;
    EXPECT_EQ(table->columns(), 2);
    EXPECT_EQ(table->row(1)[0], 3.0f);
    EXPECT_EQ(table->row(1)[1], -0.4f);
  }
  EXPECT_EQ(table_of(folder, "1,0\n2,3\n")->require_classes(1, 4), 4);
}

TEST(NumberTable, RefusesWhatIsNoNumber) {
  const TestFolder folder;
  EXPECT_EQ(error_of(folder, "1,2\n3,x\n"),
            ":2: \"x\" is not an fp32 number; a line holds numbers separated by commas");
  EXPECT_EQ(error_of(folder, "1,2\n3,\n"), ":2: \"\" is not an fp32 number; a line holds numbers separated by commas");
  EXPECT_EQ(error_of(folder, "1,2\n3\n"), ":2: 1 numbers, where the first line of numbers has 2");
  EXPECT_EQ(error_of(folder, "1,nan\n"), ":1: nan is not finite");
  EXPECT_EQ(error_of(folder, "1,1e99\n"),
            ":1: \"1e99\" is not an fp32 number; a line holds numbers separated by commas");
  EXPECT_EQ(error_of(folder, "1,2\n\n3,4\n"), ":2: an empty line between others");
  EXPECT_EQ(error_of(folder, "a,b\n"), " holds no numbers");
  EXPECT_EQ(error_of(folder, ""), " holds no numbers");
  EXPECT_THROW(table_of(folder, "a,b\n1,1\n2,3\n")->require_classes(1, 3), base::UserError);
  EXPECT_THROW(table_of(folder, "1,0.5\n")->require_classes(1, 3), base::UserError);
}

}  // namespace kintsugi::data::number_table_test
