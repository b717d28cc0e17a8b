// Parses the wire format of Protocol Buffers, as far as SentencePiece's files require.
#pragma once

#include <cstdint>
#include <string_view>

namespace kintsugi::text {

struct ProtobufField {
  uint32_t number = 0;
  uint64_t value = 0;      // of a varint, or the bits of a fixed-size number
  std::string_view bytes;  // of a text, bytes or a message
  int wire_type = 0;       // 0 varint, 1 fixed 64, 2 bytes, 5 fixed 32

  float as_float() const;
};

// The fields of one message, in file order.
class ProtobufReader {
 public:
  // `where` begins the messages of UserErrors. Both must outlive the reader.
  ProtobufReader(std::string_view message, std::string_view where) : rest_(message), all_(message), where_(where) {}

  // Returns false at the end of the message. Throws UserError if it is malformed.
  bool next(ProtobufField& field);

 private:
  uint64_t varint();
  uint64_t fixed(size_t size);
  std::string_view take(uint64_t size);
  [[noreturn]] void fail() const;

  std::string_view rest_, all_, where_;
};

}  // namespace kintsugi::text
