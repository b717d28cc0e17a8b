// Graphs in the cuDNN stand-in: descriptors with their attributes, and tensor ids.
#pragma once

#include <cudnn.h>

#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::tests::cudnn {

// A descriptor of any kind: its attributes, by name.
struct Descriptor {
  cudnnBackendDescriptorType_t kind;
  std::map<int, std::vector<std::byte>> set;
  std::map<int, std::vector<const Descriptor*>> parts;
  bool finished = false;

  template <typename T>
  std::vector<T> list(int name) const {
    const auto found = set.find(name);
    if (found == set.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  T value(int name, T otherwise = {}) const {
    const std::vector<T> values = list<T>(name);
    return values.empty() ? otherwise : values[0];
  }
  const Descriptor* part(int name) const {
    const auto found = parts.find(name);
    return found == parts.end() || found->second.empty() ? nullptr : found->second[0];
  }
};

inline int64_t name_of(const Descriptor& tensor) {
  return tensor.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
}
inline bool is_virtual(const Descriptor& tensor) {
  return tensor.value<uint8_t>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
}
inline bool on_host(const Descriptor& tensor) {
  return tensor.value<uint8_t>(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
}
inline std::vector<int64_t> sizes_of(const Descriptor& tensor) {
  return tensor.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
}
inline std::vector<int64_t> strides_of(const Descriptor& tensor) {
  return tensor.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
}
inline int type_of(const Descriptor& tensor) {
  return tensor.value<int>(CUDNN_ATTR_TENSOR_DATA_TYPE);
}

inline std::optional<tensor::DType> dtype_of(int type) {
  if (type == CUDNN_DATA_FLOAT) return tensor::DType::f32;
  if (type == CUDNN_DATA_BFLOAT16) return tensor::DType::bf16;
  if (type == CUDNN_DATA_HALF) return tensor::DType::f16;
  return std::nullopt;
}

inline double load_number(const void* data, tensor::DType dtype, int64_t at) {
  return dtype == tensor::DType::f32    ? static_cast<const float*>(data)[at]
         : dtype == tensor::DType::bf16 ? static_cast<float>(static_cast<const tensor::bf16*>(data)[at])
                                        : static_cast<float>(static_cast<const tensor::f16*>(data)[at]);
}
inline void store_number(void* data, tensor::DType dtype, int64_t at, double x) {
  const auto narrow = static_cast<float>(x);
  if (dtype == tensor::DType::f32) static_cast<float*>(data)[at] = narrow;
  if (dtype == tensor::DType::bf16) static_cast<tensor::bf16*>(data)[at] = tensor::bf16(narrow);
  if (dtype == tensor::DType::f16) static_cast<tensor::f16*>(data)[at] = tensor::f16(narrow);
}

// The attributes that are operands or results of an operation; every operation except fused attention has one result.
struct Operands {
  std::vector<int> ins, outs;
};
inline std::optional<Operands> operands_of(const Descriptor& operation) {
  switch (operation.kind) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return Operands{{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
                      {CUDNN_ATTR_OPERATION_MATMUL_CDESC}};
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return Operands{{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                       CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
                      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC}};
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return Operands{{CUDNN_ATTR_OPERATION_REDUCTION_XDESC}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC}};
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return Operands{{CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC}};
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
      return Operands{{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
                       CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC},
                      {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC}};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return Operands{{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return Operands{{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX}};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return Operands{{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW}};
    default:
      return std::nullopt;
  }
}

// The numbers of a tensor, row by row.
struct Values {
  std::vector<int64_t> sizes;
  std::vector<double> at;
};

inline int64_t elements(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}
// Calls f(index of all dims) for each element.
template <typename F>
inline void each(const std::vector<int64_t>& sizes, const F& f) {
  std::vector<int64_t> at(sizes.size());
  for (int64_t i = 0, count = elements(sizes); i < count; ++i) {
    f(at, i);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}
}  // namespace kintsugi::tests::cudnn
