#include "kintsugi/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kintsugi/checkpoint/scratch_test.h"

namespace kintsugi::checkpoint::safetensors_test {
namespace {

using tensor::DType;

std::string with_length(std::string_view header, std::string_view data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8).append(header).append(data);
}

SafetensorsHeader parse(std::string_view file) {
  return parse_safetensors_header("a.safetensors", std::as_bytes(std::span(file.data(), file.size())), file.size());
}

std::string error_for(std::string_view header, std::string_view data = "") {
  return error_of([&] { parse(with_length(header, data)); });
}

const std::string kGood = R"({"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                          R"("y":{"dtype":"U8","shape":[],"data_offsets":[8,9]},)"
                          R"("z":{"dtype":"BF16","shape":[0,3],"data_offsets":[9,9]}})";

}  // namespace

TEST(Safetensors, RoundTrip) {
  ScratchFolder scratch;
  const std::vector<SafetensorsTensor> tensors = {{"a \"quoted\"\n name", DType::f64, {2, 3}},
                                                  {"empty", DType::i32, {0, 5}},
                                                  {"scalar", DType::f16, {}},
                                                  {"bytes", DType::u8, {3'000'001}},
                                                  {"ids", DType::u16, {4}},
                                                  {"long", DType::i64, {1}},
                                                  {"bf", DType::bf16, {2, 1, 2}}};
  std::string data;
  std::mt19937 random(1);
  for (const auto& t : tensors)
    for (uint64_t i = 0; i < t.bytes(); ++i) data += static_cast<char>(random());
  SafetensorsWriter writer(scratch / "a.safetensors", tensors, {{"key", "värde"}});
  const auto bytes = std::as_bytes(std::span(data));
  for (size_t at = 0, n = 1; at < bytes.size(); at += n, n = std::min(n * 7, bytes.size() - at))
    writer.write(bytes.subspan(at, n));
  writer.close();
  EXPECT_EQ(writer.size(), std::filesystem::file_size(scratch / "a.safetensors"));

  const SafetensorsFile file(scratch / "a.safetensors");
  EXPECT_EQ(file.header().tensors.size(), tensors.size());
  EXPECT_EQ(file.header().metadata.at("key"), "värde");
  EXPECT_EQ(file.header().data_begin % 8, 0u);
  size_t at = 0;
  for (const auto& t : tensors) {
    const TensorInFile tensor = file.at(t.name);
    EXPECT_EQ(tensor.dtype, t.dtype);
    EXPECT_EQ(std::vector(tensor.shape.begin(), tensor.shape.end()), t.shape);
    ASSERT_EQ(tensor.bytes, t.bytes());
    std::vector<std::byte> read(tensor.bytes);
    tensor.read_at(0, read);
    EXPECT_EQ(std::memcmp(read.data(), data.data() + at, t.bytes()), 0);
    at += t.bytes();
  }
  EXPECT_FALSE(file.has("lnog"));
  EXPECT_EQ(error_of([&] { file.at("lnog"); }, scratch.path()),
            R"([safetensors] "a.safetensors" has no tensor "lnog"; the nearest is "long")");
}

TEST(Safetensors, AWriterKnowsHowManyBytesItGets) {
  ScratchFolder scratch;
  SafetensorsWriter writer(scratch / "a", {{"x", DType::u8, {2}}});
  EXPECT_THROW(writer.write(std::vector<std::byte>(3)), base::InternalError);
  writer.write(std::vector<std::byte>(1));
  EXPECT_THROW(writer.close(), base::InternalError);
}

TEST(Safetensors, ReadsTheHeader) {
  const SafetensorsHeader header = parse(with_length(kGood + "   ", "012345678"));
  EXPECT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.metadata.at("a"), "b");
  EXPECT_EQ(header.tensors.at("y").begin, 8u);
  EXPECT_TRUE(parse(with_length("{}")).tensors.empty());
}

TEST(Safetensors, ForeignTypesAreKeptApart) {
  const SafetensorsHeader header = parse(with_length(
      R"({"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},"x":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
      "0123"));
  EXPECT_EQ(header.foreign.at("m"), "BOOL");
  EXPECT_EQ(header.tensors.size(), 1u);
}

const std::string at = "[safetensors] \"a.safetensors\":1: ";

TEST(Safetensors, ErrorsOfTheFrame) {
  EXPECT_EQ(error_of([] { parse("1234567"); }),
            "[safetensors] \"a.safetensors\": the file has 7 bytes; a safetensors file begins with 8 that hold the "
            "length of its header");
  EXPECT_EQ(
      error_of([] { parse("#include <fmt/format.h>"); }),
      "[safetensors] \"a.safetensors\": its first 8 bytes say that the header has 7306093603886885155 bytes, at most "
      "100000000 are allowed; is it a safetensors file?");
  EXPECT_EQ(error_of([] { parse(with_length("{}").substr(0, 9)); }),
            "[safetensors] \"a.safetensors\": the header should have 2 bytes, only 1 follow; the file is cut off");
  EXPECT_EQ(error_for("[]"),
            "[safetensors] \"a.safetensors\": the header does not begin with \"{\"; is it a safetensors file?");
  EXPECT_EQ(error_for(""), error_for("[]"));
  EXPECT_EQ(error_for("{\"x\":}"), at + "this is not JSON at byte 6 of the line");
  EXPECT_EQ(error_for(std::string("{}\0{", 4)), at + "this is not JSON: it holds a NUL at byte 2");
  EXPECT_EQ(error_for("{\"x\":" + std::string(1000, '[')), at + "the values nest deeper than 64 levels");
  EXPECT_EQ(error_for(R"({"x":1e999})"), at + "\"x\" is 1e999, which is out of the range of numbers");
  EXPECT_EQ(error_for(R"({"x":{},"x":{}})"), at + "\"x\" is there twice");
}

TEST(Safetensors, ErrorsOfATensor) {
  const auto tensor = [](std::string_view text, std::string_view data = "") {
    return error_for(fmt::format("{{\"x\\n\":{}}}", text), data);
  };
  const std::string a = "[safetensors] \"a.safetensors\": tensor \"x\\n\"";
  EXPECT_EQ(tensor("3"), at + "\"x\\n\" is 3; it should be an object");
  EXPECT_EQ(tensor("{}"), at + "\"x\\n.dtype\" is missing");
  EXPECT_EQ(tensor(R"({"dtype":4})"), at + "\"x\\n.dtype\" is 4; it should be a text");
  EXPECT_EQ(tensor(R"({"dtype":"F31"})"),
            at + "\"x\\n.dtype\" is \"F31\"; it should be one of F64, F32, BF16, F16, I64, I32, U16, U8");
  EXPECT_EQ(tensor(R"({"dtype":"F32"})"), at + "\"x\\n.shape\" is missing");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":4})"), at + "\"x\\n.shape\" is 4; it should be a list");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[-4]})"),
            at + "\"x\\n.shape[0]\" is -4; it should be a whole number from 0 on");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":["4"]})"),
            at + "\"x\\n.shape[0]\" is \"4\"; it should be a whole number from 0 on");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[18446744073709551615]})"),
            at + "\"x\\n.shape[0]\" is 18446744073709551615; it should be a whole number from 0 on");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[4294967296,4294967296]})"),
            a + ": its shape has more bytes than 63 bits can count");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[0]})"), at + "\"x\\n.data_offsets\" is missing");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[0],"data_offsets":[0]})"),
            at + "\"x\\n.data_offsets\" is a list; it should be a pair of byte offsets");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[0],"data_offsets":[4,0]})"),
            a + ": \"data_offsets\" end at 0, before they begin at 4");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"),
            a + " has 4 bytes by its offsets, 8 by its shape and dtype");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", "12345678"),
            a + " begins at byte 4 of the data, after a hole from 0; tensors must lie one after another");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "123"),
            "[safetensors] \"a.safetensors\": the tensors have 4 bytes, the file holds 3 of them; it is cut off");
  EXPECT_EQ(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "12345"),
            "[safetensors] \"a.safetensors\": 1 bytes follow the last tensor; nothing may");
  EXPECT_EQ(error_for(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                      R"("y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                      "123"),
            "[safetensors] \"a.safetensors\": tensor \"y\" begins at byte 1 of the data, within the one before it, "
            "which ends at 2; tensors must lie one after another");
  EXPECT_EQ(error_for(R"({"__metadata__":[]})"), at + "\"__metadata__\" is a list; it should be an object");
  EXPECT_EQ(error_for(R"({"__metadata__":{"a":1}})"), at + "\"__metadata__.a\" is 1; it should be a text");
}

// A file that passes can be read to its last byte; any other gives a one-line UserError.
void good_or_refused(std::string_view file, int& good) {
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  try {
    const SafetensorsHeader header = parse_safetensors_header("fuzz", bytes, bytes.size());
    ++good;
    unsigned ones = 0;
    for (const auto& [name, entry] : header.tensors)
      for (const std::byte b : bytes.subspan(header.data_begin).subspan(entry.begin, entry.end - entry.begin))
        ones |= std::to_integer<unsigned>(b);
    EXPECT_LE(ones, 255u);
    EXPECT_LE(header.data_begin, file.size());
  } catch (const base::UserError& error) {
    EXPECT_TRUE(is_one_line(error.what())) << error.what();
  }
}

TEST(Safetensors, DamagedFilesAreRefused) {
  std::mt19937 random(7);
  const std::string whole = with_length(kGood, "012345678");
  const std::string_view alphabet = "{}[]\":,0123456789-eFUI\\ \n\x80\xff";
  int good = 0;
  for (size_t n = 0; n < whole.size(); ++n) good_or_refused(whole.substr(0, n), good);
  EXPECT_EQ(good, 0);
  for (int i = 0; i < 20'000; ++i) {
    std::string file = whole;
    for (auto edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % file.size();
      switch (random() % 4) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 1:
          file[at] = alphabet[random() % alphabet.size()];
          break;
        case 2:
          file.erase(at, 1 + random() % 5);
          break;
        default:
          file.insert(at, file.substr(random() % file.size(), random() % 12));
          break;
      }
      if (file.empty()) break;
    }
    if (file.size() >= 8 && random() % 2) {  // a length that fits, so that what follows is looked at
      const uint64_t length = std::min<uint64_t>(file.size() - 8, kGood.size());
      std::memcpy(file.data(), &length, 8);
    }
    good_or_refused(file, good);
  }
  EXPECT_GT(good, 100);
  for (int i = 0; i < 5'000; ++i) {
    std::string header(random() % 64, '{');
    for (char& c : header) c = random() % 2 ? static_cast<char>(random()) : alphabet[random() % alphabet.size()];
    good_or_refused(random() % 2 ? header : with_length("{" + header), good);
  }
}

}  // namespace kintsugi::checkpoint::safetensors_test
