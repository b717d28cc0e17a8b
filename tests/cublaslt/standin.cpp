#include "tests/cublaslt/standin.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::tests::cublaslt {
namespace {

using tensor::DType;

struct Matrix {
  cudaDataType type = CUDA_R_32F;
  uint64_t rows = 0, columns = 0;
  int64_t step = 0;
  int32_t batch = 1;
  int64_t apart = 0;
};

struct Product {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int bias_type = -1;  // that of the result
  int64_t bias_apart = 0;
  void* aux = nullptr;
  int64_t aux_step = 0, aux_apart = 0;

  bool has_bias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  bool has_aux() const { return (epilogue & 128) != 0; }
  bool gelu() const { return (epilogue & CUBLASLT_EPILOGUE_GELU) != 0; }
  bool gelu_gradient() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool tf32() const { return compute == CUBLAS_COMPUTE_32F_FAST_TF32; }
  bool fp64() const { return compute == CUBLAS_COMPUTE_64F; }
};

// TF32 keeps 10 bits of an fp32 fraction.
float as_taken(const Product& p, float x) {
  if (!p.tf32()) return x;
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0xFFFu + ((bits >> 13) & 1u)) & ~0x1FFFu);
}

struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};

// An algorithm keeps the request that it was returned for.
struct Algorithm {
  static constexpr uint64_t kMark = 0x6b696e7473756769;
  uint64_t mark;
  uint64_t request;  // beginning at 1
  uint64_t product;  // of hash()
  uint64_t workspace;
  uint8_t alignment[4];
  uint16_t bias_alignment, aux_alignment;
  int rank;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

Standin& standin() {
  static Standin all;
  return all;
}

std::mutex& mutex() {
  static std::mutex one;
  return one;
}

cublasStatus_t broken(std::string rule) {
  standin().broken.push_back(std::move(rule));
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <typename T>
const T& as(const void* handle) {
  return *static_cast<const T*>(handle);
}

// The value of an attribute; false if it was set with another size.
template <typename T>
bool take(T& value, const void* from, size_t bytes) {
  if (bytes != sizeof(T)) return false;
  std::memcpy(&value, from, bytes);
  return true;
}

std::optional<DType> dtype_of(int type) {
  if (type == CUDA_R_64F) return DType::f64;
  if (type == CUDA_R_32F) return DType::f32;
  if (type == CUDA_R_16BF) return DType::bf16;
  if (type == CUDA_R_16F) return DType::f16;
  return std::nullopt;
}

uint32_t alignment_of(const void* at) {
  const auto bits = reinterpret_cast<uintptr_t>(at) | 256u;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

uint16_t wanted_alignment(const void* at) {
  return at == nullptr ? 1 : static_cast<uint16_t>(std::min<uint32_t>(alignment_of(at), 16));
}

struct Sizes {
  int64_t m = 0, n = 0, k = 0;
};

// The first violated rule of the three matrices, or "".
std::string rules(const Product& p, const Matrix& a, const Matrix& b, const Matrix& c, Sizes& sizes) {
  const bool ta = p.first == CUBLAS_OP_T, tb = p.second == CUBLAS_OP_T;
  sizes = {static_cast<int64_t>(ta ? a.columns : a.rows), static_cast<int64_t>(tb ? b.rows : b.columns),
           static_cast<int64_t>(ta ? a.rows : a.columns)};
  // The library's table of types: fp64 only with fp64.
  if (p.fp64() != (a.type == CUDA_R_64F) || p.fp64() != (p.scale == CUDA_R_64F))
    return "sums and factors of fp64, and of nothing else, must be fp64";
  if (!p.fp64() && ((p.compute != CUBLAS_COMPUTE_32F && !p.tf32()) || p.scale != CUDA_R_32F))
    return "sums and factors must be fp32";
  if (p.fp64() && (p.epilogue & ~CUBLASLT_EPILOGUE_BIAS) > CUBLASLT_EPILOGUE_DEFAULT)
    return "an activation behind a product of fp64";
  if (p.tf32() && a.type != CUDA_R_32F) return "TF32 of what is not fp32";
  if (!dtype_of(a.type) || a.type != b.type || !(c.type == a.type || (c.type == CUDA_R_32F && !p.fp64())))
    return fmt::format("types {}, {} and {} do not go together", int(a.type), int(b.type), int(c.type));
  if (static_cast<int64_t>(tb ? b.columns : b.rows) != sizes.k) return "the summed sizes differ";
  if (static_cast<int64_t>(c.rows) != sizes.m || static_cast<int64_t>(c.columns) != sizes.n)
    return fmt::format("the result is {} x {}, not {} x {}", c.rows, c.columns, sizes.m, sizes.n);
  if (sizes.m == 0 || sizes.n == 0 || sizes.k == 0) return "an empty matrix";
  for (const Matrix* x : {&a, &b, &c}) {
    if (x->step < static_cast<int64_t>(x->rows))
      return fmt::format("a leading dimension of {} for {} rows", x->step, x->rows);
    if (x->batch != a.batch) return "the counts of matrices differ";
  }
  if (c.batch > 1 && c.apart == 0) return "several results in one place";
  constexpr cublasLtEpilogue_t kKnown[] = {
      CUBLASLT_EPILOGUE_DEFAULT,  CUBLASLT_EPILOGUE_BIAS,          CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS,
      CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU};
  if (std::ranges::find(kKnown, p.epilogue) == std::end(kKnown)) return "an epilogue that the stand-in does not know";
  if (p.has_bias()) {
    if (p.bias == nullptr) return "an epilogue with a bias that is null";
    if (p.bias_type != -1 && p.bias_type != c.type) return "a bias of another type than the result";
  }
  if (p.has_aux()) {
    if (p.aux == nullptr) return "an epilogue with an operand that is null";
    if (p.aux_step % 8 != 0 || p.aux_step < sizes.m)
      return fmt::format("a leading dimension of {} for the {} rows of an epilogue's operand", p.aux_step, sizes.m);
    if (c.batch > 1 && (p.aux_apart == 0 || p.aux_apart % 8 != 0))
      return fmt::format("operands of an epilogue that are {} apart", p.aux_apart);
  }
  return "";
}

uint64_t hash(const Product& p, const Matrix& a, const Matrix& b, const Matrix& c) {
  const std::string all = fmt::format("{} {} {} {}|{} {} {} {} {} {}|{} {} {} {} {} {}|{} {} {} {} {} {}",
                                      int(p.compute), int(p.first), int(p.second), int(p.epilogue), int(a.type), a.rows,
                                      a.columns, a.step, a.batch, a.apart, int(b.type), b.rows, b.columns, b.step,
                                      b.batch, b.apart, int(c.type), c.rows, c.columns, c.step, c.batch, c.apart);
  return std::hash<std::string>()(all);
}

float gelu(float x) {
  return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}
float gelu_slope(float x) {
  const float t = std::tanh(0.79788456f * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 0.134145f * x * x);
}

// result[i + j * step] = alpha * sum of first[i, l] * second[l, j] + beta * added[i + j * step] + bias[i]; then GELU,
// with its input stored in aux if given, or times the derivative of GELU at aux.
struct Work {
  Product product;
  Matrix a, b, c;
  Sizes sizes;
  double alpha, beta;
  const std::byte *first, *second;
  std::byte* result;
  const std::byte* added;

  template <typename In, typename Out>
  void run() const {
    using Sum = std::conditional_t<std::is_same_v<In, double>, double, float>;
    const auto taken = [&](In x) {
      return static_cast<double>(sizeof(Sum) == 8 ? static_cast<Sum>(x) : as_taken(product, static_cast<float>(x)));
    };
    const bool ta = product.first == CUBLAS_OP_T, tb = product.second == CUBLAS_OP_T;
    for (int32_t i = 0; i < c.batch; ++i) {
      const In *x = reinterpret_cast<const In*>(first) + i * a.apart,
               *y = reinterpret_cast<const In*>(second) + i * b.apart;
      Out* z = reinterpret_cast<Out*>(result) + i * c.apart;
      const Out* more = reinterpret_cast<const Out*>(added) + i * c.apart;
      const Out* bias = product.has_bias() ? static_cast<const Out*>(product.bias) + i * product.bias_apart : nullptr;
      for (int64_t column = 0; column < sizes.n; ++column)
        for (int64_t row = 0; row < sizes.m; ++row) {
          double sum = 0;
          for (int64_t l = 0; l < sizes.k; ++l)
            sum += taken(ta ? x[l + row * a.step] : x[row + l * a.step]) *
                   taken(tb ? y[column + l * b.step] : y[l + column * b.step]);
          Out& out = z[row + column * c.step];
          auto value = static_cast<Sum>(sum) * static_cast<Sum>(alpha);
          if (beta != 0) value += static_cast<Sum>(beta) * static_cast<Sum>(more[row + column * c.step]);
          if (bias != nullptr) value += static_cast<Sum>(bias[row]);
          Out* const aux = product.has_aux() ? static_cast<Out*>(product.aux) + i * product.aux_apart + row +
                                                   column * product.aux_step
                                             : nullptr;
          if constexpr (sizeof(Sum) == 4) {
            if (product.gelu_gradient()) value *= gelu_slope(static_cast<float>(*aux));
            if (product.gelu() && aux != nullptr) *aux = Out(value);
            if (product.gelu()) value = gelu(value);
          }
          out = Out(value);
        }
    }
  }
};

void run(void* context) {
  const Work& w = *static_cast<const Work*>(context);
  tensor::dispatch(*dtype_of(w.a.type), [&]<typename In>(In) {
    if constexpr (std::is_same_v<In, double>) {
      w.run<In, In>();
    } else {
      w.c.type == CUDA_R_32F ? w.run<In, float>() : w.run<In, In>();
    }
  });
}

}  // namespace
}  // namespace kintsugi::tests::cublaslt

using namespace kintsugi::tests::cublaslt;

extern "C" {

Standin* kintsugi_cublaslt_standin() {
  return &standin();
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(&standin());
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t scale) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Product{.compute = compute, .scale = scale});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete reinterpret_cast<Product*>(product);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t what,
                                              const void* value, size_t bytes) {
  const std::lock_guard lock(mutex());
  Product& p = *reinterpret_cast<Product*>(product);
  bool taken = false;
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      taken = take(p.first, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      taken = take(p.second, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      taken = take(p.epilogue, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      taken = take(p.bias, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      taken = take(p.bias_type, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      taken = take(p.bias_apart, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      taken = take(p.aux, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      taken = take(p.aux_step, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      taken = take(p.aux_apart, value, bytes);
      break;
    default:
      break;
  }
  return taken ? CUBLAS_STATUS_SUCCESS : broken(fmt::format("setting {} of a product, in {} bytes", int(what), bytes));
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t step) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Matrix{.type = type, .rows = rows, .columns = columns, .step = step});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matrix) {
  delete reinterpret_cast<Matrix*>(matrix);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matrix, cublasLtMatrixLayoutAttribute_t what,
                                                const void* value, size_t bytes) {
  const std::lock_guard lock(mutex());
  Matrix& m = *reinterpret_cast<Matrix*>(matrix);
  bool taken = false;
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) taken = take(m.batch, value, bytes);
  if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) taken = take(m.apart, value, bytes);
  return taken ? CUBLAS_STATUS_SUCCESS : broken(fmt::format("setting {} of a matrix, in {} bytes", int(what), bytes));
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what, const void* value,
                                                    size_t bytes) {
  const std::lock_guard lock(mutex());
  Preference& p = *reinterpret_cast<Preference*>(preference);
  bool taken = false;
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) taken = take(p.workspace, value, bytes);
  if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) taken = take(p.reductions, value, bytes);
  for (int i = 0; i < 4; ++i)
    if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i) taken = take(p.alignment[i], value, bytes);
  return taken ? CUBLAS_STATUS_SUCCESS : broken(fmt::format("preference {}, in {} bytes", int(what), bytes));
}

// Four algorithms, the first of which turns out to be unsupported.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  const std::lock_guard lock(mutex());
  *count = 0;
  const Product& p = as<Product>(product);
  const Preference& wanted = as<Preference>(preference);
  Sizes sizes;
  if (c != d) return broken("another layout for what is added");
  if (const std::string rule = rules(p, as<Matrix>(a), as<Matrix>(b), as<Matrix>(d), sizes); !rule.empty())
    return broken("request: " + rule);
  for (const uint32_t alignment : wanted.alignment)
    if (alignment == 0 || alignment > 16 || (alignment & (alignment - 1)) != 0)
      return broken(fmt::format("an alignment of {} bytes", alignment));
  // Sums without a fixed order would not be reproducible.
  if ((wanted.reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0) return broken("sums without an order are allowed");
  if (standin().refuses != nullptr && standin().refuses(sizes.m, sizes.n, sizes.k)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm algorithm = {.mark = Algorithm::kMark,
                         .request = static_cast<uint64_t>(++standin().requests),
                         .product = hash(p, as<Matrix>(a), as<Matrix>(b), as<Matrix>(d)),
                         .workspace = std::min<uint64_t>(wanted.workspace, 4096),
                         .alignment = {},
                         .bias_alignment = wanted_alignment(p.bias),
                         .aux_alignment = wanted_alignment(p.aux),
                         .rank = 0};
  for (int i = 0; i < 4; ++i) algorithm.alignment[i] = static_cast<uint8_t>(wanted.alignment[i]);
  for (int i = 0; i < std::min(most, 4); ++i) {
    results[i] = {};
    algorithm.rank = i;
    std::memcpy(&results[i].algo, &algorithm, sizeof algorithm);
    results[i].workspaceSize = algorithm.workspace;
    results[i].state = i == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    *count = i + 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() {
  return 130100;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  const std::lock_guard lock(mutex());
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (c != d) return broken("another layout for what is added");
  if (algorithm.mark != Algorithm::kMark ||
      algorithm.product != hash(as<Product>(product), as<Matrix>(a), as<Matrix>(b), as<Matrix>(d)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  result->algo = *algo, result->workspaceSize = algorithm.workspace, result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  if (handle != reinterpret_cast<cublasLtHandle_t>(&standin())) return broken("a handle of somebody else");
  auto work = std::make_unique<Work>();
  work->product = as<Product>(product);
  work->a = as<Matrix>(a_layout), work->b = as<Matrix>(b_layout), work->c = as<Matrix>(d_layout);
  const Product& p = work->product;
  if (const std::string rule = rules(p, work->a, work->b, work->c, work->sizes); !rule.empty()) return broken(rule);
  if (c_layout != d_layout) return broken("what is added lies otherwise than what is written");
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.mark != Algorithm::kMark) return broken("an algorithm that was not given");
  if (algorithm.product != hash(p, work->a, work->b, work->c)) return broken("the algorithm of another product");
  const void* const operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (operands[i] == nullptr || alignment_of(operands[i]) < algorithm.alignment[i])
      return broken(
          fmt::format("operand {} is not aligned to the {} bytes that were promised", i, algorithm.alignment[i]));
  if (p.has_bias() && alignment_of(p.bias) < algorithm.bias_alignment)
    return broken("the bias is less aligned than that of the request");
  if (p.has_aux() && alignment_of(p.aux) < algorithm.aux_alignment)
    return broken("the operand of the epilogue is less aligned than that of the request");
  if (workspace_bytes < algorithm.workspace) return broken("less workspace than the algorithm needs");
  if (workspace_bytes > 0 && (workspace == nullptr || alignment_of(workspace) < 16))
    return broken("no workspace there");
  if (stream == nullptr) return broken("the default stream");
  const auto factor = [&](const void* x) {
    return p.scale == CUDA_R_64F ? *static_cast<const double*>(x) : double{*static_cast<const float*>(x)};
  };
  work->alpha = factor(alpha), work->beta = factor(beta);
  work->first = static_cast<const std::byte*>(a), work->second = static_cast<const std::byte*>(b);
  work->result = static_cast<std::byte*>(d), work->added = static_cast<const std::byte*>(c);
  const bool measures = stream == standin().measuring;
  (measures ? standin().measured : standin().calls)
      .push_back({.m = work->sizes.m,
                  .n = work->sizes.n,
                  .k = work->sizes.k,
                  .first_step = work->a.step,
                  .second_step = work->b.step,
                  .result_step = work->c.step,
                  .first_transposed = p.first == CUBLAS_OP_T,
                  .second_transposed = p.second == CUBLAS_OP_T,
                  .type = work->a.type,
                  .result_type = work->c.type,
                  .batch = work->c.batch,
                  .bias = p.has_bias(),
                  .accumulate = work->beta != 0 && c == d,
                  .adds_other = work->beta != 0 && c != d,
                  .tf32 = p.tf32(),
                  .gelu = p.gelu(),
                  .gelu_gradient = p.gelu_gradient(),
                  .aux = p.has_aux() ? p.aux : nullptr,
                  .result = d,
                  .workspace = workspace,
                  .workspace_bytes = workspace_bytes,
                  .stream = stream,
                  .algorithm = algorithm.request,
                  .rank = algorithm.rank});
  if (measures) return CUBLAS_STATUS_SUCCESS;
  // Kept until the end: a captured call is replayed.
  standin().enqueue(stream, run, work.release());
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
