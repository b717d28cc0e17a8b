// Matrix products by NVIDIA cuBLASLt, loaded on first use; optional.
//
// The library is column-major. A row-major matrix with row stride `step` is, to the library, the transpose with that
// leading dimension. So c = a b is requested as c^T = b^T a^T: its first operand is our b, its second our a, its m our
// n, and a bias along its rows is ours along the columns.
#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/shared_library.h"
#include "kintsugi/base/watchdog.h"
#include "kintsugi/kernels/gpu/cuda/algorithm_file.h"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using tensor::DType;

// The functions of the library that are used.
struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) check = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
};

// Null if the library is missing.
const Library* library() {
  static const std::unique_ptr<Library> found = []() -> std::unique_ptr<Library> {
    const char* const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    base::VendorLibrary opened(names);
    if (!opened) return nullptr;
    auto l = std::make_unique<Library>();
    opened.find("cublasLtCreate", l->create);
    opened.find("cublasLtMatmul", l->matmul);
    opened.find("cublasLtMatmulDescCreate", l->desc_create);
    opened.find("cublasLtMatmulDescDestroy", l->desc_destroy);
    opened.find("cublasLtMatmulDescSetAttribute", l->desc_set);
    opened.find("cublasLtMatrixLayoutCreate", l->layout_create);
    opened.find("cublasLtMatrixLayoutDestroy", l->layout_destroy);
    opened.find("cublasLtMatrixLayoutSetAttribute", l->layout_set);
    opened.find("cublasLtMatmulPreferenceCreate", l->preference_create);
    opened.find("cublasLtMatmulPreferenceDestroy", l->preference_destroy);
    opened.find("cublasLtMatmulPreferenceSetAttribute", l->preference_set);
    opened.find("cublasLtMatmulAlgoGetHeuristic", l->heuristic);
    opened.find("cublasLtMatmulAlgoCheck", l->check);
    opened.find("cublasLtGetVersion", l->version);
    return opened.found_all() ? std::move(l) : nullptr;
  }();
  return found.get();
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw base::InternalError("gemm", "cuBLASLt: {}: status {}", what, static_cast<int>(status));
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      throw base::InternalError("gemm", "a product of {}", name_of(dtype));
  }
}

// Accumulation type; fp64 has only one.
cublasComputeType_t compute_of(DType dtype, bool tf32) {
  return dtype == DType::f64 ? CUBLAS_COMPUTE_64F : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}
// Type of the scale factors alpha and beta, in host memory.
cudaDataType_t scale_of(DType dtype) {
  return dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
}

// The fixed parameters of a product; products that differ only in addresses use the same algorithm.
struct Key {
  int device;
  int64_t m, n, k, a_step, b_step, c_step;
  bool a_transposed, b_transposed, accumulate, has_bias, has_added, tf32;
  DType dtype, c_dtype, bias_dtype;
  int64_t batch, a_apart, b_apart, c_apart, bias_apart;
  int a_alignment, b_alignment, c_alignment, bias_alignment, x_alignment, added_alignment;
  cublasLtEpilogue_t epilogue;
  int64_t workspace;

  bool has_x() const { return (epilogue & CUBLASLT_EPILOGUE_GELU_AUX & ~CUBLASLT_EPILOGUE_GELU) != 0; }

  auto operator<=>(const Key&) const = default;
};

// Everything on which the library's selection depends. All devices of a machine share the file.
std::string text_of(const Library& l, const Key& k) {
  int major = 0, minor = 0, processors = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, k.device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, k.device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, k.device);
  const std::string activation =
      (k.epilogue & ~CUBLASLT_EPILOGUE_BIAS) <= CUBLASLT_EPILOGUE_DEFAULT
          ? ""
          : fmt::format(", epilogue {} aligned {}", static_cast<int>(k.epilogue), k.x_alignment);
  return fmt::format(
      "cublasLt {} on {}.{} x {}: {} x {} x {}, a {}{} b {}{} c {}{}{}, {} {}{}{}, {} times {} {} {} {}, aligned {} {} "
      "{} "
      "{}{}{}, {} bytes",
      l.version(), major, minor, processors, k.m, k.n, k.k, k.a_step, k.a_transposed ? "T" : "", k.b_step,
      k.b_transposed ? "T" : "", k.c_step, k.accumulate ? "+" : "", k.has_bias ? " bias" : "", name_of(k.dtype),
      name_of(k.c_dtype), k.has_bias ? fmt::format(" {}", name_of(k.bias_dtype)) : "", k.tf32 ? " tf32" : "", k.batch,
      k.a_apart, k.b_apart, k.c_apart, k.bias_apart, k.a_alignment, k.b_alignment, k.c_alignment, k.bias_alignment,
      activation, k.has_added ? fmt::format(", added aligned {}", k.added_alignment) : "", k.workspace);
}

// The library supports GELU only in tanh form, with an 11-bit tanh (7e-5 off in fp32 on an H100), suitable for results
// of no higher precision; and for fp64 only a bias. The input x of GELU is stored to a separate operand, and read from
// there for the gradient.
std::optional<cublasLtEpilogue_t> epilogue_of(const Gemm& g) {
  const bool biased = g.bias != nullptr;
  if (!g.epilogue) return biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  const bool exact = g.dtype == DType::f64 || (g.c_dtype == DType::f32 && !g.tf32);
  if (g.epilogue.function != GemmFunction::gelu_tanh || g.accumulate || exact) return std::nullopt;
  if (g.epilogue.slope) return biased ? std::nullopt : std::optional(CUBLASLT_EPILOGUE_DGELU);
  if (g.epilogue.keeps()) return biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

// Alignment in bytes of an operand in every product, up to 16: more enables no further algorithms.
int alignment_of(const Gemm& g, const void* data, int64_t GemmBatch::*apart, DType dtype) {
  auto at = reinterpret_cast<uintptr_t>(data) | 16u;
  for (int i = 0; i < g.num_batch; ++i)
    at |= static_cast<uintptr_t>(g.batch[static_cast<size_t>(i)].*apart * tensor::size_of(dtype));
  return static_cast<int>(at & (~at + 1));
}

// A product with its algorithm. Lives until the program ends.
struct Planned {
  bool possible = false;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

// The addresses of a product, in the library's order, for one call.
struct Operands {
  const void *first = nullptr, *second = nullptr;
  void *result = nullptr, *workspace = nullptr;
  const void* bias = nullptr;
  const void* x = nullptr;      // epilogue operand
  const void* added = nullptr;  // null: the old result
};

template <typename T>
void set(const Library& l, cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, const T& value) {
  check(l.desc_set(desc, what, &value, sizeof(value)), "a setting of a product");
}

// Sets the addresses that are part of a descriptor.
void point(const Library& l, const Key& key, const Planned& p, const Operands& o) {
  if (key.has_bias) set(l, p.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
  if (key.has_x()) set(l, p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.x);
}

cublasStatus_t multiply(const Library& l, cublasLtHandle_t handle, const Key& key, const Planned& p,
                        const cublasLtMatmulAlgo_t& algorithm, const Operands& o, cudaStream_t stream) {
  static constexpr float kOne = 1, kZero = 0;
  static constexpr double kWideOne = 1, kWideZero = 0;
  const bool wide = scale_of(key.dtype) == CUDA_R_64F;
  const void* const by_one = wide ? static_cast<const void*>(&kWideOne) : &kOne;
  const void* const by_zero = wide ? static_cast<const void*>(&kWideZero) : &kZero;
  point(l, key, p, o);
  return l.matmul(handle, p.desc, by_one, o.first, p.first, o.second, p.second,
                  key.accumulate || key.has_added ? by_one : by_zero, o.added != nullptr ? o.added : o.result, p.result,
                  o.result, p.result, &algorithm, o.workspace, static_cast<size_t>(key.workspace), stream);
}

// A stream with event timing.
class Clock {
 public:
  Clock() {
    good_ = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess &&
            cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess;
  }
  ~Clock() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  // Time per call, of several enqueued together; infinity if one fails.
  template <typename F>
  double seconds(int times, const F& enqueue) {
    float milliseconds = 0;
    bool good = good_ && cudaEventRecord(begin_, stream_) == cudaSuccess;
    for (int i = 0; i < times && good; ++i) good = enqueue(stream_) == CUBLAS_STATUS_SUCCESS;
    good = good && cudaEventRecord(end_, stream_) == cudaSuccess && cudaEventSynchronize(end_) == cudaSuccess &&
           cudaEventElapsedTime(&milliseconds, begin_, end_) == cudaSuccess;
    return good ? 1e-3 * static_cast<double>(milliseconds) / times : std::numeric_limits<double>::infinity();
  }

 private:
  bool good_ = false;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Limit on a measurement, whatever the product; a kernel that hangs would end the run silently. Tests use less.
std::chrono::milliseconds patience{60'000};

// Includes the time of the slowest supported device.
std::chrono::milliseconds time_limit(const Key& key, int times) {
  constexpr double kMultiplications = 1e7;  // per millisecond
  const double of_one = static_cast<double>(key.m) * static_cast<double>(key.n) * static_cast<double>(key.k) *
                        static_cast<double>(key.batch) / kMultiplications;
  return patience + std::chrono::milliseconds(static_cast<int64_t>(times * of_one));
}

// Selects the fastest algorithm by the device's clock, with the operands in place; overwrites the result. The first
// round warms up. Among equally fast ones, selects the one that the library ranked first.
size_t fastest(const Library& l, cublasLtHandle_t handle, const Key& key, const Planned& p,
               std::span<const cublasLtMatmulAlgo_t* const> algorithms, const Operands& operands) {
  constexpr double kSome = 3e-4;  // seconds per measurement
  constexpr double kAsLong = 1.01;
  Clock clock;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> best(algorithms.size(), kNever);
  int times = 1;
  for (int round = 0; round < 3; ++round) {
    double shortest = kNever;
    for (size_t i = 0; i < algorithms.size(); ++i) {
      const base::Watchdog watchdog(
          "gemm", launch::this_process().rank,
          fmt::format("measuring algorithm {} of {} of {}", i + 1, algorithms.size(), text_of(l, key)),
          "; with KINTSUGI_PRODUCTS=off nothing is measured, and each product takes the library's first choice",
          time_limit(key, times));
      const double seconds = clock.seconds(
          times, [&](cudaStream_t stream) { return multiply(l, handle, key, p, *algorithms[i], operands, stream); });
      shortest = std::min(shortest, seconds);
      if (round > 0) best[i] = std::min(best[i], seconds);
    }
    times = static_cast<int>(std::clamp(kSome / shortest, 1.0, 10.0));
  }
  const double most = kAsLong * *std::min_element(best.begin(), best.end());
  const auto found = std::find_if(best.begin(), best.end(), [&](double s) { return s <= most; });
  return static_cast<size_t>(found - best.begin());
}

cublasLtMatrixLayout_t layout(const Library& l, DType dtype, int64_t rows, int64_t columns, int64_t step, int64_t batch,
                              int64_t apart) {
  cublasLtMatrixLayout_t made = nullptr;
  check(l.layout_create(&made, type_of(dtype), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), step),
        "a matrix");
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    check(l.layout_set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)), "several matrices");
    check(l.layout_set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof(apart)), "several matrices");
  }
  return made;
}

// `measures`: the result may be overwritten.
Planned plan(const Library& l, cublasLtHandle_t handle, const Key& key, const Operands& operands, bool measures,
             kernels::AlgorithmFile& file) {
  Planned p;
  check(l.desc_create(&p.desc, compute_of(key.dtype, key.tf32), scale_of(key.dtype)), "a product");
  set(l, p.desc, CUBLASLT_MATMUL_DESC_TRANSA, key.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(l, p.desc, CUBLASLT_MATMUL_DESC_TRANSB, key.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (key.epilogue != CUBLASLT_EPILOGUE_DEFAULT) set(l, p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, key.epilogue);
  if (key.has_x()) {
    set(l, p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, key.c_step);
    if (key.batch > 1) set(l, p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, key.c_apart);
  }
  if (key.has_bias) {
    set(l, p.desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(key.bias_dtype));
    if (key.batch > 1) set(l, p.desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, key.bias_apart);
  }
  point(l, key, p, operands);
  // As stored: b [k n] row-major is [n k] column-major, b^T's [n k] is [k n]; same for a.
  const int64_t m = key.m, n = key.n, k = key.k;
  p.first =
      layout(l, key.dtype, key.b_transposed ? k : n, key.b_transposed ? n : k, key.b_step, key.batch, key.b_apart);
  p.second =
      layout(l, key.dtype, key.a_transposed ? m : k, key.a_transposed ? k : m, key.a_step, key.batch, key.a_apart);
  p.result = layout(l, key.c_dtype, n, m, key.c_step, key.batch, key.c_apart);

  if (file.find(text_of(l, key), &p.algorithm, sizeof p.algorithm)) {
    cublasLtMatmulHeuristicResult_t known = {};
    p.possible =
        l.check(handle, p.desc, p.first, p.second, p.result, p.result, &p.algorithm, &known) == CUBLAS_STATUS_SUCCESS &&
        known.workspaceSize <= static_cast<size_t>(key.workspace);
    if (p.possible) return p;
  }
  cublasLtMatmulPreference_t preference = nullptr;
  check(l.preference_create(&preference), "a preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    check(l.preference_set(preference, what, &value, sizeof(value)), "a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(key.workspace));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(key.b_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(key.a_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
         static_cast<uint32_t>(key.has_added ? key.added_alignment : key.c_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(key.c_alignment));
  // With split k, parts are added in the accumulation type, in one order.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  constexpr int kMost = 8;
  cublasLtMatmulHeuristicResult_t found[kMost] = {};
  int count = 0;
  const cublasStatus_t status =
      l.heuristic(handle, p.desc, p.first, p.second, p.result, p.result, preference, kMost, found, &count);
  l.preference_destroy(preference);
  std::vector<const cublasLtMatmulAlgo_t*> possible;
  if (status == CUBLAS_STATUS_SUCCESS)
    for (int i = 0; i < count; ++i)
      if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= static_cast<size_t>(key.workspace))
        possible.push_back(&found[i].algo);
  p.possible = !possible.empty();
  if (!p.possible) return p;
  p.algorithm = *possible[measures ? fastest(l, handle, key, p, possible, operands) : 0];
  return p;
}

// Library handles by device number, and planned products. Used by one thread at a time, since a descriptor also holds
// the address of the bias.
struct Plans {
  std::mutex mutex;
  std::map<int, cublasLtHandle_t> handles;
  std::map<Key, Planned> products;
  kernels::AlgorithmFile file{kernels::AlgorithmFile::default_path()};
};

Plans& plans() {
  static auto* all = new Plans();  // never destroyed: threads that use descriptors may outlive static values
  return *all;
}

// Maximum number of calls for batch dims beyond the library's; more use our own kernel.
constexpr int64_t kMostCalls = 64;

const std::byte* offset(const void* data, int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(data) + elements * tensor::size_of(dtype);
}

// The request to the library, including its longest batch dim; nothing if unsupported.
std::optional<Key> key_of(const Gemm& g, const GemmBatch& batch) {
  constexpr int64_t kMostSize = int64_t{1} << 31;
  if (g.m == 0 || g.n == 0 || g.k == 0 || g.m >= kMostSize || g.n >= kMostSize || g.k >= kMostSize) return std::nullopt;
  if (batch.size >= kMostSize) return std::nullopt;
  // Bias along the columns, or of a single row.
  if (g.bias != nullptr && ((g.n > 1 && g.bias_column != 1) || (g.m > 1 && g.bias_row != 0))) return std::nullopt;
  // In 16 bits both would be rounded, one after the other.
  if (g.bias != nullptr && g.accumulate && tensor::size_of(g.c_dtype) == 2) return std::nullopt;
  if (g.bias != nullptr && g.bias_dtype != g.c_dtype) return std::nullopt;  // required by the library
  const std::optional<cublasLtEpilogue_t> epilogue = epilogue_of(g);
  if (!epilogue) return std::nullopt;
  Key key = {.device = 0,
             .m = g.m,
             .n = g.n,
             .k = g.k,
             .a_step = g.a.step,
             .b_step = g.b.step,
             .c_step = g.c_step,
             .a_transposed = g.a.transposed,
             .b_transposed = g.b.transposed,
             .accumulate = g.accumulate,
             .has_bias = g.bias != nullptr,
             .has_added = g.added != nullptr,
             .tf32 = g.tf32 && g.dtype == DType::f32,
             .dtype = g.dtype,
             .c_dtype = g.c_dtype,
             .bias_dtype = g.bias_dtype,
             .batch = batch.size,
             .a_apart = batch.a,
             .b_apart = batch.b,
             .c_apart = batch.c,
             .bias_apart = batch.bias,
             .a_alignment = alignment_of(g, g.a.data, &GemmBatch::a, g.dtype),
             .b_alignment = alignment_of(g, g.b.data, &GemmBatch::b, g.dtype),
             .c_alignment = alignment_of(g, g.epilogue ? g.epilogue.y : g.c, &GemmBatch::c, g.c_dtype),
             .bias_alignment = g.bias == nullptr ? 0 : alignment_of(g, g.bias, &GemmBatch::bias, g.bias_dtype),
             .x_alignment = 0,
             .added_alignment = g.added == nullptr ? 0 : alignment_of(g, g.added, &GemmBatch::c, g.c_dtype),
             .epilogue = *epilogue,
             .workspace = g.workspace_bytes};
  constexpr int kRun = 8;  // alignment of the rows of x in elements
  if (key.has_x()) {
    if (key.c_step % kRun != 0 || (key.batch > 1 && key.c_apart % kRun != 0)) return std::nullopt;
    key.x_alignment = alignment_of(g, g.epilogue.x, &GemmBatch::c, g.c_dtype);
  }
  if (cudaGetDevice(&key.device) != cudaSuccess) return std::nullopt;
  return key;
}

const Planned& planned(Plans& all, const Library& l, cublasLtHandle_t handle, const Key& key, const Operands& operands,
                       bool measures) {
  if (const auto found = all.products.find(key); found != all.products.end()) return found->second;
  const std::string text = text_of(l, key);
  const bool known = all.file.knows(text);
  Planned p = plan(l, handle, key, operands, measures && !known, all.file);
  if (!known && measures && p.possible) {
    all.file.add(text, &p.algorithm, sizeof p.algorithm);
    p.possible = all.file.find(text, &p.algorithm, sizeof p.algorithm);  // the selection of the first process
  }
  return all.products.emplace(key, p).first->second;
}

}  // namespace

bool cublaslt_gemm(const Gemm& g, device::Stream& stream) {
  const Library* l = library();
  if (l == nullptr) return false;
  // The longest batch dim is passed to the library; the others are loops.
  int inner = -1;
  for (int i = 0; i < g.num_batch; ++i)
    if (inner < 0 || g.batch[static_cast<size_t>(i)].size > g.batch[static_cast<size_t>(inner)].size) inner = i;
  const GemmBatch batch = inner < 0 ? GemmBatch() : g.batch[static_cast<size_t>(inner)];
  const std::optional<Key> key = key_of(g, batch);
  const int64_t calls = g.products() / batch.size;
  if (!key || calls > kMostCalls) return false;

  Plans& all = plans();
  const std::lock_guard lock(all.mutex);
  cublasLtHandle_t& handle = all.handles[key->device];
  if (handle == nullptr) check(l->create(&handle), "a handle");
  // The operands of a call, with these offsets in elements.
  const auto operands = [&](int64_t a, int64_t b, int64_t c, int64_t bias) -> Operands {
    const void* const y = g.epilogue ? g.epilogue.y : g.c;
    return {.first = offset(g.b.data, b, g.dtype),
            .second = offset(g.a.data, a, g.dtype),
            .result = const_cast<std::byte*>(offset(y, c, g.c_dtype)),
            .workspace = g.workspace,
            .bias = g.bias == nullptr ? nullptr : offset(g.bias, bias, g.bias_dtype),
            .x = key->has_x() ? offset(g.epilogue.x, c, g.c_dtype) : nullptr,
            .added = g.added == nullptr ? nullptr : offset(g.added, c, g.c_dtype)};
  };
  const bool measures = stream.measures() && all.file.keeps();
  const Planned& p = planned(all, *l, handle, *key, operands(0, 0, 0, 0), measures);
  if (!p.possible) return false;
  if (!stream.enqueues()) return true;
  for (int64_t call = 0; call < calls; ++call) {
    int64_t a = 0, b = 0, c = 0, bias = 0, left = call;
    for (int i = 0; i < g.num_batch; ++i) {
      if (i == inner) continue;
      const GemmBatch& d = g.batch[static_cast<size_t>(i)];
      const int64_t at = left % d.size;
      left /= d.size;
      a += at * d.a, b += at * d.b, c += at * d.c, bias += at * d.bias;
    }
    check(
        multiply(*l, handle, *key, p, p.algorithm, operands(a, b, c, bias), static_cast<cudaStream_t>(stream.native())),
        "a product");
  }
  return true;
}

}  // namespace kintsugi::KINTSUGI_GPU
