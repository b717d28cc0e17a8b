// Reading many parts of tensors with several threads.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/checkpoint/box.h"
#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::checkpoint {

// A part of a tensor, and where its elements go, one after the other, as `dtype`.
struct WantedPart {
  std::string name;
  Part part;
  tensor::DType dtype = tensor::DType::f32;
  std::byte* out = nullptr;
};

// Threads that read at one time. More are of no use to a disk, and each may hold staging memory.
inline constexpr int kReaders = 4;

// Reads all parts, as TensorSource::read does; at most kReaders threads of the team take one after the other.
void read_parts(const TensorSource& source, std::span<const WantedPart> parts, base::ThreadTeam& team);

}  // namespace kintsugi::checkpoint
