// Group norm: the group of each channel of a block, and the moments of each group.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// [channel of the block]: its group, or -1 at padding.
inline std::vector<int64_t> norm_groups(const KernelCall& call, const tensor::Dim& channels) {
  const int64_t each = call.attributes.integer("channels") / call.attributes.integer("groups");
  const tensor::DimIndex& index = call.index(channels.name);
  std::vector<int64_t> groups(static_cast<size_t>(channels.size));
  for (int64_t c = 0; c < channels.size; ++c) groups[static_cast<size_t>(c)] = index[c] < 0 ? -1 : index[c] / each;
  return groups;
}

struct GroupMoments {
  double mean = 0, inverse_deviation = 0;
};

// Moments of a group of a sample, from its sums: statistics [batch moment norm_group].
inline GroupMoments group_moments(const KernelCall& call, const double* statistics, int64_t sample, int64_t group) {
  const int64_t groups = call.attributes.integer("groups");
  const auto count = static_cast<double>(call.attributes.integer("count"));
  const double mean = statistics[2 * sample * groups + group] / count,
               squares = statistics[(2 * sample + 1) * groups + group] / count;
  return {mean, 1 / std::sqrt(std::max(squares - mean * mean, 0.0) + call.attributes.number("epsilon"))};
}

}  // namespace kintsugi::kernels
