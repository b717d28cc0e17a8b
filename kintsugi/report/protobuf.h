// Protocol buffer messages, written field by field (protobuf.dev, "Encoding").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kintsugi::report {

class ProtobufMessage {
 public:
  ProtobufMessage& integer(int field, uint64_t value) {
    tag(field, 0);
    varint(value);
    return *this;
  }
  ProtobufMessage& fixed64(int field, uint64_t value) {
    tag(field, 1);
    little_endian(value, 8);
    return *this;
  }
  ProtobufMessage& fixed32(int field, uint32_t value) {
    tag(field, 5);
    little_endian(value, 4);
    return *this;
  }
  ProtobufMessage& text(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufMessage& message(int field, const ProtobufMessage& value) { return text(field, value.bytes_); }

  // Appends encoded fields.
  ProtobufMessage& raw(std::string_view fields) {
    bytes_ += fields;
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, int wire) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire)); }
  void little_endian(uint64_t value, int bytes) {
    for (int byte = 0; byte < bytes; ++byte) bytes_.push_back(static_cast<char>(value >> (8 * byte)));
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace kintsugi::report
