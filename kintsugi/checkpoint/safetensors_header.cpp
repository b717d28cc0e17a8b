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
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/json_text.h"

namespace kintsugi::checkpoint {
namespace {

using nlohmann::json;
using tensor::DType;

static_assert(std::endian::native == std::endian::little, "the data of a safetensors file are little endian");

constexpr std::string_view kWhere = "safetensors";
constexpr std::string_view kMetadata = "__metadata__";
constexpr uint64_t kLongestHeader = 100'000'000;

struct FormatDType {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> dtype;  // none: we know where such a tensor is, but cannot read it
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
                                                  {"I8", 1, {}},
                                                  {"I16", 2, {}},
                                                  {"U32", 4, {}},
                                                  {"U64", 8, {}},
                                                  {"F8_E4M3", 1, {}},
                                                  {"F8_E5M2", 1, {}},
                                                  {"F8_E8M0", 1, {}},
                                                  {"C64", 8, {}}}};

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view file_name) : file_(in_quotes(file_name)) {}

  SafetensorsHeader parse(std::span<const std::byte> file) {
    const std::string_view text = header_text(file);
    header_.data_begin = sizeof(uint64_t) + text.size();
    const json object = parse_json(kWhere, fmt::format("the header of {}", file_), text);
    for (const auto& [name, value] : object.items()) {
      if (name == kMetadata)
        metadata(value);
      else
        tensor(name, value);
    }
    check_layout(file.size() - header_.data_begin);
    return std::move(header_);
  }

 private:
  struct Extent {
    uint64_t begin, end;
    std::string name;
  };

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw base::UserError(kWhere, "{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view header_text(std::span<const std::byte> file) const {
    uint64_t length = 0;
    if (file.size() < sizeof length)
      fail("the file has {} bytes; a safetensors file begins with 8 that hold the length of its header", file.size());
    std::memcpy(&length, file.data(), sizeof length);
    if (length > kLongestHeader)
      fail("its first 8 bytes say that the header has {} bytes, at most {} are allowed; is it a safetensors file?",
           length, kLongestHeader);
    if (length > file.size() - sizeof length)
      fail("the header should have {} bytes, only {} follow; the file is cut off", length, file.size() - sizeof length);
    const std::string_view text(reinterpret_cast<const char*>(file.data()) + sizeof length, length);
    if (text.empty() || text.front() != '{') fail("the header does not begin with \"{{\"; is it a safetensors file?");
    return text;
  }

  void metadata(const json& value) {
    if (!value.is_object()) fail("{} is not an object of texts", kMetadata);
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("{} of {} is not a text", in_quotes(key), kMetadata);
      header_.metadata[key] = text.get<std::string>();
    }
  }

  void tensor(const std::string& name, const json& value) {
    const std::string shown = in_quotes(name);
    if (!value.is_object()) fail("tensor {} is not described by an object", shown);
    const json& dtype = member(shown, value, "dtype");
    if (!dtype.is_string()) fail("tensor {}: \"dtype\" is not a text", shown);
    const auto& dtype_name = dtype.get_ref<const std::string&>();
    const auto known =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& d) { return d.name == dtype_name; });
    if (known == kDTypes.end())
      fail("tensor {} has dtype {}; known are F64, F32, BF16, F16, I64, I32, U16, U8", shown, in_quotes(dtype_name));

    SafetensorsEntry entry;
    uint64_t bytes = known->bytes;
    bool empty = false;
    for (const json& size : list(shown, value, "shape")) {
      if (!size.is_number_unsigned()) fail("tensor {}: \"shape\" holds {}, not a size", shown, shortened(size));
      const uint64_t n = size.get<uint64_t>();
      if (n > static_cast<uint64_t>(INT64_MAX)) fail("tensor {}: \"shape\" holds {}, not a size", shown, n);
      entry.shape.push_back(static_cast<int64_t>(n));
      empty = empty || n == 0;
      if (__builtin_mul_overflow(bytes, std::max<uint64_t>(n, 1), &bytes) || bytes > static_cast<uint64_t>(INT64_MAX))
        fail("tensor {}: its shape has more bytes than 63 bits can count", shown);
    }
    if (empty) bytes = 0;

    const json& offsets = list(shown, value, "data_offsets");
    if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
      fail("tensor {}: \"data_offsets\" is not a pair of byte offsets", shown);
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
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

  const json& member(const std::string& shown, const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail("tensor {} has no \"{}\"", shown, key);
    return *found;
  }

  const json& list(const std::string& shown, const json& object, const char* key) const {
    const json& value = member(shown, object, key);
    if (!value.is_array()) fail("tensor {}: \"{}\" is not a list", shown, key);
    return value;
  }

  static std::string shortened(const json& value) {
    return value.is_primitive() && !value.is_string() ? value.dump() : std::string("a ") + value.type_name();
  }

  void check_layout(uint64_t data_bytes) {
    std::sort(extents_.begin(), extents_.end(),
              [](const Extent& a, const Extent& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    uint64_t end = 0;
    for (const Extent& extent : extents_) {
      if (extent.begin != end)
        fail("tensor {} begins at byte {} of the data, {} {}; tensors must lie one after another",
             in_quotes(extent.name), extent.begin,
             extent.begin < end ? "within the one before it, which ends at" : "after a hole from", end);
      end = extent.end;
    }
    if (end > data_bytes) fail("the tensors have {} bytes, the file holds {} of them; it is cut off", end, data_bytes);
    if (end < data_bytes) fail("{} bytes follow the last tensor; nothing may", data_bytes - end);
  }

  std::string file_;
  SafetensorsHeader header_;
  std::vector<Extent> extents_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view file_name, std::span<const std::byte> file) {
  return HeaderParser(file_name).parse(file);
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
      pairs += (pairs.empty() ? "" : ",") + json_string(key) + ":" + json_string(value);
    text += "\"__metadata__\":{" + pairs + "}";
  }
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    base::require(tensor.name != kMetadata, kWhere, "a tensor may not be named {}", kMetadata);
    const auto name =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& d) { return d.dtype == tensor.dtype; });
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", text.size() > 1 ? "," : "",
                        json_string(tensor.name), name->name, fmt::join(tensor.shape, ","), offset,
                        offset + tensor.bytes());
    offset += tensor.bytes();
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kLongestHeader)
    throw base::UserError(kWhere, "{} tensors need a header of {} bytes; at most {} are allowed", tensors.size(),
                          text.size(), kLongestHeader);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace kintsugi::checkpoint
