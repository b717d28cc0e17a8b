#include "kintsugi/exchange/read_strided.h"

#include <algorithm>

#include "kintsugi/checkpoint/convert.h"

namespace kintsugi::exchange {
namespace {

using checkpoint::TensorInFile;

constexpr int64_t kStagedBytes = int64_t{256} << 10;  // fits into the L2 cache
constexpr int64_t kAhead = 1 << 18;                   // bytes to read at once where runs are close together
constexpr uint64_t kAheadOfUse = uint64_t{16} << 20;  // bytes to prefetch from disk
constexpr int64_t kNear = 1 << 12;                    // maximum bytes between the beginnings of close runs

int64_t elements_from(const std::vector<CopyDim>& dims, size_t d) {
  int64_t n = 1;
  for (; d < dims.size(); ++d) n *= dims[d].size;
  return n;
}

class StridedRead {
 public:
  StridedRead(const TensorInFile& tensor, tensor::DType dtype, std::byte* out, Staging& staging)
      : tensor_(tensor), dtype_(dtype), size_(size_of(tensor.dtype)), out_(out), staging_(staging) {}

  // In parts that fit into the staging memory.
  void read(int64_t first, std::vector<CopyDim> dims, int64_t to) {
    const int64_t most = kStagedBytes / std::max(size_, size_of(dtype_));
    if (elements_from(dims, 0) <= most) return read_part(first, dims, to);
    const int64_t inner = elements_from(dims, 1), together = std::max<int64_t>(most / inner, 1);
    const CopyDim outer = dims[0];
    for (int64_t i = 0; i < outer.size; i += together) {
      dims[0].size = std::min(together, outer.size - i);
      read(first + i * outer.from, simplified(dims), to + i * outer.to);
    }
  }

 private:
  // Stages the part in file order without gaps, then moves it into place.
  void read_part(int64_t first, const std::vector<CopyDim>& dims, int64_t to) {
    std::vector<CopyDim> packed = dims;
    int64_t stride = 1;
    for (size_t d = packed.size(); d-- > 0; stride *= packed[d].size) packed[d].from = stride;
    packed = simplified(packed);
    const bool in_place = packed.empty() || (packed.size() == 1 && packed[0].to == 1);
    std::byte* const place = out_ + to * size_of(dtype_);
    if (in_place && dtype_ == tensor_.dtype) return read_runs(first, dims, {place, bytes_of(stride, dtype_)});
    const bool converts = dtype_ != tensor_.dtype;
    const size_t read = bytes_of(stride, tensor_.dtype);
    std::vector<std::byte>& memory = staging_.memory;
    memory.resize(std::max(memory.size(), read + (converts && !in_place ? bytes_of(stride, dtype_) : 0)));
    read_runs(first, dims, std::span(memory).first(read));
    if (!converts) return copy_strided(packed, memory.data(), place, size_);
    std::byte* const converted = in_place ? place : memory.data() + read;
    checkpoint::convert(tensor_.dtype, memory.data(), dtype_, converted, stride);
    if (!in_place) copy_strided(packed, converted, place, size_of(dtype_));
  }

  static size_t bytes_of(int64_t elements, tensor::DType dtype) {
    return static_cast<size_t>(elements * size_of(dtype));
  }

  void read_runs(int64_t first, const std::vector<CopyDim>& dims, std::span<std::byte> out) {
    size_t leaf = dims.size();  // dims from it on form one run
    int64_t run = 1;
    while (leaf > 0 && dims[leaf - 1].from == run) run *= dims[--leaf].size;
    near_ = leaf > 0 && dims[leaf - 1].from * size_ <= kNear;
    run_bytes_ = run * size_;
    ahead_.clear();
    end_ = first + 1;
    for (const CopyDim& d : dims) end_ += (d.size - 1) * d.from;
    read_ahead(static_cast<uint64_t>(first * size_), static_cast<uint64_t>(end_ * size_));
    std::byte* to = out.data();
    go(dims, leaf, 0, first, to);
    if (staging_.see) staging_.see(out);
  }

  // Prefetches from disk while this part is converted; the system would not detect a pattern in distant runs.
  void read_ahead(uint64_t begin, uint64_t end) {
    if (end + kAheadOfUse / 2 <= asked_ || asked_ == tensor_.bytes) return;
    const uint64_t from = std::max(begin, asked_);
    asked_ = std::min(end + kAheadOfUse, tensor_.bytes);
    tensor_.read_ahead(from, asked_ - from);
  }

  void go(const std::vector<CopyDim>& dims, size_t leaf, size_t d, int64_t at, std::byte*& to) {
    if (d == leaf) {
      read_run(at * size_, to);
      to += run_bytes_;
      return;
    }
    for (int64_t i = 0; i < dims[d].size; ++i) go(dims, leaf, d + 1, at + i * dims[d].from, to);
  }

  void read_run(int64_t at, std::byte* to) {
    if (!near_ || run_bytes_ >= kAhead)
      return tensor_.read_at(static_cast<uint64_t>(at), {to, static_cast<size_t>(run_bytes_)});
    if (ahead_.empty() || at + run_bytes_ > ahead_at_ + static_cast<int64_t>(ahead_.size())) {
      ahead_at_ = at;
      ahead_.resize(static_cast<size_t>(std::min(kAhead, end_ * size_ - at)));
      tensor_.read_at(static_cast<uint64_t>(at), ahead_);
    }
    std::copy_n(ahead_.begin() + (at - ahead_at_), run_bytes_, to);
  }

  const TensorInFile& tensor_;
  tensor::DType dtype_;
  int64_t size_;  // of an element in the file
  std::byte* out_;
  Staging& staging_;
  // Of the current part: whether its runs are close together, and its end.
  bool near_ = false;
  int64_t run_bytes_ = 0, end_ = 0;
  std::vector<std::byte> ahead_;
  int64_t ahead_at_ = 0;
  uint64_t asked_ = 0;  // end of the requested prefetch
};

}  // namespace

void read_strided(const StridedPart& part, tensor::DType dtype, std::byte* out, Staging& staging) {
  StridedRead(part.tensor, dtype, out, staging).read(part.first, simplified(part.dims), 0);
}

}  // namespace kintsugi::exchange
