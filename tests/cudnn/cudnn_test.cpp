// Attention by cuDNN on the emulated device, with the stand-in: each graph obeys the library's rules, and results equal
// those without it. The same holds for the tests of convolutions in this program.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>

#include "kintsugi/device/emulate.h"
#include "kintsugi/kernels/gpu/attention_cases_test.h"
#include "kintsugi/kernels/gpu/attention_library.h"
#include "kintsugi/kernels/gpu/convolution.h"
#include "kintsugi/train/compare.h"
#include "kintsugi/train/random_samples.h"
#include "tests/cudnn/standin_test.h"
#include "tests/device_layouts.h"

namespace kintsugi::gpu_emulated {
extern kernels::AttentionByLibrary attention_by_library;
}

namespace kintsugi::tests::cudnn {
namespace {

void enqueue(void* stream, void (*work)(void*), void* context) {
  device::emulate::enqueue(*static_cast<device::Stream*>(stream), [=] { work(context); });
}

}  // namespace

Standin& standin() {
  static Standin* const found = [] {
    ::setenv("KINTSUGI_CUDA_LIBRARIES", KINTSUGI_STANDINS, 1);
    void* library = ::dlopen(KINTSUGI_STANDINS "/libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    auto* get = reinterpret_cast<Standin* (*)()>(::dlsym(library, "kintsugi_cudnn_standin"));
    get()->enqueue = enqueue;
    return get();
  }();
  return *found;
}

}  // namespace kintsugi::tests::cudnn

namespace kintsugi::tests::cudnn_test {
namespace {

using cudnn::Call;
using cudnn::standin;

// Requested calls, and those done by the library, over all ranks, which are threads.
std::atomic<int64_t> asked = 0, taken = 0;

bool counted(const kernels::LibraryAttention& a, device::Stream& stream) {
  const bool done = kernels::cudnn_attention(a, stream);
  asked += stream.enqueues(), taken += done && stream.enqueues();
  return done;
}

// Wraps every test of this program, including those of the kernels.
class WithTheStandin : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    standin().calls.clear();
    standin().broken.clear();
    asked = taken = 0;
    gpu_emulated::attention_by_library = counted;
    gpu_emulated::convolution_by_library = kernels::cudnn_convolution;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    EXPECT_EQ(standin().broken, std::vector<std::string>{});
    // Kernel tests, except those of what the library does not have.
    bool plain = std::string_view(test.test_suite_name()) == "OnDevice";
    for (const std::string_view other : {"Extras", "Few", "Single", "Halos", "Nothing", "Mixed", "Parts"})
      plain &= std::string_view(test.name()).find(other) == std::string_view::npos;
    if (plain || std::string_view(test.test_suite_name()) == "Devices/RandomRuns") {
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
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.dtype << " " << c.layout;
}

config::Settings settings_of(const Case& c) {
  config::Settings s = tests::settings_of({c.family, c.dtype, c.layout});
  s.model.embed = 32, s.model.head_dim = 8;  // the library has multiples of 8 alone
  s.model.dropout = 0;
  return s;
}

class Cudnn : public testing::TestWithParam<Case> {};

TEST_P(Cudnn, Trains) {
  const config::Settings s = settings_of(GetParam());
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  const train::Comparison c = train::compare(
      {.settings = s, .data = samples, .steps = 3, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);
  EXPECT_GT(taken, 0);
  EXPECT_EQ(taken, asked);
  for (const Call& call : standin().calls) {
    EXPECT_NE(call.stream, nullptr);
    EXPECT_NE(call.workspace, nullptr);
    EXPECT_EQ(call.products, call.tensors.size() == 5 ? 2 : 5);
    // Heads are adjacent, then positions; row statistics are fp32.
    for (const cudnn::Tensor& tensor : call.tensors)
      EXPECT_TRUE(tensor.sizes[3] == 1 || tensor.strides[3] == 1 || tensor.strides[2] == 1) << tensor.name;
  }
}

// Graphs are built when programs are bound, never in a step.
TEST_P(Cudnn, PlansOnceForAll) {
  const config::Settings s = settings_of(GetParam());
  train::LayoutRun run(s);
  const int64_t bound = standin().plans;
  EXPECT_TRUE(standin().calls.empty());
  for (int64_t step = 0; step < 2; ++step)
    run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
  EXPECT_GT(standin().calls.size(), 0u);
  EXPECT_EQ(standin().plans, bound);
}

// A gradient whose scores exceed the workspace is computed in several calls, over samples or heads.
TEST(CudnnShares, OfSamplesAndHeads) {
  using namespace kernels::test::attention_cases;
  const kernels::test::attention_cases::Case c = {"several", 4, 136, 136, 3, 2, 16};
  const int64_t head = kernels::library_scores(2, 136), whole = kernels::most_library_scores;
  struct Expected {
    int64_t most, calls;
  };
  for (const auto& [most, calls] : {Expected{12 * head, 1},
                                    {11 * head, 2},
                                    {6 * head, 2},
                                    {5 * head, 4},
                                    {3 * head, 4},
                                    {2 * head, 8},
                                    {head, 12},
                                    {head - 1, 0}}) {
    kernels::most_library_scores = most;
    for (const bool columns : {false, true}) {
      standin().calls.clear();
      if (columns) {
        check_gradient_in_columns(c, tensor::DType::bf16, true, {});
      } else {
        check_gradient(c, tensor::DType::bf16, true, {});
      }
      // With warps of 32 and 64; operands not aligned to 16 bytes use our own kernels.
      EXPECT_EQ(standin().calls.size(), static_cast<size_t>(2 * calls)) << most;
    }
  }
  kernels::most_library_scores = whole;
}

// Gradients in one buffer: the row stride covers all three.
TEST(CudnnStrides, OfGradientsSideBySide) {
  const config::Settings s = settings_of({"gpt", "bf16", "sequence=32"});
  train::LayoutRun run(s);
  run.step(0, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, 0, m, batch); });
  int64_t wide = 0;
  for (const cudnn::Tensor& tensor : standin().calls.back().tensors)
    wide += tensor.strides[2] == (s.model.heads + 2 * s.model.kv_heads) * s.model.head_dim;
  EXPECT_EQ(wide, 3);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Cudnn,
    testing::Values(Case{"gpt", "bf16", ""}, Case{"gpt", "fp16", ""}, Case{"llama", "bf16", "recompute=full"},
                    Case{"llama", "bf16", "data=2 zero=3"}, Case{"gpt", "bf16", "tensor=2 sequence_parallel"},
                    Case{"llama", "bf16", "pipe=2 data=2"}, Case{"gpt", "bf16", "pipe=2 schedule=zero_bubble"},
                    Case{"gpt", "bf16", "sequence=32"}, Case{"gpt", "fp16", "sequence=32 tensor=2"}));

// What a library does not support, or that exceeds the workspace limit, uses our own kernels.
TEST(CudnnRefuses, AndOurOwnTrain) {
  const config::Settings s = settings_of({"gpt", "bf16", ""});
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  for (const bool memory : {false, true}) {
    standin().refuses = !memory;
    standin().needs = memory ? int64_t{1} << 40 : 0;
    config::Settings other = s;
    other.train.sequence -= memory ? 1 : 2;  // graphs that are not known yet
    const train::Comparison c = train::compare({.settings = other,
                                                .data = train::RandomSamples(other),
                                                .steps = 2,
                                                .tolerance = tolerance,
                                                .loss_tolerance = tolerance / 10});
    standin().refuses = false, standin().needs = 0;
    EXPECT_EQ(c.first(), nullptr) << train::print(c);
    EXPECT_EQ(taken, 0);
    EXPECT_GT(asked, 0);
    EXPECT_TRUE(standin().calls.empty());
  }
}

}  // namespace
}  // namespace kintsugi::tests::cudnn_test
