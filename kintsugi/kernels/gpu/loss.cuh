// Cross-entropy from the statistics of the head: sums in fp64, in a fixed tree.
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::CrossEntropyIn;

// Also fp64.
template <typename F>
void dispatch_wide(std::string_view kind, DType dtype, const F& f) {
  if (dtype == DType::f64) return f(double{});
  dispatch(kind, dtype, f);
}

struct LabelPlaces {
  LocalIndex outer, inner;
  int64_t width;
  __device__ bool counts(const int32_t* labels, int64_t i) const {
    return labels[i] >= 0 && outer[i / width] >= 0 && inner[i % width] >= 0;
  }
};

LabelPlaces places_of(const KernelCall& call, const View& labels) {
  const tensor::Shape& shape = labels.shape();
  base::require(shape.rank() >= 1 && shape.rank() <= 2, "cross_entropy", "labels {}", to_string(shape));
  return {shape.rank() == 2 ? local_index(call.index(shape[0].name)) : local_index(tensor::DimIndex(1)),
          local_index(call.index(shape[shape.rank() - 1].name)), shape[shape.rank() - 1].size};
}

template <typename T, typename S>
__global__ void sum_losses(const T* lse, const T* target, const int32_t* labels, LabelPlaces places, int64_t count,
                           S* loss, S* counted, bool add_loss, bool add_count) {
  __shared__ double scratch[32];
  double sum = 0, number = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    if (!places.counts(labels, i)) continue;
    sum += static_cast<double>(widen(lse[i])) - static_cast<double>(widen(target[i]));
    number += 1;
  }
  sum = block_sum(sum, scratch);
  number = block_sum(number, scratch);
  if (threadIdx.x == 0) {
    *loss = static_cast<S>(add_loss ? static_cast<double>(*loss) + sum : sum);
    *counted = static_cast<S>(add_count ? static_cast<double>(*counted) + number : number);
  }
}

template <typename T, typename S>
__global__ void spread_loss(const int32_t* labels, LabelPlaces places, int64_t count, const S* dloss, T* dlse,
                            T* dtarget, bool add_lse, bool add_target) {
  const auto d = static_cast<float>(*dloss);
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const float made = places.counts(labels, i) ? d : 0;
    put(&dlse[i], made, add_lse);
    put(&dtarget[i], -made, add_target);
  }
}

}  // namespace

void cross_entropy(const KernelCall& call) {
  const View &lse = call.ins[CrossEntropyIn::kLse], &labels = call.ins[CrossEntropyIn::kLabels];
  dispatch("cross_entropy", lse.dtype(), [&]<typename T>(T) {
    const auto go = [&]<typename S>(S) {
      launch(*call.stream, dim3(1), dim3(1024), 0, sum_losses<T, S>, data<T>(lse),
             data<T>(call.ins[CrossEntropyIn::kTarget]), data<int32_t>(labels), places_of(call, labels),
             labels.elements(), data<S>(call.outs[0]), data<S>(call.outs[1]), call.accumulates(0), call.accumulates(1));
    };
    call.outs[0].dtype() == DType::f64 ? go(double{}) : go(float{});
  });
}

void cross_entropy_grad(const KernelCall& call) {
  const View &labels = call.ins[0], &dloss = call.ins[1];
  dispatch("cross_entropy_grad", call.outs[0].dtype(), [&]<typename T>(T) {
    const auto go = [&]<typename S>(S) {
      launch(*call.stream, blocks_for(labels.elements()), dim3(256), 0, spread_loss<T, S>, data<int32_t>(labels),
             places_of(call, labels), labels.elements(), data<S>(dloss), data<T>(call.outs[0]), data<T>(call.outs[1]),
             call.accumulates(0), call.accumulates(1));
    };
    dloss.dtype() == DType::f64 ? go(double{}) : go(float{});
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
