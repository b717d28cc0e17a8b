// Reads many parts of tensors in parallel.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/checkpoint/box.h"
#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::checkpoint {

// A part of a tensor, and the buffer for its elements, contiguous and as `dtype`.
struct WantedPart {
  std::string name;
  Part part;
  tensor::DType dtype = tensor::DType::f32;
  std::byte* out = nullptr;
};

// Maximum number of reader threads: more do not help a disk, and each may allocate staging memory.
inline constexpr int kReaders = 4;

// Reads all parts, as TensorSource::read() does; at most kReaders threads of the team take parts from a shared list.
void read_parts(const TensorSource& source, std::span<const WantedPart> parts, base::ThreadTeam& team);

}  // namespace kintsugi::checkpoint
