// A safetensors file:
//
//   file    := length header data
//   length  := the bytes of `header`, 64 bits, little endian, at most 100,000,000
//   header  := a JSON object, UTF-8, whose first byte is '{'; spaces may follow it
//   object  := { name: tensor, ..., "__metadata__": { text: text, ... } }      no name stands twice
//   tensor  := { "dtype": text, "shape": [size, ...], "data_offsets": [begin, end] }
//   data    := the tensors' elements, row-major, little endian
//
// `data_offsets` count bytes from the start of `data`. Sorted by them, the tensors lie one after another from 0 to the
// end of the file: no overlap, no hole, nothing behind. end - begin is the product of the shape times the size of an
// element. The order of names in the header means nothing.
#include "kintsugi/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/checkpoint/where.h"

namespace kintsugi::checkpoint {
namespace {

using base::Json;
using tensor::DType;

static_assert(std::endian::native == std::endian::little, "the data of a safetensors file are little endian");

constexpr std::string_view kMetadata = "__metadata__";
constexpr uint64_t kLongestHeader = 100'000'000;

struct FormatDType {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> dtype;  // none: unsupported; the tensor cannot be read
};

constexpr std::array<FormatDType, 17> kDTypes = {{{"F64", 8, DType::f64},
                                                  {"F32", 4, DType::f32},
                                                  {"BF16", 2, DType::bf16},
                                                  {"F16", 2, DType::f16},
                                                  {"I64", 8, DType::i64},
                                                  {"I32", 4, DType::i32},
                                                  {"U16", 2, DType::u16},
                                                  {"U8", 1, DType::u8},
                                                  {"BOOL", 1, {}},
                                                  {"I8", 1, DType::i8},
                                                  {"I16", 2, {}},
                                                  {"U32", 4, {}},
                                                  {"U64", 8, {}},
                                                  {"F8_E4M3", 1, {}},
                                                  {"F8_E5M2", 1, {}},
                                                  {"F8_E8M0", 1, {}},
                                                  {"C64", 8, {}}}};

class HeaderParser {
 public:
  HeaderParser(std::string_view file_name, std::span<const std::byte> start, uint64_t file_size)
      : file_(file_name), start_(start), size_(file_size) {}

  // Size of the length field and the text.
  uint64_t head_size() const {
    uint64_t length = 0;
    if (size_ < sizeof length)
      fail("the file has {} bytes; a safetensors file begins with 8 that hold the length of its header", size_);
    std::memcpy(&length, start_.data(), sizeof length);
    if (length > kLongestHeader)
      fail("its first 8 bytes say that the header has {} bytes, at most {} are allowed; is it a safetensors file?",
           length, kLongestHeader);
    if (length > size_ - sizeof length)
      fail("the header should have {} bytes, only {} follow; the file is cut off", length, size_ - sizeof length);
    return sizeof length + length;
  }

  SafetensorsHeader parse() {
    header_.data_begin = head_size();
    const std::string_view text(reinterpret_cast<const char*>(start_.data()) + sizeof(uint64_t),
                                header_.data_begin - sizeof(uint64_t));
    if (text.empty() || text.front() != '{') fail("the header does not begin with \"{{\"; is it a safetensors file?");
    for (const Json& value : Json::parse(kWhereSafetensors, file_, text).members()) {
      if (value.key() == kMetadata)
        metadata(value);
      else
        tensor(value);
    }
    check_layout(size_ - header_.data_begin);
    return std::move(header_);
  }

 private:
  struct Extent {
    uint64_t begin, end;
    std::string name;
  };

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw base::UserError(kWhereSafetensors, "{}: {}", base::in_quotes(file_),
                          fmt::format(format, std::forward<Args>(args)...));
  }

  void metadata(const Json& value) {
    for (const Json& member : value.members()) header_.metadata.emplace(member.key(), member.text());
  }

  void tensor(const Json& value) {
    const std::string name(value.key()), shown = base::in_quotes(name);
    const Json dtype = value.at("dtype");
    const auto known =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& d) { return d.name == dtype.text(); });
    if (known == kDTypes.end()) dtype.refuse("one of F64, F32, BF16, F16, I64, I32, U16, U8");

    SafetensorsEntry entry;
    uint64_t bytes = known->bytes;
    bool empty = false;
    for (const Json& size : value.at("shape").list()) {
      const int64_t n = size.whole();
      entry.shape.push_back(n);
      empty = empty || n == 0;
      if (__builtin_mul_overflow(bytes, std::max<uint64_t>(static_cast<uint64_t>(n), 1), &bytes) ||
          bytes > static_cast<uint64_t>(INT64_MAX))
        fail("tensor {}: its shape has more bytes than 63 bits can count", shown);
    }
    if (empty) bytes = 0;

    const Json offsets = value.at("data_offsets");
    const Json::Items pair = offsets.list();
    if (pair.size() != 2) offsets.refuse("a pair of byte offsets");
    entry.begin = static_cast<uint64_t>(pair[0].whole());
    entry.end = static_cast<uint64_t>(pair[1].whole());
    if (entry.end < entry.begin)
      fail("tensor {}: \"data_offsets\" end at {}, before they begin at {}", shown, entry.end, entry.begin);
    if (entry.end - entry.begin != bytes)
      fail("tensor {} has {} bytes by its offsets, {} by its shape and dtype", shown, entry.end - entry.begin, bytes);
    extents_.push_back({entry.begin, entry.end, name});
    if (known->dtype) {
      entry.dtype = *known->dtype;
      header_.tensors.emplace(name, std::move(entry));
    } else {
      header_.foreign.emplace(name, known->name);
    }
  }

  void check_layout(uint64_t data_bytes) {
    std::sort(extents_.begin(), extents_.end(),
              [](const Extent& a, const Extent& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    uint64_t end = 0;
    for (const Extent& extent : extents_) {
      if (extent.begin != end)
        fail("tensor {} begins at byte {} of the data, {} {}; tensors must lie one after another",
             base::in_quotes(extent.name), extent.begin,
             extent.begin < end ? "within the one before it, which ends at" : "after a hole from", end);
      end = extent.end;
    }
    if (end > data_bytes) fail("the tensors have {} bytes, the file holds {} of them; it is cut off", end, data_bytes);
    if (end < data_bytes) fail("{} bytes follow the last tensor; nothing may", data_bytes - end);
  }

  std::string file_;
  std::span<const std::byte> start_;  // first bytes of the file
  uint64_t size_;                     // of the file
  SafetensorsHeader header_;
  std::vector<Extent> extents_;
};

}  // namespace

uint64_t safetensors_head_size(std::string_view file_name, std::span<const std::byte> start, uint64_t file_size) {
  return HeaderParser(file_name, start, file_size).head_size();
}

SafetensorsHeader parse_safetensors_header(std::string_view file_name, std::span<const std::byte> start,
                                           uint64_t file_size) {
  return HeaderParser(file_name, start, file_size).parse();
}

uint64_t SafetensorsTensor::bytes() const {
  auto bytes = static_cast<uint64_t>(size_of(dtype));
  for (const int64_t n : shape) bytes *= static_cast<uint64_t>(n);
  return bytes;
}

std::string print_safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    std::string pairs;
    for (const auto& [key, value] : metadata)
      pairs += (pairs.empty() ? "" : ",") + base::json_string(key) + ":" + base::json_string(value);
    text += "\"__metadata__\":{" + pairs + "}";
  }
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    base::require(tensor.name != kMetadata, kWhereSafetensors, "a tensor may not be named {}", kMetadata);
    const auto name =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& d) { return d.dtype == tensor.dtype; });
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", text.size() > 1 ? "," : "",
                        base::json_string(tensor.name), name->name, fmt::join(tensor.shape, ","), offset,
                        offset + tensor.bytes());
    offset += tensor.bytes();
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kLongestHeader)
    throw base::UserError(kWhereSafetensors, "{} tensors need a header of {} bytes; at most {} are allowed",
                          tensors.size(), text.size(), kLongestHeader);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace kintsugi::checkpoint
