// Names of dims that a model does not choose: the samples, those of buckets, and of blocks that are stacked for an
// exchange.
#pragma once

#include <string_view>

namespace kintsugi::tensor {

constexpr std::string_view kSamples = "batch";  // of a pass

constexpr std::string_view kShard = "shard";  // of a bucket: the blocks that splits of its parameters make
constexpr std::string_view kFlat = "flat";    // of a bucket: the elements of a block, one parameter after another
constexpr std::string_view kPart = "part";    // of stacked blocks: one for each rank
constexpr std::string_view kHalo = "halo";    // of rows packed for an exchange: the rows

}  // namespace kintsugi::tensor
