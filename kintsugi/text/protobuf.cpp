#include "kintsugi/text/protobuf.h"

#include <bit>

#include "kintsugi/base/error.h"

namespace kintsugi::text {

float ProtobufField::as_float() const {
  return std::bit_cast<float>(static_cast<uint32_t>(value));
}

void ProtobufReader::fail() const {
  throw base::UserError("tokenizer", "{}: not a SentencePiece model, or damaged {} bytes into a message of {}", where_,
                        all_.size() - rest_.size(), all_.size());
}

std::string_view ProtobufReader::take(uint64_t size) {
  if (size > rest_.size()) fail();
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

uint64_t ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail();
}

uint64_t ProtobufReader::fixed(size_t size) {
  const std::string_view bytes = take(size);
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

bool ProtobufReader::next(ProtobufField& field) {
  if (rest_.empty()) return false;
  const uint64_t tag = varint();
  if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX) fail();
  field = {};
  field.number = static_cast<uint32_t>(tag >> 3);
  field.wire_type = static_cast<int>(tag & 7);
  switch (field.wire_type) {
    case 0:
      field.value = varint();
      break;
    case 1:
      field.value = fixed(8);
      break;
    case 2:
      field.bytes = take(varint());
      break;
    case 5:
      field.value = fixed(4);
      break;
    default:
      fail();
  }
  return true;
}

}  // namespace kintsugi::text
