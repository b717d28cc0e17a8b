// A stand-in of NVIDIA's cuBLASLt for tests: a shared library with the functions that Kintsugi calls. It checks each
// call against the rules of the real one, records requests, and computes matmuls by plain loops, enqueued in the
// caller's stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kintsugi::tests::cublaslt {

// A matmul from the library's view: all matrices are column-major.
struct Call {
  int64_t m = 0, n = 0, k = 0;
  int64_t first_step = 0, second_step = 0, result_step = 0;  // leading dimensions
  bool first_transposed = false, second_transposed = false;
  int type = 0, result_type = 0;  // cudaDataType
  int64_t batch = 1;
  bool bias = false, accumulate = false, adds_other = false, tf32 = false;
  bool gelu = false, gelu_gradient = false;  // of the product and its bias; times the product
  const void* aux = nullptr;                 // what GELU was of, written or read
  const void* result = nullptr;
  const void* workspace = nullptr;
  uint64_t workspace_bytes = 0;
  void* stream = nullptr;
  uint64_t algorithm = 0;  // of which request for algorithms it came
  int rank = 0;            // among those that answered it
};

struct Standin {
  // Enqueues work(context) in a stream. Must be set before the first matmul.
  void (*enqueue)(void* stream, void (*work)(void*), void* context) = nullptr;
  bool (*refuses)(int64_t m, int64_t n, int64_t k) = nullptr;  // products for which it has no algorithm; null: none
  const void* measuring = nullptr;                             // a stream in which nothing is computed
  std::vector<Call> calls, measured;
  int64_t requests = 0;             // for algorithms
  std::vector<std::string> broken;  // rules that were not kept
};

}  // namespace kintsugi::tests::cublaslt

// The only name that the real library lacks.
extern "C" kintsugi::tests::cublaslt::Standin* kintsugi_cublaslt_standin();
