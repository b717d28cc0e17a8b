// How partial results are combined into the whole value.
#pragma once

#include <cstdint>
#include <string_view>

namespace kintsugi::tensor {

enum class Combiner : uint8_t { sum, max, logsumexp };

constexpr std::string_view name_of(Combiner c) {
  return c == Combiner::sum ? "sum" : c == Combiner::max ? "max" : "logsumexp";
}

}  // namespace kintsugi::tensor
