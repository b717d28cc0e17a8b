#include "kintsugi/checkpoint/index.h"

#include <gtest/gtest.h>

#include <random>

#include "kintsugi/checkpoint/scratch_test.h"

namespace kintsugi::checkpoint::index_test {
namespace {

const std::string kIndex = R"({"format":"kintsugi checkpoint","version":1,"step":12,"state":{"cursor":3},
"files":{"rank_00000.safetensors":{"bytes":99,"checksum":"00000000000000aa"}},
"tensors":{"w":{"dims":[["a",4],["b",6]],"dtype":"bf16","kind":"optimizer","pieces":[
{"start":[0,0],"size":[2,6],"flat":[0,5],"file":"rank_00000.safetensors","key":"w","checksum":"0123456789abcdef"},
{"start":[0,0],"size":[2,6],"flat":[5,12],"file":"rank_00000.safetensors","key":"w#1","checksum":"0000000000000001"},
{"start":[2,0],"size":[2,6],"file":"rank_00000.safetensors","key":"w#2","checksum":"0000000000000002"}]}}})";

// The error for the index with one text replaced by another.
std::string error_with(const std::string& from, const std::string& to) {
  std::string text = kIndex;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  text.replace(at, from.size(), to);
  return error_of([&] { check_coverage("i", parse_index("i", text)); });
}

}  // namespace

TEST(Index, RoundTrip) {
  const Index index = parse_index("i", kIndex);
  check_coverage("i", index);
  EXPECT_EQ(index.step, 12);
  EXPECT_EQ(index.state, R"({"cursor":3})");
  const StoredTensor& w = index.tensors.at("w");
  EXPECT_EQ(to_string(w.type.shape), "[a:4 b:6]");
  EXPECT_EQ(w.type.dtype, tensor::DType::bf16);
  EXPECT_EQ(w.kind, Kind::optimizer);
  EXPECT_EQ(w.pieces[1].part.flat, (Range{5, 12}));
  EXPECT_EQ(w.pieces[2].part.flat, (Range{0, 12}));
  EXPECT_EQ(w.pieces[0].checksum, 0x0123456789abcdefu);
  const std::string printed = print_index(index);
  EXPECT_EQ(print_index(parse_index("i", printed)), printed);
}

TEST(Index, Errors) {
  const std::string i = "[checkpoint] \"i\": ";
  const auto at = [](int line) { return "[checkpoint] \"i\":" + std::to_string(line) + ": "; };
  EXPECT_EQ(error_with("kintsugi checkpoint", "other"),
            at(1) + "it has no \"format\": \"kintsugi checkpoint\"; is it the index of a checkpoint?");
  EXPECT_EQ(error_with("\"version\":1", "\"version\":2"),
            at(1) + "\"version\" is 2; it should be 1, the version that this program reads");
  EXPECT_EQ(error_with("\"step\":12", "\"step\":-12"),
            at(1) + "\"step\" is -12; it should be a whole number from 0 on");
  EXPECT_EQ(error_with("\"step\":12,", ""), at(1) + "\"step\" is missing");
  EXPECT_EQ(error_with("{\"cursor\":3}", "[]"), at(1) + "\"state\" is a list; it should be an object");
  EXPECT_EQ(error_with("\"rank_00000.safetensors\":", "\"../etc\":"),
            at(2) + "\"../etc\" is not the name of a file in the checkpoint's folder");
  EXPECT_EQ(error_with("00000000000000aa", "AA"),
            at(2) + "\"files.rank_00000.safetensors.checksum\" is \"AA\"; it should be 16 hexadecimal digits");
  EXPECT_EQ(error_with("[\"a\",4]", "[\"a\",-4]"),
            at(3) + "\"tensors.w.dims[0][1]\" is -4; it should be a whole number from 0 on");
  EXPECT_EQ(error_with("[\"a\",4]", "[\"a\"]"),
            at(3) + "\"tensors.w.dims[0]\" is a list; it should be a pair of a name and a size");
  EXPECT_EQ(error_with("[\"a\",4]", "[\"b\",4]"), at(3) + "tensor \"w\" names dim \"b\" twice");
  EXPECT_EQ(error_with("[\"a\",4]", "[\"a\",4000000000000000000]"),
            at(3) + "tensor \"w\" has more bytes than 63 bits can count");
  EXPECT_EQ(
      error_with("\"bf16\"", "\"bf17\""),
      at(3) +
          "\"tensors.w.dtype\" is \"bf17\"; it should be one of fp64, fp32, bf16, fp16, int64, int32, uint16, uint8, "
          "int8");
  EXPECT_EQ(error_with("\"optimizer\"", "\"other\""),
            at(3) + "\"tensors.w.kind\" is \"other\"; it should be one of weight, optimizer, statistic");
  EXPECT_EQ(error_with("\"size\":[2,6]", "\"size\":[2,7]"),
            at(4) + "a piece of tensor \"w\" does not fit into [a:4 b:6]");
  EXPECT_EQ(error_with("\"size\":[2,6]", "\"size\":[2]"),
            at(4) + "a piece of tensor \"w\" does not fit into [a:4 b:6]");
  EXPECT_EQ(error_with("[5,12]", "[5,13]"), at(5) + "a piece of tensor \"w\" holds elements 5 to 13 of a box of 12");
  EXPECT_EQ(error_with("[5,12]", "[5,5]"), at(5) + "a piece of tensor \"w\" holds elements 5 to 5 of a box of 12");
  EXPECT_EQ(error_with("[5,12]", "[5]"),
            at(5) + "\"tensors.w.pieces[1].flat\" is a list; it should be a pair of numbers");
  EXPECT_EQ(error_with("\"file\":\"rank_00000.safetensors\"", "\"file\":\"x\""),
            at(4) + "a piece of tensor \"w\" is in file \"x\", which \"files\" lacks");
  const std::string w = i + "tensor \"w\" [a:4 b:6] is incomplete: ";
  EXPECT_EQ(error_with("[5,12]", "[4,12]"), w + "of box [0:2 0:6], elements 4 to 5 are stored twice");
  EXPECT_EQ(error_with("[5,12]", "[6,12]"), w + "of box [0:2 0:6], elements 5 to 6 are stored nowhere");
  EXPECT_EQ(error_with("[5,12]", "[5,11]"), w + "of box [0:2 0:6], elements 11 to 12 are stored nowhere");
  EXPECT_EQ(error_with("\"start\":[2,0],\"size\":[2,6]", "\"start\":[1,0],\"size\":[2,6]"),
            w + "boxes [0:2 0:6] and [1:3 0:6] overlap");
  EXPECT_EQ(error_with("\"start\":[2,0],\"size\":[2,6]", "\"start\":[2,0],\"size\":[1,6]"),
            w + "its pieces hold 18 of its 24 elements");
}

TEST(Index, RanksMustAgree) {
  Index a = parse_index("i", kIndex), b = a;
  EXPECT_EQ(error_of([&] { merge("j", a, b); }),
            "[checkpoint] \"j\": file \"rank_00000.safetensors\" is another rank's");
  b.files.clear();
  b.tensors.at("w").kind = Kind::weight;
  EXPECT_EQ(
      error_of([&] { merge("j", a, b); }),
      "[checkpoint] \"j\": tensor \"w\" is weight bf16 [a:4 b:6], on another rank it is optimizer bf16 [a:4 b:6]");
  b.step = 13;
  EXPECT_EQ(error_of([&] { merge("j", a, b); }), "[checkpoint] \"j\": it is of step 13, not 12");
}

TEST(Index, DamagedTextIsRefused) {
  std::mt19937 random(5);
  const std::string_view alphabet = "{}[]\":,0123456789-eatrues \n\x80\xff";
  int good = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = kIndex;
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 2:
          text.erase(at, 1 + random() % 9);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
      }
    }
    const std::string error = error_of([&] {
      check_coverage("i", parse_index("i", text));
      ++good;
    });
    ASSERT_TRUE(is_one_line(error)) << error;
  }
  EXPECT_GT(good, 10);
}

}  // namespace kintsugi::checkpoint::index_test
