#include "kintsugi/report/event_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::report::event_file_test {
namespace {

namespace fs = std::filesystem;

// A reader that shares no code with the writer: a bitwise checksum, numbers byte by byte.
uint64_t number(std::string_view bytes, size_t at, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value += uint64_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
  return value;
}

uint32_t masked_checksum(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const uint32_t mixed = (crc ^ (static_cast<unsigned char>(c) >> bit)) & 1;
      crc = (crc >> 1) ^ (mixed * 0x82f63b78u);
    }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Fields of a message by number; the value of a number, the bytes of others.
struct Field {
  uint64_t value = 0;
  std::string bytes;
};
using Message = std::multimap<uint64_t, Field>;

Message message(std::string_view bytes) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value += uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  Message fields;
  while (at < bytes.size()) {
    const uint64_t tag = varint();
    Field field;
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = number(bytes, at, 8);
        at += 8;
        break;
      case 2: {
        const size_t size = varint();
        field.bytes = bytes.substr(at, size);
        EXPECT_EQ(field.bytes.size(), size);
        at += size;
        break;
      }
      case 5:
        field.value = number(bytes, at, 4);
        at += 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
        return fields;
    }
    fields.emplace(tag >> 3, field);
  }
  return fields;
}

const Field* only(const Message& fields, uint64_t number) {
  EXPECT_LE(fields.count(number), 1u);
  const auto found = fields.find(number);
  return found == fields.end() ? nullptr : &found->second;
}

struct Read {
  int64_t step = 0;
  double wall_time = 0;
  std::string version;
  bool start = false;
  std::map<std::string, float> scalars;
  std::map<std::string, std::string> texts;
};

// A value of the text plugin: a one-element string tensor with its metadata.
std::string text_of(const Message& value) {
  const Message tensor = message(only(value, 8)->bytes), metadata = message(only(value, 9)->bytes);
  EXPECT_EQ(only(tensor, 1)->value, 7u);    // DT_STRING
  EXPECT_EQ(only(tensor, 2)->bytes, "");    // a shape without dims
  EXPECT_EQ(only(metadata, 4)->value, 2u);  // DATA_CLASS_TENSOR
  EXPECT_EQ(only(message(only(metadata, 1)->bytes), 1)->bytes, "text");
  return only(tensor, 8)->bytes;
}

// The complete records of a file; `torn`: whether an incomplete one follows.
std::vector<Read> events_of(const fs::path& path, bool torn = false) {
  const std::string file = base::read_file(path);
  std::vector<Read> events;
  size_t at = 0;
  while (at + 12 <= file.size()) {
    const uint64_t length = number(file, at, 8);
    EXPECT_EQ(number(file, at + 8, 4), masked_checksum(std::string_view(file).substr(at, 8)));
    if (at + 16 + length > file.size()) break;
    const std::string data = file.substr(at + 12, length);
    EXPECT_EQ(number(file, at + 12 + length, 4), masked_checksum(data));
    at += 16 + length;
    const Message event = message(data);
    Read& read = events.emplace_back();
    read.wall_time = std::bit_cast<double>(only(event, 1)->value);
    if (const Field* step = only(event, 2)) read.step = static_cast<int64_t>(step->value);
    if (const Field* version = only(event, 3)) read.version = version->bytes;
    if (const Field* session = only(event, 7)) read.start = only(message(session->bytes), 1)->value == 1;
    if (const Field* summary = only(event, 5))
      for (const auto& [field, value] : message(summary->bytes)) {
        EXPECT_EQ(field, 1u);
        const Message scalar = message(value.bytes);
        if (scalar.contains(8)) {
          read.texts[only(scalar, 1)->bytes] = text_of(scalar);
          continue;
        }
        read.scalars[only(scalar, 1)->bytes] = std::bit_cast<float>(static_cast<uint32_t>(only(scalar, 2)->value));
      }
  }
  EXPECT_EQ(at < file.size(), torn);
  return events;
}

class EventFiles : public testing::Test {
 protected:
  EventFiles() : folder(fs::temp_directory_path() / ("kintsugi_events_" + std::to_string(::getpid()))) {
    fs::remove_all(folder);
    fs::create_directory(folder);
  }
  ~EventFiles() override { fs::remove_all(folder); }

  fs::path file(const std::string& number) const { return folder / ("events.out.tfevents." + number); }

  fs::path folder;
};

TEST_F(EventFiles, EveryValueIsReadBack) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  {
    EventFile events(folder, 0);
    events.write(1, 1'700'000'000.25, {{{"loss/train", 5.5}, {"train/learning_rate", 1e-3}}});
    events.write(2, 1'700'000'001.5, {{{"loss/train", 0.1}, {"loss/validation", -kInfinity}}});
    events.write(int64_t{1} << 40, 2.0, {{{std::string(300, 'x'), 1e300}, {"", 0.0}}});
    events.write(4, 3.0, {});
  }
  const std::vector<Read> read = events_of(file("000001"));
  ASSERT_EQ(read.size(), 5u);
  EXPECT_EQ(read[0].version, "brain.Event:2");
  EXPECT_GT(read[0].wall_time, 1.6e9);
  EXPECT_FALSE(read[0].start);
  EXPECT_EQ(read[1].step, 1);
  EXPECT_EQ(read[1].wall_time, 1'700'000'000.25);
  EXPECT_EQ(read[1].version, "");
  EXPECT_EQ(read[1].scalars, (std::map<std::string, float>{{"loss/train", 5.5f}, {"train/learning_rate", 1e-3f}}));
  EXPECT_EQ(read[2].step, 2);
  EXPECT_EQ(read[2].scalars, (std::map<std::string, float>{{"loss/train", 0.1f}, {"loss/validation", -kInfinity}}));
  EXPECT_EQ(read[3].step, int64_t{1} << 40);
  EXPECT_EQ(read[3].scalars, (std::map<std::string, float>{{std::string(300, 'x'), kInfinity}, {"", 0.0f}}));
  EXPECT_TRUE(read[4].scalars.empty());
}

// TensorBoard renders Markdown, which keeps lines indented by four.
TEST_F(EventFiles, Texts) {
  {
    EventFile events(folder, 0);
    const std::vector<EventText> texts = {{"samples/1", "Once\nupon *a*\n"}, {"samples/2", ""}};
    events.write(1, 1.0, {{{"loss", 4.0}}}, texts);
  }
  const std::vector<Read> read = events_of(file("000001"));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].scalars, (std::map<std::string, float>{{"loss", 4.0f}}));
  EXPECT_EQ(read[1].texts,
            (std::map<std::string, std::string>{{"samples/1", "    Once\n    upon *a*\n    "}, {"samples/2", "    "}}));
}

TEST_F(EventFiles, AResumedRunBeginsAnother) {
  { EventFile(folder, 0).write(1, 1.0, {{{"loss", 4.0}}}); }
  std::ofstream(folder / "events.out.tfevents.1700000000.host") << "another program's";
  // Torn where the process was killed.
  const std::string whole = base::read_file(file("000001"));
  base::write_file_atomically(file("000001"), whole.substr(0, whole.size() - 3));
  EXPECT_EQ(events_of(file("000001"), true).size(), 1u);
  { EventFile(folder, 0).write(1, 2.0, {{{"loss", 3.0}}}); }
  { EventFile(folder, 7).write(8, 3.0, {{{"loss", 2.0}}}); }
  EXPECT_EQ(event_files(folder), (std::vector{file("000001"), file("000002"), file("000003")}));
  EXPECT_EQ(base::read_file(file("000001")), whole.substr(0, whole.size() - 3));
  const std::vector<Read> second = events_of(file("000002")), third = events_of(file("000003"));
  ASSERT_EQ(second.size(), 3u);
  EXPECT_TRUE(second[1].start);
  EXPECT_EQ(second[1].step, 1);
  ASSERT_EQ(third.size(), 3u);
  EXPECT_TRUE(third[1].start);
  EXPECT_EQ(third[1].step, 8);
  EXPECT_EQ(third[2].scalars, (std::map<std::string, float>{{"loss", 2.0f}}));
}

TEST_F(EventFiles, WhereNothingCanBeWritten) {
  const fs::path nowhere = folder / "nowhere";
  try {
    EventFile(nowhere, 0);
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_EQ(error.what(), "[events] cannot write \"" + (nowhere / "events.out.tfevents.000001").string() +
                                "\": No such file or directory");
  }
}

}  // namespace
}  // namespace kintsugi::report::event_file_test
