#include "kintsugi/images/array_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::images {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kNpy = "\x93NUMPY"sv;
constexpr int64_t kMostHeader = 1 << 16;
constexpr int64_t kMostElements = int64_t{1} << 48;
constexpr uint64_t kMostClasses = 1'000'000'000;  // as model.outputs

[[noreturn]] void fail(const ByteFile& file, const std::string& what) {
  throw base::UserError("images", "\"{}\" {}", file.path().string(), what);
}

// A format that is often given instead of an array.
struct Foreign {
  std::string_view begin, what;
};
constexpr std::array kForeign = {
    Foreign{"PK\x03\x04"sv, "a zip archive, as .npz files are; save each array with numpy.save"},
    Foreign{"\xff\xd8\xff"sv, "a JPEG file; convert the images to one npy array"},
    Foreign{"\x89PNG"sv, "a PNG file; convert the images to one npy array"},
    Foreign{"GIF8"sv, "a GIF file; convert the images to one npy array"},
    Foreign{"\x89HDF"sv, "an HDF5 file; save its arrays with numpy.save"},
    Foreign{"\x80\x02"sv, "a Python pickle; the binary version of CIFAR has .bin files"},
    Foreign{"\x80\x03"sv, "a Python pickle; the binary version of CIFAR has .bin files"},
    Foreign{"\x80\x04"sv, "a Python pickle; the binary version of CIFAR has .bin files"}};

uint32_t big_endian(std::string_view bytes) {
  uint32_t x = 0;
  for (const char c : bytes.substr(0, 4)) x = x << 8 | static_cast<uint8_t>(c);
  return x;
}

// The text after 'KEY': in the header's dictionary.
std::string_view value_of(const ByteFile& file, std::string_view header, std::string_view key) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t at = header.find(quoted);
  if (at == header.npos) fail(file, fmt::format("is a damaged npy file: its header has no '{}'", key));
  std::string_view rest = header.substr(at + quoted.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest;
}

std::vector<int64_t> parse_shape(const ByteFile& file, std::string_view text) {
  std::vector<int64_t> shape;
  const auto damaged = [&] { fail(file, "is a damaged npy file: its shape cannot be read"); };
  if (!text.starts_with('(')) damaged();
  text.remove_prefix(1);
  while (true) {
    while (text.starts_with(' ') || text.starts_with(',')) text.remove_prefix(1);
    if (text.starts_with(')')) return shape;
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) damaged();
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    shape.push_back(size);
  }
}

void parse_npy(ArrayFile& array) {
  const ByteFile& file = *array.bytes;
  const std::string begin = file.head(12);
  if (begin.size() < 12) fail(file, "is a damaged npy file: it ends within its header");
  const auto byte = [&](size_t i) { return static_cast<int64_t>(static_cast<uint8_t>(begin[i])); };
  const int64_t version = byte(6);
  if (version < 1 || version > 3) fail(file, fmt::format("is an npy file of version {}; 1 to 3 can be read", version));
  const int64_t prefix = version == 1 ? 10 : 12;
  const int64_t size = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (size > kMostHeader || prefix + size > file.size()) fail(file, "is a damaged npy file: it ends within its header");
  array.begin = prefix + size;
  const std::string whole = file.head(array.begin);
  const std::string_view header = std::string_view(whole).substr(static_cast<size_t>(prefix));
  std::string_view type = value_of(file, header, "descr");
  const size_t end = type.size() > 1 ? type.find('\'', 1) : type.npos;
  if (!type.starts_with('\'') || end == type.npos || end < 4)
    fail(file, "has elements that are objects or records; an array of plain numbers is needed");
  type = type.substr(1, end - 1);
  array.type = base::one_line(type, 20);
  const auto [last, error] = std::from_chars(type.data() + 2, type.data() + type.size(), array.element_bytes);
  const bool plain = "biuf"sv.find(type[1]) != std::string_view::npos;
  if (error != std::errc() || last != type.data() + type.size() || !plain || array.element_bytes < 1 ||
      array.element_bytes > 16)
    fail(file, fmt::format("has elements of type {}; numbers are needed", array.type));
  if (type[0] == '>') fail(file, fmt::format("has big-endian elements, {}; save it as little-endian", array.type));
  if (value_of(file, header, "fortran_order").starts_with("True"))
    fail(file, "is in Fortran order; save it with numpy.ascontiguousarray");
  array.shape = parse_shape(file, value_of(file, header, "shape"));
}

void parse_idx(ArrayFile& array) {
  const ByteFile& file = *array.bytes;
  const std::string begin = file.head(4 + 4 * 255);
  const auto rank = static_cast<size_t>(static_cast<uint8_t>(begin[3]));
  if (begin[2] != 8)
    fail(file, fmt::format("is an idx file of element type {}; 8, uint8, is needed", static_cast<int>(begin[2])));
  array.begin = static_cast<int64_t>(4 + 4 * rank);
  if (static_cast<int64_t>(begin.size()) < array.begin) fail(file, "is a damaged idx file: it ends within its header");
  array.type = "|u1";
  for (size_t i = 0; i < rank; ++i) array.shape.push_back(big_endian(std::string_view(begin).substr(4 + 4 * i)));
}

}  // namespace

int64_t ArrayFile::elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

std::string foreign_text(const ByteFile& file) {
  const std::string head = file.head(4);
  for (const Foreign& foreign : kForeign)
    if (head.starts_with(foreign.begin)) return fmt::format("is {}", foreign.what);
  return "";
}

bool is_npy(const ByteFile& file) {
  return file.head(6) == kNpy;
}

bool is_idx(const ByteFile& file) {
  const std::string head = file.head(4);
  return head.size() == 4 && head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14 && head[3] >= 1 &&
         head[3] <= 8;
}

bool is_whole_idx(const ByteFile& file) {
  if (!is_idx(file)) return false;
  const std::string begin = file.head(4 + 4 * 8);
  const auto rank = static_cast<size_t>(begin[3]);
  if (begin.size() < 4 + 4 * rank) return false;
  double bytes = static_cast<double>(4 + 4 * rank), elements = 1;
  for (size_t i = 0; i < rank; ++i) elements *= big_endian(std::string_view(begin).substr(4 + 4 * i));
  bytes += elements;
  return bytes == static_cast<double>(file.size());
}

ArrayFile open_array(std::shared_ptr<const ByteFile> file) {
  ArrayFile array = {.bytes = std::move(file), .format = "", .type = "", .shape = {}};
  array.format = is_npy(*array.bytes) ? "npy" : "idx";
  if (array.format == "npy")
    parse_npy(array);
  else if (is_idx(*array.bytes))
    parse_idx(array);
  else
    fail(*array.bytes, "is neither an npy nor an idx file");
  int64_t elements = 1;
  for (const int64_t size : array.shape) {
    if (size > 0 && elements > kMostElements / size)
      fail(*array.bytes,
           fmt::format("is a damaged {} file: a shape of [{}]", array.format, fmt::join(array.shape, " ")));
    elements *= size;
  }
  const int64_t bytes = array.begin + elements * array.element_bytes;
  if (bytes != array.bytes->size())
    fail(*array.bytes,
         fmt::format("is {}: it has {} bytes, its header of [{}] {} implies {}",
                     bytes > array.bytes->size() ? "truncated" : "damaged", base::group_digits(array.bytes->size()),
                     fmt::join(array.shape, " "), array.type, base::group_digits(bytes)));
  return array;
}

std::vector<int32_t> read_labels(const ArrayFile& array) {
  if (array.shape.size() != 1 || array.type[1] == 'f' || array.type[1] == 'b' || array.element_bytes > 8)
    fail(*array.bytes, fmt::format("holds [{}] of {}; labels are one integer per image, [image] of an integer type",
                                   fmt::join(array.shape, " "), array.type));
  std::vector<int32_t> labels(static_cast<size_t>(array.shape[0]));
  std::array<std::byte, 8> element = {};
  const auto size = static_cast<size_t>(array.element_bytes);
  for (size_t i = 0; i < labels.size(); ++i) {
    array.bytes->read_at(array.begin + static_cast<int64_t>(i * size), std::span(element).first(size));
    uint64_t word = 0;
    for (size_t b = size; b-- > 0;) word = word << 8 | std::to_integer<uint64_t>(element[b]);
    const bool negative = array.type[1] == 'i' && size > 0 && (std::to_integer<int>(element[size - 1]) & 0x80) != 0;
    if (negative) {  // sign extended
      const uint64_t sign = size < 8 ? ~uint64_t{0} << 8 * size : 0;
      fail(*array.bytes, fmt::format("label {} is {}; labels are 0 to the number of classes minus 1", i,
                                     static_cast<int64_t>(word | sign)));
    }
    if (word >= kMostClasses)
      fail(*array.bytes,
           fmt::format("label {} is {}; there are at most {} classes", i, word, base::group_digits(kMostClasses)));
    labels[i] = static_cast<int32_t>(word);
  }
  return labels;
}

}  // namespace kintsugi::images
