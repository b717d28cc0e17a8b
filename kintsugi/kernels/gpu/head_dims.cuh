// Heads from two parts and back, as in multi-head latent attention (ops/join_head_dims.cpp). a: [heads of_a], b: [heads
// / repeats of_b], y: [heads of_y]
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// Rows in words: of_a and of_b of them, then zeros up to of_y.
struct HeadParts {
  Divisor of_y, repeats;
  int64_t of_a, of_b;
  int64_t words;  // of y
};

template <typename W>
__global__ void __launch_bounds__(kPieceThreads) join_parts(HeadParts h, const W* a, const W* b, W* y) {
  for (int64_t p = first_piece(); p < h.words; p += all_threads()) {
    const int64_t head = h.of_y.quotient(p), i = p - head * h.of_y.by;
    W word = {};
    if (i < h.of_a) {
      word = a[head * h.of_a + i];
    } else if (i < h.of_a + h.of_b) {
      word = b[h.repeats.quotient(head) * h.of_b + i - h.of_a];
    }
    y[p] = word;
  }
}

template <typename W>
__global__ void __launch_bounds__(kPieceThreads) split_first_part(HeadParts h, Divisor of_a, const W* y, W* a) {
  const int64_t words = h.of_y.by == 0 ? 0 : h.words / h.of_y.by * h.of_a;
  for (int64_t p = first_piece(); p < words; p += all_threads()) {
    const int64_t head = of_a.quotient(p);
    a[p] = y[head * h.of_y.by + p - head * h.of_a];
  }
}

// One thread per element of b: the sum over the heads that share it, in order. Sizes are in elements.
template <typename T>
__global__ void __launch_bounds__(kPieceThreads)
    sum_second_part(HeadParts h, Divisor of_b, const T* y, T* b, int64_t count) {
  for (int64_t p = first_piece(); p < count; p += all_threads()) {
    const int64_t row = of_b.quotient(p), i = p - row * h.of_b;
    const T* const from = y + row * h.repeats.by * h.of_y.by + h.of_a + i;
    float sum = 0;
    for (int64_t k = 0; k < h.repeats.by; ++k) sum += widen(from[k * h.of_y.by]);
    b[p] = narrow<T>(sum);
  }
}

// Sizes in units of `unit` elements.
HeadParts head_parts(const View& a, const View& b, const View& y, int64_t unit) {
  const int64_t heads = rows(y.shape()), of_rows = b.data == nullptr ? heads : rows(b.shape());
  return {.of_y = Divisor(std::max<int64_t>(width(y.shape()) / unit, 1)),
          .repeats = Divisor(of_rows == 0 ? 1 : std::max<int64_t>(heads / of_rows, 1)),
          .of_a = width(a.shape()) / unit,
          .of_b = b.data == nullptr ? 0 : width(b.shape()) / unit,
          .words = y.elements() / unit};
}

}  // namespace

void join_head_dims(const KernelCall& call) {
  const View &a = call.ins[0], &b = call.ins[1], &y = call.outs[0];
  const int64_t size = tensor::size_of(y.dtype()), of_b = b.data == nullptr ? 0 : width(b.shape());
  const int word = word_of({width(a.shape()) * size, of_b * size, width(y.shape()) * size, address(a.data),
                            address(b.data), address(y.data)});
  with_word(word, [&]<typename W>(W) {
    const HeadParts h = head_parts(a, b, y, static_cast<int64_t>(sizeof(W)) / size);
    launch_pieces(*call.stream, h.words, join_parts<W>, h, data<W>(a), data<W>(b), data<W>(y));
  });
}

void join_head_dims_grad(const KernelCall& call) {
  const View &y = call.ins[0], &a = call.outs[0], &b = call.outs[1];
  const int64_t size = tensor::size_of(y.dtype());
  const int word = word_of({width(a.shape()) * size, width(y.shape()) * size, address(a.data), address(y.data)});
  with_word(word, [&]<typename W>(W) {
    const HeadParts h = head_parts(a, View(), y, static_cast<int64_t>(sizeof(W)) / size);
    const int64_t words = a.elements() * size / static_cast<int64_t>(sizeof(W));
    launch_pieces(*call.stream, words, split_first_part<W>, h, Divisor(std::max<int64_t>(h.of_a, 1)), data<W>(y),
                  data<W>(a));
  });
  if (b.data == nullptr || b.elements() == 0) return;
  const HeadParts h = head_parts(a, b, y, 1);
  dispatch("join_head_dims_grad", y.dtype(), [&]<typename T>(T) {
    launch_pieces(*call.stream, b.elements(), sum_second_part<T>, h, Divisor(h.of_b), data<T>(y), data<T>(b),
                  b.elements());
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
