// Names of dims that models do not choose: samples, dims of buckets, and dims of blocks that are stacked for an
// exchange.
#pragma once

#include <string_view>

namespace kintsugi::tensor {

constexpr std::string_view kSamples = "batch";  // of a pass

constexpr std::string_view kShard = "shard";  // of a bucket: the blocks formed by the splits of its parameters
constexpr std::string_view kFlat = "flat";    // of a bucket: the elements of a block, parameters concatenated
constexpr std::string_view kPart = "part";    // of stacked blocks: one per rank
constexpr std::string_view kHalo = "halo";    // of rows packed for an exchange: the rows

}  // namespace kintsugi::tensor
