#include "kintsugi/plan/rule.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"

namespace kintsugi::plan::rule_test {
namespace {

constexpr std::string_view kForm =
    "; write \"dim [in family] -> axes [, padded] [, in steps]\", such as \"embed in contract -> tensor, padded\"";

// The error without the suffix that all of them share.
std::string error_of(std::string_view text) {
  try {
    parse_rule(text);
  } catch (const base::UserError& error) {
    const std::string message = error.what();
    return message.ends_with(kForm) ? message.substr(0, message.size() - kForm.size()) : "no form: " + message;
  }
  return "no error";
}

}  // namespace

TEST(Rule, RoundTrip) {
  const Rule rules[] = {
      {.dim = "batch", .axes = {"data"}},
      {.dim = "vocab", .axes = {"tensor"}, .family = "head", .pad = true},
      {.dim = "flat", .axes = {"data.1", "context"}, .family = "optimizer"},
      {.dim = "key_seq", .axes = {"context"}, .family = "attention", .steps = true},
      {.dim = "key_seq", .axes = {"context"}, .family = "attention", .pad = true, .steps = true},
  };
  const char* texts[] = {"batch -> data", "vocab in head -> tensor, padded", "flat in optimizer -> data.1 context",
                         "key_seq in attention -> context, in steps",
                         "key_seq in attention -> context, padded, in steps"};
  for (size_t i = 0; i < std::size(rules); ++i) {
    EXPECT_EQ(to_string(rules[i]), texts[i]);
    EXPECT_EQ(parse_rule(texts[i]), rules[i]) << texts[i];
  }
}

TEST(Rule, SpacesAreFree) {
  EXPECT_EQ(to_string(parse_rule(" key_seq  in attention->context ,in  steps,padded ")),
            "key_seq in attention -> context, padded, in steps");
}

TEST(Rule, Errors) {
  EXPECT_EQ(error_of(""), "[plan] rule \"\" has no \"->\"");
  EXPECT_EQ(error_of("embed tensor"), "[plan] rule \"embed tensor\" has no \"->\"");
  EXPECT_EQ(error_of("-> tensor"), "[plan] rule \"-> tensor\" names no dim");
  EXPECT_EQ(error_of("embed ->"), "[plan] rule \"embed ->\" names no axis");
  EXPECT_EQ(error_of("embed -> , padded"), "[plan] rule \"embed -> , padded\" names no axis");
  EXPECT_EQ(error_of("embed of contract -> tensor"),
            "[plan] rule \"embed of contract -> tensor\" begins with \"embed of contract\", which is neither a dim nor "
            "\"dim in family\"");
  EXPECT_EQ(
      error_of("embed in -> tensor"),
      "[plan] rule \"embed in -> tensor\" begins with \"embed in\", which is neither a dim nor \"dim in family\"");
  EXPECT_EQ(error_of("seq -> data tensor data"), "[plan] rule \"seq -> data tensor data\" names axis \"data\" twice");
  EXPECT_EQ(error_of("embed -> tensor, pad"),
            "[plan] rule \"embed -> tensor, pad\" ends in \"pad\", which is neither \"padded\" nor \"in steps\"");
  EXPECT_EQ(error_of("embed -> tensor,"),
            "[plan] rule \"embed -> tensor,\" ends in \"\", which is neither \"padded\" nor \"in steps\"");
  EXPECT_EQ(error_of("a\nb"), "[plan] rule \"a\\nb\" has no \"->\"");
}

}  // namespace kintsugi::plan::rule_test
