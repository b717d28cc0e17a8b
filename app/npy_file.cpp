#include "app/npy_file.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/write_output.h"

namespace kintsugi::app {
namespace {

std::string npy_header(std::string_view type, std::span<const int64_t> shape) {
  static_assert(std::endian::native == std::endian::little);
  std::string sizes;
  for (const int64_t size : shape) sizes += fmt::format("{}{}", sizes.empty() ? "" : " ", fmt::format("{},", size));
  if (shape.size() > 1) sizes.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, sizes);
  constexpr size_t kBefore = 10;
  header.append(64 - (kBefore + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file + header;
}

}  // namespace

std::string npy_file(std::span<const float> values, size_t rows, size_t columns) {
  const int64_t shape[] = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
  return npy_header("<f4", shape).append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

NpyWriter::NpyWriter(const std::filesystem::path& path, std::string_view type, std::span<const int64_t> shape)
    : path_(path), target_(base::target_of(path)), part_(target_.string() + ".part") {
  file_.open(part_, std::ios::binary | std::ios::trunc);
  if (!file_) throw base::UserError("file", "cannot write \"{}\": {}", path_.string(), std::strerror(errno));
  file_ << npy_header(type, shape);
}

NpyWriter::~NpyWriter() {
  if (!file_.is_open()) return;
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(part_, ignored);
}

void NpyWriter::append(std::span<const std::byte> elements) {
  file_.write(reinterpret_cast<const char*>(elements.data()), std::ssize(elements));
  if (!file_) throw base::UserError("file", "cannot write \"{}\": {}", path_.string(), std::strerror(errno));
}

void NpyWriter::finish() {
  file_.close();
  std::error_code error;
  if (file_) std::filesystem::rename(part_, target_, error);
  if (!file_ || error)
    throw base::UserError("file", "cannot write \"{}\": {}", path_.string(),
                          error ? error.message() : std::strerror(errno));
}

}  // namespace kintsugi::app
