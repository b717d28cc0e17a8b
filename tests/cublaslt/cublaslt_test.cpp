// Matmuls by cuBLASLt on the emulated device, with the stand-in: each call obeys the library's rules, and results equal
// those without it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "kintsugi/base/file.h"
#include "kintsugi/device/emulate.h"
#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/gpu/cuda/algorithm_file.h"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/train/compare.h"
#include "kintsugi/train/random_samples.h"
#include "tests/cublaslt/measuring.h"
#include "tests/cublaslt/standin.h"
#include "tests/device_layouts.h"
#include "tests/process.h"

namespace kintsugi::tests::cublaslt_test {
namespace {

using cublaslt::Call;
using cublaslt::Standin;

void enqueue(void* stream, void (*work)(void*), void* context) {
  device::emulate::enqueue(*static_cast<device::Stream*>(stream), [=] { work(context); });
}

// Requested matmuls, and those done by the library, over all ranks, which are threads.
std::atomic<double> asked = 0, taken = 0;

bool counted_gemm(const gpu_emulated::Gemm& g, device::Stream& stream) {
  const bool done = gpu_emulated::cublaslt_gemm(g, stream);
  const double products = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) *
                          static_cast<double>(g.products());
  // Without the epilogue it is requested again.
  asked += done || !g.epilogue ? products : 0;
  taken += done ? products : 0;
  return done;
}

Standin& standin() {
  static Standin* const found = [] {
    ::setenv("KINTSUGI_CUDA_LIBRARIES", KINTSUGI_STANDINS, 1);
    ::setenv("KINTSUGI_PRODUCTS", "off", 0);
    void* library = ::dlopen(KINTSUGI_STANDINS "/libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    auto* get = reinterpret_cast<Standin* (*)()>(::dlsym(library, "kintsugi_cublaslt_standin"));
    get()->enqueue = enqueue;
    get()->measuring = &cublaslt::measuring_stream;
    return get();
  }();
  return *found;
}

// Wraps every test of this program, including those of the kernels.
class WithTheStandin : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    standin().calls.clear();
    standin().measured.clear();
    standin().broken.clear();
    standin().refuses = nullptr;
    asked = taken = 0;
    gpu_emulated::library_gemm = counted_gemm;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (std::string_view(test.test_suite_name()) == "CublasLtStandin") return;
    EXPECT_EQ(standin().broken, std::vector<std::string>{});
    if (std::string_view(test.test_suite_name()) == "Devices/RandomRuns") {
      EXPECT_GT(standin().calls.size(), 0u);
    }
  }
};

const bool added = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new WithTheStandin);
  return true;
}();

struct Case {
  std::string family, dtype, layout;
  bool refuses = false;
  int64_t ffn = 0;  // 0: as small models have it
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.dtype << " " << c.layout << (c.refuses ? " without odd sizes" : "");
  if (c.ffn > 0) *out << " ffn=" << c.ffn;
}

config::Settings settings_of(const Case& c) {
  config::Settings s = tests::settings_of({c.family, c.dtype, c.layout});
  if (c.ffn > 0) s.model.ffn = c.ffn;
  return s;
}

bool odd(int64_t m, int64_t n, int64_t k) {
  return (m | n | k) % 2 == 1;
}

class CublasLt : public testing::TestWithParam<Case> {};

TEST_P(CublasLt, Trains) {
  const auto& [family, dtype, layout, refuses, ffn] = GetParam();
  const config::Settings s = settings_of(GetParam());
  if (refuses) standin().refuses = odd;
  const train::RandomSamples samples(s);
  const double tolerance = (s.parallel.tf32 ? 2000 : 1) * train::default_tolerance(s);
  const train::Comparison c = train::compare(
      {.settings = s, .data = samples, .steps = 4, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);

  const std::vector<Call>& calls = standin().calls;
  EXPECT_GT(calls.size(), 0u);
  // The library does all of it, except biases of another dtype than the result.
  EXPECT_GT(taken, (refuses ? 0.1 : dtype == "fp32" ? 0.999 : 0.9) * asked);
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].workspace_bytes > 0, calls[i].workspace != nullptr);
    EXPECT_EQ(calls[i].tf32, s.parallel.tf32);
    EXPECT_LE(calls[i].workspace_bytes, static_cast<uint64_t>(gpu_emulated::kGemmWorkspace));
  }
}

// Algorithms are selected when programs are bound: no step or evaluation requests one.
TEST_P(CublasLt, ChoosesAlgorithmsOnceForAll) {
  const config::Settings s = settings_of(GetParam());
  if (GetParam().refuses) standin().refuses = odd;
  const int64_t before = standin().requests;
  train::LayoutRun run(s);
  const int64_t bound = standin().requests;
  EXPECT_TRUE(standin().calls.empty());
  EXPECT_TRUE(standin().measured.empty());  // where no file keeps them, the library's first is taken
  EXPECT_GE(bound, before);
  for (int64_t step = 0; step < 3; ++step)
    run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
  EXPECT_GT(standin().calls.size(), 0u);
  EXPECT_EQ(standin().requests, bound);
}

INSTANTIATE_TEST_SUITE_P(
    Models, CublasLt,
    testing::Values(Case{"gpt", "fp32", ""}, Case{"gpt", "bf16", ""}, Case{"gpt", "fp16", ""}, Case{"bert", "fp32", ""},
                    Case{"llama", "fp32", "recompute=full"}, Case{"gpt", "fp32", "", true},
                    Case{"llama", "bf16", "", true}, Case{"llama", "bf16", "data=2 zero=3"},
                    Case{"gpt", "bf16", "tensor=2 sequence_parallel"}, Case{"llama", "fp32", "pipe=2 data=2 tensor=2"},
                    Case{"gpt", "fp32", "pipe=2 schedule=zero_bubble"}, Case{"llama", "fp32", "context=2"},
                    Case{"llama", "fp32", "tf32"}, Case{"gpt", "fp32", "", false, 40},
                    Case{"gpt", "bf16", "", false, 40}, Case{"gpt", "bf16", "data=2 zero=1", false, 40},
                    Case{"gpt", "fp32", "tensor=2", false, 80}, Case{"gpt", "fp32", "recompute=full", false, 40},
                    Case{"gpt", "bf16", "sequence=32"}, Case{"gpt", "fp32", "sequence=32 data=2 zero=2"}));

// GELU is fused into the library's matmul where supported, and if the rows of its operand start at multiples of 8
// elements.
TEST(CublasLtProducts, DoGelu) {
  struct Expected {
    std::string activation;
    int64_t ffn = 0, kept = 0, gradients = 0;  // of a layer and micro-batch
  };
  for (const Expected& e : {Expected{"gelu_tanh", 40, 1, 1}, Expected{"gelu_tanh", 36, 0, 0},
                            Expected{"gelu", 40, 0, 0}, Expected{"silu", 40, 0, 0}}) {
    SCOPED_TRACE(e.activation + " " + std::to_string(e.ffn));
    config::Settings s = settings_of({"gpt", "bf16", "", false, e.ffn});
    s.model.activation = e.activation;
    standin().calls.clear();
    train::LayoutRun run(s);
    run.step(0, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, 0, m, batch); });
    int64_t kept = 0, gradients = 0;
    for (const Call& call : standin().calls) {
      kept += call.gelu, gradients += call.gelu_gradient;
      EXPECT_EQ(call.aux != nullptr, call.gelu || call.gelu_gradient);
      if (call.aux == nullptr) continue;
      EXPECT_EQ(call.m, e.ffn);
      EXPECT_EQ(call.bias, call.gelu);
    }
    const int64_t passes = s.model.layers * (s.train.global_batch / s.train.micro_batch);
    EXPECT_EQ(kept, e.kept * passes);
    EXPECT_EQ(gradients, e.gradients * passes);
  }
}

// fp64 matmuls use the library, with biases too, in full fp64: TF32 does not apply. An activation is not fused; only
// the matmul is.
TEST(CublasLtProducts, InFp64) {
  constexpr int kFp64 = 1;  // CUDA_R_64F
  using kernels::test::device_under_test;
  constexpr int64_t kM = 5, kN = 9, kK = 40;
  const auto memory = device_under_test().allocate(1 << 16);
  const auto stream = device_under_test().stream();
  const auto at = [&](int64_t matrix) { return reinterpret_cast<double*>(memory->data()) + matrix * 1024; };
  for (int64_t i = 0; i < kM * kK; ++i) at(0)[i] = 1.0 / static_cast<double>(3 + i);
  for (int64_t i = 0; i < kK * kN; ++i) at(1)[i] = 1.0 / static_cast<double>(7 + i);
  for (int64_t i = 0; i < kN; ++i) at(3)[i] = static_cast<double>(i) / 3;
  for (const bool biased : {false, true})
    for (const bool accumulate : {false, true})
      for (const bool activation : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", biased, accumulate, activation));
        standin().calls.clear();
        std::fill_n(at(2), kM * kN, 0.7);
        const gpu_emulated::Gemm g = {
            .m = kM,
            .n = kN,
            .k = kK,
            .dtype = tensor::DType::f64,
            .c_dtype = tensor::DType::f64,
            .tf32 = true,
            .a = {at(0), kK},
            .b = {at(1), kN},
            .c = at(2),
            .c_step = kN,
            .accumulate = accumulate,
            .bias = biased ? at(3) : nullptr,
            .bias_dtype = tensor::DType::f64,
            .bias_column = 1,
            .epilogue = {activation ? gpu_emulated::GemmFunction::gelu_tanh : gpu_emulated::GemmFunction::none, false,
                         at(2), at(4)}};
        EXPECT_EQ(gpu_emulated::gemm(g, *stream), !activation);
        stream->synchronize();
        ASSERT_EQ(standin().calls.size(), 1u);
        const Call& call = standin().calls[0];
        EXPECT_EQ(call.type, kFp64);
        EXPECT_EQ(call.result_type, kFp64);
        EXPECT_EQ(call.bias, biased);
        EXPECT_EQ(call.accumulate, accumulate);
        EXPECT_FALSE(call.tf32 || call.gelu);
        for (int64_t row = 0; row < kM; ++row)
          for (int64_t column = 0; column < kN; ++column) {
            double want = (accumulate ? 0.7 : 0) + (biased ? at(3)[column] : 0);
            for (int64_t k = 0; k < kK; ++k) want += at(0)[row * kK + k] * at(1)[k * kN + column];
            EXPECT_NEAR(at(2)[row * kN + column], want, 1e-14);
          }
      }
}

// The same matmul with differently aligned biases: an algorithm selected for one may require alignment that the other
// lacks.
TEST(CublasLtProducts, OfDifferentlyAlignedBiases) {
  using kernels::test::device_under_test;
  constexpr int64_t kSize = 16;
  const auto memory = device_under_test().allocate(4 * kSize * kSize * 4);
  const auto stream = device_under_test().stream();
  const auto at = [&](int64_t matrix, int64_t shift) { return memory->data() + matrix * kSize * kSize * 4 + shift; };
  for (const int64_t shift : {0, 4, 8}) {
    const gpu_emulated::Gemm g = {.m = kSize,
                                  .n = kSize,
                                  .k = kSize,
                                  .a = {at(0, 0), kSize},
                                  .b = {at(1, 0), kSize},
                                  .c = at(2, 0),
                                  .c_step = kSize,
                                  .bias = at(3, shift),
                                  .bias_column = 1};
    gpu_emulated::gemm(g, *stream);
  }
  stream->synchronize();
  EXPECT_EQ(standin().calls.size(), 3u);
}

// If two processes select concurrently, both use the first entry of the file.
TEST(CublasLtAlgorithms, AreThoseOfTheFirst) {
  const TemporaryFolder folder;
  kernels::AlgorithmFile one(folder.path() / "products"), other(folder.path() / "products");
  one.add("8 x 8", "first", 5);
  other.add("8 x 8", "other", 5);
  for (const kernels::AlgorithmFile* file : {&one, &other}) {
    char found[6] = {};
    EXPECT_TRUE(file->find("8 x 8", found, 5));
    EXPECT_STREQ(found, "first");
  }
}

// A product of square matrices in 64 KiB.
gpu_emulated::Gemm square(int64_t size, std::byte* memory) {
  return {.m = size,
          .n = size,
          .k = size,
          .a = {memory, size},
          .b = {memory + 4096, size},
          .c = memory + 8192,
          .c_step = size};
}

// A program with the file. Measured selections made when binding are reused; for other matmuls the library's first
// algorithm is used and not stored.
TEST(CublasLtAlgorithms, AreMeasured) {
  using kernels::test::device_under_test;
  const auto ranks = [](const std::vector<Call>& calls) {
    std::vector<int> found;
    for (const Call& call : calls) found.push_back(call.rank);
    return found;
  };
  if (std::getenv("KINTSUGI_TEST_PRODUCT") != nullptr) {  // the program below
    const std::string_view what = std::getenv("KINTSUGI_TEST_PRODUCT");
    const auto memory = device_under_test().allocate(1 << 16);
    const auto stream = device_under_test().stream();
    device::NoStream nothing(true);
    const gpu_emulated::Gemm g = square(8, memory->data());
    if (what != "unbound") gpu_emulated::gemm(g, nothing);
    std::set<int> measured;
    for (const Call& call : standin().measured) measured.insert(call.rank);
    EXPECT_EQ(measured, what == "bound" ? std::set<int>({1, 2, 3}) : std::set<int>());
    gpu_emulated::gemm(g, *stream);
    stream->synchronize();
    EXPECT_EQ(ranks(standin().calls), std::vector<int>{what == "unbound" ? 1 : 2});
    return;
  }
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "products";
  for (const std::string what : {"unbound", "bound", "known"}) {
    EXPECT_EQ(std::system(fmt::format("KINTSUGI_PRODUCTS={} KINTSUGI_TEST_PRODUCT={} {} "
                                      "--gtest_filter=CublasLtAlgorithms.AreMeasured >/dev/null",
                                      file.string(), what, std::filesystem::read_symlink("/proc/self/exe").string())
                              .c_str()),
              0)
        << what;
    EXPECT_EQ(std::filesystem::exists(file), what != "unbound");
  }
}

// A kernel that hangs ends the run with an error.
TEST(CublasLtAlgorithms, ThatHang) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryFolder folder;
  ::setenv("KINTSUGI_PRODUCTS", (folder / "products").c_str(), 1);
  const auto memory = kernels::test::device_under_test().allocate(1 << 16);
  device::NoStream nothing(true);
  EXPECT_EXIT(
      {
        standin();
        cublaslt::hang_when_measured();
        gpu_emulated::cublaslt_gemm(square(8, memory->data()), nothing);
      },
      testing::KilledBySignal(SIGTERM),
      "\\[gemm\\] rank 0: measuring algorithm 1 of 3 of cublasLt .*: 8 x 8 x 8, .* did not end within 0.2 s; with "
      "KINTSUGI_PRODUCTS=off nothing is measured");
  ::setenv("KINTSUGI_PRODUCTS", "off", 1);
}

// A program with the file, which reports the number of algorithms that it requested.
TEST(CublasLtAlgorithms, AreKeptInAFile) {
  using kernels::test::device_under_test;
  if (std::getenv("KINTSUGI_TEST_REQUESTS") != nullptr) {  // the program below
    const auto memory = device_under_test().allocate(1 << 16);
    const auto stream = device_under_test().stream();
    device::NoStream nothing(true);
    for (const int64_t size : {8, 16, 8}) {
      const gpu_emulated::Gemm g = square(size, memory->data());
      gpu_emulated::gemm(g, nothing);
      gpu_emulated::gemm(g, *stream);
    }
    stream->synchronize();
    EXPECT_EQ(standin().calls.size(), 3u);
    EXPECT_EQ(std::to_string(standin().requests), std::getenv("KINTSUGI_TEST_REQUESTS"));
    return;
  }
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "new" / "products";
  const auto asks_for = [&](int requests) {
    return std::system(fmt::format("KINTSUGI_PRODUCTS={} KINTSUGI_TEST_REQUESTS={} {} "
                                   "--gtest_filter=CublasLtAlgorithms.AreKeptInAFile >/dev/null",
                                   file.string(), requests, std::filesystem::read_symlink("/proc/self/exe").string())
                           .c_str());
  };
  EXPECT_EQ(asks_for(2), 0);
  const std::string kept = base::read_file(file);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 2) << kept;
  EXPECT_TRUE(
      kept.starts_with("cublasLt 130100 on 9.9 x 9: 8 x 8 x 8, a 8 b 8 c 8, fp32 fp32, 1 times 0 0 0 0, aligned 16 "
                       "16 16 0, 0 bytes = "))
      << kept;
  EXPECT_EQ(asks_for(0), 0);
  // Entries that are damaged, or of another library version, are selected again.
  std::string damaged = kept;
  damaged[damaged.find(" = ") + 4] = 'x';
  base::write_file_atomically(file, damaged);
  EXPECT_EQ(asks_for(1), 0);
  damaged = kept;
  damaged[damaged.find(" = ") + 3] ^= 1;
  base::write_file_atomically(file, damaged);
  EXPECT_EQ(asks_for(1), 0);
}

// The stand-in detects violations.
TEST(CublasLtStandin, SeesABrokenRule) {
  using kernels::test::device_under_test;
  const auto memory = device_under_test().allocate(1 << 16);
  const auto stream = device_under_test().stream();
  gpu_emulated::Gemm g = {.m = 8,
                          .n = 8,
                          .k = 8,
                          .a = {memory->data(), 8},
                          .b = {memory->data() + 4096, 7},  // rows that overlap
                          .c = memory->data() + 8192,
                          .c_step = 8};
  EXPECT_TRUE(standin().broken.empty());
  gpu_emulated::gemm(g, *stream);  // by our own kernel
  EXPECT_TRUE(standin().calls.empty());
  ASSERT_EQ(standin().broken.size(), 1u);
  EXPECT_EQ(standin().broken[0], "request: a leading dimension of 7 for 8 rows");
}

}  // namespace
}  // namespace kintsugi::tests::cublaslt_test

// The third algorithm is the fastest; the second and fourth are equally slow.
float kintsugi::tests::cublaslt::measured_milliseconds() {
  return cublaslt_test::standin().measured.back().rank == 2 ? 0.01f : 0.02f;
}
