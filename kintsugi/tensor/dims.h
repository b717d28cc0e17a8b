// Names of dims that no model has itself: those of buckets, and of blocks that are stacked for an exchange.
#pragma once

#include <string_view>

namespace kintsugi::tensor {

constexpr std::string_view kShard = "shard";  // of a bucket: the blocks that splits of its parameters make
constexpr std::string_view kFlat = "flat";    // of a bucket: the elements of a block, one parameter after another
constexpr std::string_view kPart = "part";    // of stacked blocks: one for each rank

}  // namespace kintsugi::tensor
