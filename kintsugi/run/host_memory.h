// Memory of the host for a program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::run {

// Allocated once, aligned to 4096 bytes, and filled with zeros.
class Arena {
 public:
  explicit Arena(int64_t bytes);  // UserError if the system cannot allocate that much
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace kintsugi::run
