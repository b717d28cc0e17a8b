// Array files: NumPy's .npy (version 1 to 3, C order) and MNIST's idx, optionally gzipped.
//
//   npy  "\x93NUMPY" major minor, header size (u16, from version 2 u32), a dictionary as text, elements
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
  std::string type;    // in NumPy's notation: "|u1", "<f4"
  int64_t element_bytes = 1;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // offset of the elements in the file

  int64_t elements() const;
};

// "is a PNG file; ..." if the file begins like one of a known format that this module does not read, else "".
std::string foreign_text(const ByteFile& file);

// Whether the file begins as an npy array does.
bool is_npy(const ByteFile& file);
bool is_idx(const ByteFile& file);
// Whether an idx file has the size stated in its header.
bool is_whole_idx(const ByteFile& file);

// Throws UserError, naming the file, for a corrupt header, a size mismatch, Fortran order, or elements other than
// little-endian numbers.
ArrayFile open_array(std::shared_ptr<const ByteFile> file);

// Reads the array as integers, one per sample. Throws UserError for another rank or type, and for values outside [0,
// 10^9).
std::vector<int32_t> read_labels(const ArrayFile& array);

}  // namespace kintsugi::images
