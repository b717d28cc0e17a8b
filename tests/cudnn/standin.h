// A stand-in of NVIDIA's cuDNN for tests: a shared library with the functions that Kintsugi calls. It stores
// descriptors, checks graphs against the rules of the real one, and computes them operation by operation in fp64,
// enqueued in the caller's stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kintsugi::tests::cudnn {

// Operands and results of a graph: [batch heads seq width], or of convolutions [samples channels spatial...] and
// [filters channels kernel...].
struct Tensor {
  int64_t name = 0;
  std::vector<int64_t> sizes, strides;
  int type = -1;  // cudnnDataType_t
  void* data = nullptr;
};

struct Call {
  std::vector<Tensor> tensors;  // those that have memory of the device, in the order of their names
  int64_t products = 0;         // of matrices
  int64_t convolutions = 0;
  void* stream = nullptr;
  void* workspace = nullptr;
};

struct Standin {
  // Enqueues work(context) in a stream. Must be set before the first call.
  void (*enqueue)(void* stream, void (*work)(void*), void* context) = nullptr;
  bool refuses = false;         // it has no way for any graph
  bool narrow_weights = false;  // gradients of 16-bit weights are stored in 16 bits only
  std::vector<int> notes;       // cudnnBackendNumericalNote_t of its engine
  int64_t needs = 0;            // workspace bytes added to what a graph requires
  int64_t plans = 0;            // that were made
  std::vector<Call> calls;
  std::vector<std::string> broken;  // rules that were not kept
};

}  // namespace kintsugi::tests::cudnn

// The only name that the real library lacks.
extern "C" kintsugi::tests::cudnn::Standin* kintsugi_cudnn_standin();
