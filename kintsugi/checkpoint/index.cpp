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
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/where.h"

namespace kintsugi::checkpoint {
namespace {

using base::Json;

constexpr std::string_view kFormat = "kintsugi checkpoint";
constexpr std::array<std::string_view, 3> kKinds = {"weight", "optimizer", "statistic"};
constexpr std::array<tensor::DType, 9> kDTypes = {tensor::DType::f64, tensor::DType::f32, tensor::DType::bf16,
                                                  tensor::DType::f16, tensor::DType::i64, tensor::DType::i32,
                                                  tensor::DType::u16, tensor::DType::u8,  tensor::DType::i8};

bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

uint64_t checksum(const Json& holder) {
  const Json checksum = holder.at("checksum");
  const auto value = checksum_from(checksum.text());
  if (!value) checksum.refuse("16 hexadecimal digits");
  return *value;
}

StoredFile parse_file(const Json& value) {
  return {static_cast<uint64_t>(value.at("bytes").whole()), checksum(value)};
}

tensor::Shape parse_shape(const Json& dims, std::string_view holder) {
  std::vector<tensor::Dim> list;
  std::set<std::string> names;
  int64_t bytes = sizeof(double);
  for (const Json& dim : dims.list()) {
    const Json::Items pair = dim.list();
    if (pair.size() != 2) dim.refuse("a pair of a name and a size");
    list.push_back({std::string(pair[0].text()), pair[1].whole()});
    if (!names.insert(list.back().name).second)
      dim.fail("{} names dim {} twice", holder, base::in_quotes(list.back().name));
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(list.back().size, 1), &bytes))
      dim.fail("{} has more bytes than 63 bits can count", holder);
  }
  return tensor::Shape(std::move(list));
}

std::vector<int64_t> parse_numbers(const Json& value) {
  std::vector<int64_t> list;
  for (const Json& item : value.list()) list.push_back(item.whole());
  return list;
}

StoredPiece parse_piece(const Json& value, std::string_view tensor, const tensor::Shape& shape, const Index& index) {
  StoredPiece piece;
  piece.part.box = {parse_numbers(value.at("start")), parse_numbers(value.at("size"))};
  if (!fits(piece.part.box, shape)) value.fail("a piece of {} does not fit into {}", tensor, to_string(shape));
  piece.part.flat = whole_range(piece.part.box);
  if (const auto given = value.find("flat")) {
    const std::vector<int64_t> flat = parse_numbers(*given);
    if (flat.size() != 2) given->refuse("a pair of numbers");
    piece.part.flat = {flat[0], flat[1]};
  }
  if (!fits(piece.part.flat, piece.part.box) || piece.part.flat.size() == 0)
    value.fail("a piece of {} holds elements {} to {} of a box of {}", tensor, piece.part.flat.begin,
               piece.part.flat.end, piece.part.box.elements());
  piece.file = value.at("file").text();
  if (!index.files.contains(piece.file))
    value.fail("a piece of {} is in file {}, which \"files\" lacks", tensor, base::in_quotes(piece.file));
  piece.key = value.at("key").text();
  piece.checksum = checksum(value);
  return piece;
}

StoredTensor parse_tensor(const Json& value, const Index& index) {
  const std::string holder = "tensor " + base::in_quotes(value.key());
  StoredTensor stored;
  stored.type.shape = parse_shape(value.at("dims"), holder);
  const Json dtype = value.at("dtype");
  const auto known =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](tensor::DType d) { return tensor::name_of(d) == dtype.text(); });
  if (known == kDTypes.end()) dtype.refuse("one of fp64, fp32, bf16, fp16, int64, int32, uint16, uint8, int8");
  stored.type.dtype = *known;
  const Json kind = value.at("kind");
  const auto kind_at = std::find(kKinds.begin(), kKinds.end(), kind.text());
  if (kind_at == kKinds.end()) kind.refuse("one of weight, optimizer, statistic");
  stored.kind = static_cast<Kind>(kind_at - kKinds.begin());
  for (const Json& piece : value.at("pieces").list())
    stored.pieces.push_back(parse_piece(piece, holder, stored.type.shape, index));
  return stored;
}

std::string print_piece(const StoredPiece& piece) {
  const Part& part = piece.part;
  const std::string flat =
      part.flat == whole_range(part.box) ? "" : fmt::format(R"("flat":[{},{}],)", part.flat.begin, part.flat.end);
  return fmt::format(R"({{"start":[{}],"size":[{}],{}"file":{},"key":{},"checksum":"{}"}})",
                     fmt::join(part.box.start, ","), fmt::join(part.box.size, ","), flat, base::json_string(piece.file),
                     base::json_string(piece.key), checksum_text(piece.checksum));
}

std::string print_tensor(const StoredTensor& tensor) {
  std::string dims, pieces;
  for (const tensor::Dim& dim : tensor.type.shape)
    dims += fmt::format("{}[{},{}]", dims.empty() ? "" : ",", base::json_string(dim.name), dim.size);
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
    files += fmt::format("{}\n  {}:{{\"bytes\":{},\"checksum\":\"{}\"}}", files.empty() ? "" : ",",
                         base::json_string(name), file.bytes, checksum_text(file.checksum));
  for (const auto& [name, tensor] : index.tensors)
    tensors += fmt::format("{}\n  {}:{}", tensors.empty() ? "" : ",", base::json_string(name), print_tensor(tensor));
  return fmt::format(
      "{{\n\"format\":\"{}\",\n\"version\":{},\n\"step\":{},\n\"state\":{},\n\"files\":{{{}\n}},\n\"tensors\":{{{}\n}}"
      "\n}}\n",
      kFormat, kFormatVersion, index.step, index.state, files, tensors);
}

Index parse_index(std::string_view file_name, std::string_view text) {
  const Json root = Json::parse(kWhere, file_name, text);
  const auto format = root.find("format");
  if (!format || !format->is_text() || format->text() != kFormat)
    root.fail("it has no \"format\": \"{}\"; is it the index of a checkpoint?", kFormat);
  const Json version = root.at("version");
  if (version.whole() != kFormatVersion)
    version.refuse(fmt::format("{}, the version that this program reads", kFormatVersion));
  Index index;
  index.step = root.at("step").whole();
  const Json state = root.at("state");
  if (!state.is_object()) state.refuse("an object");
  index.state = state.compact();
  for (const Json& file : root.at("files").members()) {
    if (!is_file_name(file.key()))
      file.fail("{} is not the name of a file in the checkpoint's folder", base::in_quotes(file.key()));
    index.files.emplace(file.key(), parse_file(file));
  }
  for (const Json& tensor : root.at("tensors").members())
    index.tensors.emplace(tensor.key(), parse_tensor(tensor, index));
  return index;
}

}  // namespace kintsugi::checkpoint
