#include "kintsugi/base/json.h"

#include <gtest/gtest.h>

#include "kintsugi/base/json_writer.h"

namespace kintsugi::base::json_test {
namespace {

Json read(std::string_view text) {
  return Json::parse("test", "x.json", text);
}

template <typename F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_in(std::string_view text) {
  return error_of([&] { read(text); });
}

TEST(Json, GivesValuesInTheOrderOfTheFile) {
  const Json root = read(R"({"b": [1, -2, 2.5, "t\u00e9xt\n"], "a": {"yes": true, "none": null}})");
  std::string keys;
  for (const Json& member : root.members()) keys += member.key();
  EXPECT_EQ(keys, "ba");
  const auto list = root.at("b").list();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].whole(), 1);
  EXPECT_EQ(list[1].whole(-5, 5), -2);
  EXPECT_EQ(list[1].number(), -2.0);
  EXPECT_EQ(list[2].number(), 2.5);
  EXPECT_EQ(list[3].text(), "téxt\n");
  EXPECT_TRUE(root.at("a").at("yes").boolean());
  EXPECT_TRUE(root.at("a").at("none").is_null());
  EXPECT_FALSE(root.has("c"));
  EXPECT_EQ(root.compact(), R"({"a":{"none":null,"yes":true},"b":[1,-2,2.5,"téxt\n"]})");
}

TEST(Json, OutlivesItsText) {
  std::optional<Json> inner;
  inner = read(std::string(R"({"a": {"b": "some text that is long"}})")).at("a");
  EXPECT_EQ(inner->at("b").text(), "some text that is long");
}

TEST(Json, NamesFileLineAndKey) {
  const Json root = read("{\n \"step\": -1,\n \"tensors\": {\n  \"w\": [\n   [\"a\", 1.5],\n   7]}}");
  const Json w = root.at("tensors").at("w");
  EXPECT_EQ(error_of([&] { root.at("step").whole(); }),
            "[test] \"x.json\":2: \"step\" is -1; it should be a whole number from 0 on");
  EXPECT_EQ(error_of([&] { w.list()[0].list()[1].whole(0, 9); }),
            "[test] \"x.json\":5: \"tensors.w[0][1]\" is 1.5; it should be a whole number from 0 to 9");
  EXPECT_EQ(error_of([&] { w.list()[1].text(); }), "[test] \"x.json\":6: \"tensors.w[1]\" is 7; it should be a text");
  EXPECT_EQ(error_of([&] { w.list()[0].members(); }),
            "[test] \"x.json\":5: \"tensors.w[0]\" is a list; it should be an object");
  EXPECT_EQ(error_of([&] { root.at("tensors").at("v"); }), "[test] \"x.json\":3: \"tensors.v\" is missing");
  EXPECT_EQ(error_of([&] { root.at("v"); }), "[test] \"x.json\":1: \"v\" is missing");
  EXPECT_EQ(error_of([&] { root.boolean(); }),
            "[test] \"x.json\":1: the value is an object; it should be true or false");
  EXPECT_EQ(error_of([&] { root.at("step").fail("it is of step {}", 3); }), "[test] \"x.json\":2: it is of step 3");
  EXPECT_EQ(error_of([] { Json::parse("test", "x.jsonl", R"({"a": "b"})", 12).at("a").number(); }),
            "[test] \"x.jsonl\":12: \"a\" is \"b\"; it should be a number");
}

TEST(Json, RefusesNumbersOutOfRange) {
  EXPECT_EQ(error_in("{\"a\": {\"b\": [1,\n1e999\n]}}"),
            "[test] \"x.json\":2: \"a.b[1]\" is 1e999, which is out of the range of numbers");
  EXPECT_EQ(error_in("-1e999"), "[test] \"x.json\":1: the value is -1e999, which is out of the range of numbers");
  EXPECT_EQ(error_of([] { read("9223372036854775808").whole(); }),
            "[test] \"x.json\":1: the value is 9223372036854775808; it should be a whole number from 0 on");
  EXPECT_EQ(error_of([] { read("99999999999999999999").whole(); }),
            "[test] \"x.json\":1: the value is 1e+20; it should be a whole number from 0 on");
  EXPECT_EQ(read("9223372036854775807").whole(), INT64_MAX);
}

TEST(Json, RefusesWhatIsNotJson) {
  const std::string cut = "the JSON ends too early, after ";
  EXPECT_EQ(error_in(""), "[test] \"x.json\":1: " + cut + "0 bytes; it seems to be cut off");
  EXPECT_EQ(error_in("{\"a\":\n"), "[test] \"x.json\":1: " + cut + "6 bytes; it seems to be cut off");
  EXPECT_EQ(error_in("{\"a\":\n oops}"), "[test] \"x.json\":2: this is not JSON at byte 2 of the line");
  EXPECT_EQ(error_in("{} {}"), "[test] \"x.json\":1: this is not JSON at byte 4 of the line");
  EXPECT_EQ(error_in("NaN"), "[test] \"x.json\":1: this is not JSON at byte 1 of the line");
  EXPECT_EQ(error_in("\"\xff\""), "[test] \"x.json\":1: this is not JSON at byte 2 of the line");
  EXPECT_EQ(error_in("\"\\ud800\""), "[test] \"x.json\":1: this is not JSON at byte 8 of the line");
  EXPECT_EQ(error_in(std::string_view("[1,\n\0 2]", 8)),
            "[test] \"x.json\":2: this is not JSON: it holds a NUL at byte 4");
}

TEST(Json, RefusesKeysThatAreThereTwice) {
  EXPECT_EQ(error_in("{\"a\": {\"b\": 1,\n\"c\": 2,\n\"\\u0062\": 3}}"), "[test] \"x.json\":3: \"a.b\" is there twice");
}

TEST(Json, NestsUpTo64Levels) {
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_EQ(error_in(nested(64)), "no error");
  EXPECT_EQ(error_in(nested(65)), "[test] \"x.json\":1: the values nest deeper than 64 levels");
}

TEST(Json, ErrorsAreOneLine) {
  const std::string key(1000, 'k');
  const std::string error = error_of([&] { read("{\"" + key + "\\n\": \"" + key + "\"}").members()[0].list(); });
  EXPECT_LT(error.size(), 300u);
  EXPECT_EQ(error.find('\n'), error.npos);
}

TEST(JsonWriter, WritesInOrder) {
  const auto write = [](int indent) {
    JsonWriter out(indent);
    out.object([&] {
      out.key("b").value(1).key("a").list([&] { out.value(0.1).value("x\n\"").value(true).null(); });
      out.key("none").object([] {}).key("empty").list([] {}).key("nan").value(0.0 / 0.0).key("c").value(-3.0);
    });
    return out.text();
  };
  EXPECT_EQ(write(-1), R"({"b":1,"a":[0.1,"x\n\"",true,null],"none":{},"empty":[],"nan":null,"c":-3.0})");
  EXPECT_EQ(
      write(1),
      "{\n \"b\": 1,\n \"a\": [\n  0.1,\n  \"x\\n\\\"\",\n  true,\n  null\n ],\n \"none\": {},\n \"empty\": [],\n "
      "\"nan\": null,\n \"c\": -3.0\n}");
  EXPECT_EQ(error_of([] { json_string("a\xff"); }), "[json] \"a\\xff\" is not UTF-8, so it cannot be written as JSON");
}

}  // namespace
}  // namespace kintsugi::base::json_test
