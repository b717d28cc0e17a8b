// index.json, version 1:
//
//   index   := { "format": "kintsugi checkpoint", "version": 1, "step": number, "state": object,
//                "files": { file: size, ... }, "tensors": { name: tensor, ... } }
//   size    := { "bytes": number, "checksum": hex }        of *.safetensors, the checksum of what precedes the data
//   tensor  := { "dims": [[dim, size], ...], "dtype": dtype, "kind": kind, "pieces": [piece, ...] }
//   dtype   := "fp64" | "fp32" | "bf16" | "fp16" | "int64" | "int32" | "uint16" | "uint8"
//   kind    := "weight" | "optimizer" | "statistic"
//   piece   := { "start": [number per dim], "size": [number per dim], "flat": [begin, end],
//                "file": file, "key": name, "checksum": hex }
//   hex     := 16 lower-case hexadecimal digits: XXH3, 64 bits, seed 0
//
// A piece holds, of the box from `start` with `size` in the whole tensor, the elements [begin, end) counted row-major
// in the box; without "flat", all of them. Under `key`, the file has these elements in the tensor's dtype; the
// checksum is of their bytes. The pieces of a tensor hold each of its elements exactly once, their boxes are equal or
// disjoint, and no piece is empty. index.xxh3 holds the checksum of the bytes of index.json, as hex and a line feed.
#include "kintsugi/checkpoint/index.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/json_text.h"

namespace kintsugi::checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view kWhere = "checkpoint";
constexpr std::string_view kFormat = "kintsugi checkpoint";
constexpr std::array<std::string_view, 3> kKinds = {"weight", "optimizer", "statistic"};
constexpr std::array<tensor::DType, 8> kDTypes = {tensor::DType::f64, tensor::DType::f32, tensor::DType::bf16,
                                                  tensor::DType::f16, tensor::DType::i64, tensor::DType::i32,
                                                  tensor::DType::u16, tensor::DType::u8};

bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

class IndexParser {
 public:
  explicit IndexParser(std::string_view file_name) : file_(in_quotes(file_name)) {}

  Index parse(std::string_view text) const {
    const json root = parse_json(kWhere, file_, text);
    if (!root.is_object()) fail("it is not a JSON object");
    if (const auto format = root.find("format"); format == root.end() || *format != kFormat)
      fail("it has no \"format\": \"{}\"; is it the index of a checkpoint?", kFormat);
    if (const int64_t version = number(root, "the index", "version"); version != kFormatVersion)
      fail("its format has version {}; this program reads version {}", version, kFormatVersion);
    Index index;
    index.step = number(root, "the index", "step");
    index.state = get(root, "the index", "state", json::value_t::object).dump();
    for (const auto& [name, value] : get(root, "the index", "files", json::value_t::object).items())
      index.files.emplace(file_name(name), file(name, value));
    for (const auto& [name, value] : get(root, "the index", "tensors", json::value_t::object).items())
      index.tensors.emplace(name, tensor(name, value, index));
    return index;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw base::UserError(kWhere, "{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }

  const json& get(const json& object, std::string_view holder, const char* key, json::value_t type) const {
    if (!object.is_object()) fail("{} is not an object", holder);
    const auto found = object.find(key);
    if (found == object.end()) fail("{} has no \"{}\"", holder, key);
    if (found->type() != type) fail("\"{}\" of {} is not of type {}", key, holder, json(type).type_name());
    return *found;
  }

  std::string text(const json& object, std::string_view holder, const char* key) const {
    return get(object, holder, key, json::value_t::string).get<std::string>();
  }

  int64_t number(const json& object, std::string_view holder, const char* key) const {
    if (!object.is_object()) fail("{} is not an object", holder);
    const auto found = object.find(key);
    if (found == object.end()) fail("{} has no \"{}\"", holder, key);
    return number(*found, fmt::format("\"{}\" of {}", key, holder));
  }

  int64_t number(const json& value, const std::string& what) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      fail("{} is not a whole number from 0 on", what);
    return value.get<int64_t>();
  }

  uint64_t checksum(const json& object, std::string_view holder) const {
    const auto value = checksum_from(text(object, holder, "checksum"));
    if (!value) fail("\"checksum\" of {} is not 16 hexadecimal digits", holder);
    return *value;
  }

  const std::string& file_name(const std::string& name) const {
    if (!is_file_name(name)) fail("{} is not the name of a file in the checkpoint's folder", in_quotes(name));
    return name;
  }

  StoredFile file(const std::string& name, const json& value) const {
    const std::string holder = "file " + in_quotes(name);
    return {static_cast<uint64_t>(number(value, holder, "bytes")), checksum(value, holder)};
  }

  StoredTensor tensor(const std::string& name, const json& value, const Index& index) const {
    const std::string holder = "tensor " + in_quotes(name);
    StoredTensor stored;
    stored.type.shape = shape(value, holder);
    const std::string dtype = text(value, holder, "dtype");
    const auto known =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](tensor::DType d) { return tensor::name_of(d) == dtype; });
    if (known == kDTypes.end()) fail("{} has dtype {}, which is not known", holder, in_quotes(dtype));
    stored.type.dtype = *known;
    const std::string kind = text(value, holder, "kind");
    const auto kind_at = std::find(kKinds.begin(), kKinds.end(), kind);
    if (kind_at == kKinds.end())
      fail("{} has kind {}; there are weight, optimizer, statistic", holder, in_quotes(kind));
    stored.kind = static_cast<Kind>(kind_at - kKinds.begin());
    for (const json& piece : get(value, holder, "pieces", json::value_t::array))
      stored.pieces.push_back(this->piece(piece, holder, stored.type.shape, index));
    return stored;
  }

  tensor::Shape shape(const json& value, const std::string& holder) const {
    std::vector<tensor::Dim> dims;
    std::set<std::string> names;
    int64_t bytes = sizeof(double);
    for (const json& dim : get(value, holder, "dims", json::value_t::array)) {
      if (!dim.is_array() || dim.size() != 2 || !dim[0].is_string())
        fail("\"dims\" of {} is not a list of pairs of a name and a size", holder);
      dims.push_back({dim[0].get<std::string>(), number(dim[1], "a size in \"dims\" of " + holder)});
      if (!names.insert(dims.back().name).second) fail("{} names dim {} twice", holder, in_quotes(dims.back().name));
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(dims.back().size, 1), &bytes))
        fail("{} has more bytes than 63 bits can count", holder);
    }
    return tensor::Shape(std::move(dims));
  }

  std::vector<int64_t> numbers(const json& value, const std::string& holder, const char* key) const {
    std::vector<int64_t> list;
    for (const json& item : get(value, holder, key, json::value_t::array))
      list.push_back(number(item, fmt::format("a number in \"{}\" of {}", key, holder)));
    return list;
  }

  StoredPiece piece(const json& value, const std::string& tensor, const tensor::Shape& shape,
                    const Index& index) const {
    const std::string holder = "a piece of " + tensor;
    StoredPiece piece;
    piece.part.box = {numbers(value, holder, "start"), numbers(value, holder, "size")};
    if (!fits(piece.part.box, shape)) fail("{} does not fit into {}", holder, to_string(shape));
    piece.part.flat = whole_range(piece.part.box);
    if (value.contains("flat")) {
      const std::vector<int64_t> flat = numbers(value, holder, "flat");
      if (flat.size() != 2) fail("\"flat\" of {} is not a pair", holder);
      piece.part.flat = {flat[0], flat[1]};
    }
    if (!fits(piece.part.flat, piece.part.box) || piece.part.flat.size() == 0)
      fail("{} holds elements {} to {} of a box of {}", holder, piece.part.flat.begin, piece.part.flat.end,
           piece.part.box.elements());
    piece.file = text(value, holder, "file");
    if (!index.files.contains(piece.file))
      fail("{} is in file {}, which \"files\" lacks", holder, in_quotes(piece.file));
    piece.key = text(value, holder, "key");
    piece.checksum = checksum(value, holder);
    return piece;
  }

  std::string file_;
};

std::string print_piece(const StoredPiece& piece) {
  const Part& part = piece.part;
  const std::string flat =
      part.flat == whole_range(part.box) ? "" : fmt::format(R"("flat":[{},{}],)", part.flat.begin, part.flat.end);
  return fmt::format(R"({{"start":[{}],"size":[{}],{}"file":{},"key":{},"checksum":"{}"}})",
                     fmt::join(part.box.start, ","), fmt::join(part.box.size, ","), flat, json_string(piece.file),
                     json_string(piece.key), checksum_text(piece.checksum));
}

std::string print_tensor(const StoredTensor& tensor) {
  std::string dims, pieces;
  for (const tensor::Dim& dim : tensor.type.shape)
    dims += fmt::format("{}[{},{}]", dims.empty() ? "" : ",", json_string(dim.name), dim.size);
  for (const StoredPiece& piece : tensor.pieces) pieces += (pieces.empty() ? "" : ",") + print_piece(piece);
  return fmt::format(R"({{"dims":[{}],"dtype":"{}","kind":"{}","pieces":[{}]}})", dims,
                     tensor::name_of(tensor.type.dtype), name_of(tensor.kind), pieces);
}

}  // namespace

std::string_view name_of(Kind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

std::string rank_file(int rank) {
  return fmt::format("rank_{:05}.safetensors", rank);
}

std::string print_index(const Index& index) {
  std::string files, tensors;
  for (const auto& [name, file] : index.files)
    files += fmt::format("{}\n  {}:{{\"bytes\":{},\"checksum\":\"{}\"}}", files.empty() ? "" : ",", json_string(name),
                         file.bytes, checksum_text(file.checksum));
  for (const auto& [name, tensor] : index.tensors)
    tensors += fmt::format("{}\n  {}:{}", tensors.empty() ? "" : ",", json_string(name), print_tensor(tensor));
  return fmt::format(
      "{{\n\"format\":\"{}\",\n\"version\":{},\n\"step\":{},\n\"state\":{},\n\"files\":{{{}\n}},\n\"tensors\":{{{}\n}}"
      "\n}}\n",
      kFormat, kFormatVersion, index.step, index.state, files, tensors);
}

Index parse_index(std::string_view file_name, std::string_view text) {
  return IndexParser(file_name).parse(text);
}

}  // namespace kintsugi::checkpoint
