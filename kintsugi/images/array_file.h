// Arrays in files: NumPy's .npy (version 1 to 3, C order) and MNIST's idx, each perhaps compressed by gzip.
//
//   npy  "\x93NUMPY" major minor, size of the header (u16, from version 2 u32), a dictionary as text, elements
//   idx  0 0 type rank, rank sizes (u32, big-endian), elements; type 8: uint8
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/images/byte_file.h"

namespace kintsugi::images {

struct ArrayFile {
  std::shared_ptr<const ByteFile> bytes;
  std::string format;  // "npy", "idx"
  std::string type;    // NumPy's name: "|u1", "<f4"
  int64_t element_bytes = 1;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // of the elements in the file

  int64_t elements() const;
};

// Whether the first bytes are those of an array.
bool is_npy(const ByteFile& file);
bool is_idx(const ByteFile& file);
// Whether an idx file has the size that its header says.
bool is_whole_idx(const ByteFile& file);

// UserError that names the file for a damaged header, a file of another size than the header says, Fortran order, or
// elements that are no numbers of little-endian order.
ArrayFile open_array(std::shared_ptr<const ByteFile> file);

// The array as whole numbers, which must be one per sample. UserError for another rank or type, and numbers below 0 or
// above 2^31 - 1.
std::vector<int32_t> read_labels(const ArrayFile& array);

}  // namespace kintsugi::images
