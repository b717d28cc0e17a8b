#include "app/verb.h"

#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/verbs.h"

namespace kintsugi::app::verb_test {
namespace {

std::string error_of(std::vector<std::string> args) {
  constexpr std::array<AddVerb, 11> kVerbs = {add_prepare,  add_check,    add_plan,    add_train,
                                              add_generate, add_evaluate, add_compare, add_explain,
                                              add_show,     add_import,   add_export};
  Command command(kVerbs);
  std::ostringstream out, err;
  EXPECT_EQ(command.run(args, out, err), 1);
  EXPECT_EQ(out.str(), "");
  return err.str();
}

// The numeric options of each verb, and their ranges.
struct Case {
  std::vector<std::string> verb;
  std::string option, allowed;
  bool zero = false, fraction = false;
};

}  // namespace

TEST(Verb, Numbers) {
  const std::string million = "1,000,000", billion = "1,000,000,000", trillion = "1,000,000,000,000";
  const std::string seeds = "an integer from 0 to 9,223,372,036,854,775,807";
  const auto to = [](int from, const std::string& most) { return fmt::format("an integer from {} to {}", from, most); };
  for (const Case& c :
       std::vector<Case>{{{"generate", "m"}, "--length", to(0, billion), true},
                         {{"generate", "m"}, "--temperature", "a number of at least 0", true, true},
                         {{"generate", "m"}, "--top-k", to(0, billion), true},
                         {{"generate", "m"}, "--seed", seeds, true},
                         {{"generate", "m"}, "--ranks", to(1, million)},
                         {{"generate", "m"}, "--threads", to(1, "10,000")},
                         {{"evaluate", "m"}, "--ranks", to(1, million)},
                         {{"evaluate", "m"}, "--threads", to(1, "10,000")},
                         {{"evaluate", "m"}, "--sequence", to(1, billion)},
                         {{"evaluate", "m"}, "--batch", to(1, billion)},
                         {{"check", "r"}, "--ranks", to(1, million)},
                         {{"plan", "r"}, "--ranks", to(1, million)},
                         {{"plan", "r"}, "--stage", to(0, million), true},
                         {{"train", "r"}, "--ranks", to(1, million)},
                         {{"explain", "r"}, "--ranks", to(1, million)},
                         {{"explain", "r", "--bytes"}, "--steps", to(0, million), true},
                         {{"compare", "r"}, "--ranks", to(1, million)},
                         {{"compare", "r"}, "--steps", to(1, trillion)},
                         {{"compare", "r"}, "--layers", to(1, "10,000")},
                         {{"compare", "r"}, "--sequence", to(1, billion)},
                         {{"compare", "r"}, "--global-batch", to(1, billion)},
                         {{"compare", "r"}, "--tolerance", "a number above 0", false, true},
                         {{"compare", "r"}, "--loss-tolerance", "a number above 0", false, true},
                         {{"prepare", "t", "-o", "c"}, "--seed", seeds, true},
                         {{"prepare", "t", "-o", "c"}, "--threads", to(0, "4,096"), true},
                         {{"prepare", "t", "-o", "c"}, "--validation", "a number from 0 to below 1", true, true}}) {
    std::vector<std::string> bad = {"nan", "inf", "-1", "", "x", "3 ", "0x10", "010", "1_000", "1e400"};
    if (!c.fraction) bad.insert(bad.end(), {"1.5", "1e3", "99999999999999999999"});
    if (!c.zero) bad.push_back("0");
    for (const std::string& value : bad) {
      std::vector<std::string> args = c.verb;
      args.insert(args.end(), {c.option, value});
      EXPECT_EQ(error_of(args), fmt::format("error: [{}] {} {} is not {}\n", c.verb[0], c.option,
                                            value.empty() ? "\"\"" : value, c.allowed));
    }
  }
}

TEST(Verb, EmptyTexts) {
  for (const auto& [verb, option] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"plan", "r"}, "--csv"},
           {{"plan", "r"}, "--svg"},
           {{"explain", "r"}, "--pass"},
           {{"explain", "r"}, "--svg"},
           {{"compare", "r"}, "--csv"},
           {{"compare", "r"}, "--dtype"},
           {{"generate", "m"}, "--stop"},
           {{"generate", "m"}, "--prompt-file"},
           {{"generate", "m"}, "--prompts-file"},
           {{"generate", "m"}, "--dtype"},
           {{"evaluate", "m"}, "--dtype"},
           {{"explain", "r", "--bytes"}, "--csv"},
           {{"evaluate", "m"}, "--data"},
           {{"prepare", "t", "-o", "c"}, "--tokenizer"},
           {{"prepare", "t", "-o", "c"}, "--field"},
           {{"prepare", "t", "-o", "c"}, "--validation-text"}}) {
    std::vector<std::string> args = verb;
    args.insert(args.end(), {option, ""});
    EXPECT_EQ(error_of(args),
              fmt::format("error: [{}] {} is empty; give it a value, or leave it out\n", verb[0], option));
  }
  EXPECT_EQ(error_of({"prepare", "t", "-o", ""}), "error: [prepare] --output is empty; give it a value\n");
  EXPECT_EQ(error_of({"prepare", "", "-o", "c"}),
            "error: [prepare] inputs is empty; give it a value, or leave it out\n");
  EXPECT_EQ(error_of({"show", ""}), "error: [show] path is empty; give it a value\n");
  EXPECT_EQ(error_of({"generate", ""}), "error: [generate] model is empty; give it a value, or leave it out\n");
  EXPECT_EQ(error_of({"train", ""}), "error: [train] run.toml is empty; give it a value, or leave it out\n");
}

TEST(Verb, Words) {
  for (const std::string verb : {"generate", "evaluate"})
    for (const std::string dtype : {"int8", "FP32", "fp32 ", "float"})
      EXPECT_EQ(error_of({verb, "m", "--dtype", dtype}),
                fmt::format("error: [{}] --dtype {} is not one of fp32, bf16, fp16, fp64{}\n", verb, dtype,
                            dtype == "int8" ? "" : "; did you mean \"fp32\"?"));
}

TEST(Verb, TheEndOfALongErrorStays) {
  const std::string error = error_of({"explain", "r", "--pass", std::string(9000, 'x')});
  EXPECT_LT(error.size(), 2100u);
  EXPECT_EQ(error.substr(0, 38), "error: [explain] unknown pass \"xxxxxxx");
  EXPECT_NE(error.find("xxx..."), std::string::npos);
  const std::string end = error.substr(error.find("...") + 3);
  EXPECT_GT(end.size(), 150u);
  EXPECT_TRUE(error_of({"explain", "r", "--pass", "x"}).ends_with(end));
  EXPECT_TRUE(error.ends_with(", communication\n"));
}

}  // namespace kintsugi::app::verb_test
