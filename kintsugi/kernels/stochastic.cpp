#include "kintsugi/kernels/stochastic.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "kintsugi/kernels/random.h"

namespace kintsugi::kernels {
namespace {

// The words of `count` consecutive elements of a weight from `from` on.
void words_of_run(std::array<uint32_t, 2> key, uint64_t stream, uint64_t from, std::span<uint32_t> words) {
  for (size_t i = 0; i < words.size();) {
    const std::array<uint32_t, 4> block = random_block(key, stream, (from + i) / 4);
    for (size_t word = (from + i) % 4; word < 4 && i < words.size(); ++word) words[i++] = block[word];
  }
}

}  // namespace

void random_words(const KernelCall& call, int64_t begin, std::span<uint32_t> words) {
  std::ranges::fill(words, 0u);
  const auto end = begin + std::ssize(words), stream = call.numbers.step;
  for (const StatePlace& place : call.places) {
    int64_t elements = 1;
    for (const tensor::DimIndex& dim : place.index) elements *= dim.local();
    const int64_t first = std::max(begin, place.first), last = std::min(end, place.first + elements);
    if (first >= last) continue;
    const auto key = random_key(call.numbers.seed, {reinterpret_cast<const char*>(&place.key), sizeof place.key});
    const tensor::DimIndex& inner = place.index.back();
    const int64_t row = inner.local();
    for (int64_t r = (first - place.first) / row; place.first + r * row < last; ++r) {
      int64_t base = 0, left = r, above = elements / row;
      bool padding = false;
      for (const tensor::DimIndex& dim : std::span(place.index).first(place.index.size() - 1)) {
        above /= dim.local();
        const int64_t at = dim[left / above];
        left %= above;
        padding |= at < 0;
        base = base * dim.whole() + at;
      }
      if (padding) continue;
      int64_t at = place.first + r * row;
      for (const tensor::Segment& segment : inner.segments()) {
        const int64_t from = std::max(at, first), until = std::min(at + segment.count, last);
        if (segment.global >= 0 && from < until)
          words_of_run(key, static_cast<uint64_t>(stream),
                       static_cast<uint64_t>(base * inner.whole() + segment.global + from - at),
                       words.subspan(static_cast<size_t>(from - begin), static_cast<size_t>(until - from)));
        at += segment.count;
      }
    }
  }
}

}  // namespace kintsugi::kernels
