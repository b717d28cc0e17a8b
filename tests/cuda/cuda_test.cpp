// GPUs that cannot be used and GPUs that fail: one line with cause and remedy, and exit code 1. The module uses a
// stand-in of NVIDIA's runtime.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kintsugi/comm/gpu/reduce_in_order.h"
#include "kintsugi/device/cuda/entry.h"
#include "kintsugi/device/timings.h"
#include "kintsugi/kernels/gpu/rows.h"
#include "kintsugi/run/gpu/draw.h"
#include "tests/process.h"
#include "tests/small_run.h"

namespace kintsugi::tests::cuda_test {
namespace {

class Cuda : public testing::Test {
 protected:
  Ended train(const std::string& wrong, const std::string& more = "", const std::string& launcher = "") {
    return run_kintsugi(
        files.file("."),
        "train " + toml + " --set train.folder=" + files.folder("run").string() +
            " parallel.device=cuda train.steps=4 " + more,
        "export KINTSUGI_CUDA_MODULE=" KINTSUGI_STANDINS "/kintsugi_cuda.so KINTSUGI_STANDIN_CUDA='" + wrong + "'",
        launcher);
  }
  // The whole of stderr.
  void expect_line(const std::string& wrong, const std::string& says, const std::string& more = "") {
    std::filesystem::remove_all(files.folder("run"));
    const Ended e = train(wrong, more);
    EXPECT_EQ(e.code, 1) << wrong << ": " << e.out << e.err;
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << wrong << ": " << e.err;
    EXPECT_NE(e.err.find(says), std::string::npos) << wrong << ": " << e.err;
  }

  RunFiles files;
  std::string toml = files.toml();
};

// Everything looked up by name in the module exists under that name.
TEST_F(Cuda, TheModuleHasWhatIsAskedFor) {
  void* const module = ::dlopen(KINTSUGI_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(module, nullptr) << ::dlerror();
  for (const char* name : {device::kCudaEntry, device::kCudaCount, device::kCudaSuits, device::kMakeTimings,
                           kernels::kDeviceRows, comm::kDeviceReduce, run::kDeviceDraw})
    EXPECT_NE(::dlsym(module, name), nullptr) << name;
  ::dlclose(module);
}

TEST_F(Cuda, NoCardThatCanBeUsed) {
  expect_line("driver=0", "this machine has no driver for NVIDIA's devices: it needs one for CUDA ");
  expect_line("driver=11040", "the driver of this machine knows CUDA 11.4, this build needs ");
  expect_line("devices=0",
              "this machine shows no NVIDIA device; CUDA_VISIBLE_DEVICES hides those that it does not name");
  expect_line("major=7", "a card of the stand-in is of generation 7.0, and cards are computed on from 8.0 on (A100)");
  expect_line("opens=46", "cudaErrorDevicesUnavailable); another process has the card for itself");
}

TEST_F(Cuda, NoModule) {
  const Ended e = run_kintsugi(files.file("."), "train " + toml + " --set parallel.device=cuda train.folder=run",
                               "export KINTSUGI_CUDA_MODULE=/nowhere/kintsugi_cuda.so");
  EXPECT_EQ(e.code, 1);
  EXPECT_NE(e.err.find("the module for CUDA, which KINTSUGI_CUDA_MODULE names, cannot be loaded: /nowhere/"),
            std::string::npos)
      << e.err;
  EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
}

// With device = "auto" the run falls back to the CPU, and says why if a GPU is present.
TEST_F(Cuda, ARunThatMayChoose) {
  const auto said = [&](const std::string& wrong) {
    std::filesystem::remove_all(files.folder("run"));
    const Ended e = train(wrong, "parallel.device=auto");
    EXPECT_EQ(e.code, 0) << wrong << ": " << e.err;
    return e.err;
  };
  EXPECT_EQ(said("driver=0"), "");
  EXPECT_EQ(said("devices=0"), "");
  for (const std::string& err : {said("major=7"), said("driver=11040")}) {
    EXPECT_TRUE(err.starts_with("warning: parallel.device = \"auto\" takes the processor: [device] ")) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
  }
}

// Measured selections of matmuls are stored in a file, or the run does not start.
TEST_F(Cuda, NoFileForProducts) {
  const std::string folder = files.file(".").string();
  for (const auto& [path, says] : {std::pair<std::string, std::string>{folder, " is not a file"},
                                   {"/dev/null", "/dev/null is not a file"},
                                   {"/proc/self/kintsugi/products", "/proc/self/kintsugi/products: No such file"}}) {
    std::filesystem::remove_all(files.folder("run"));
    setenv("KINTSUGI_PRODUCTS", path.c_str(), 1);
    expect_line("", "[device] KINTSUGI_PRODUCTS: ");
    expect_line("", says);
    unsetenv("KINTSUGI_PRODUCTS");
  }
}

// Another process holds the memory: detected before the start. Allocation failures: when a program is bound. Steps do
// not allocate.
TEST_F(Cuda, TooLittleMemory) {
  expect_line(
      "free=1000",
      "but only 1,000 bytes (1000 B) is available, the 1000 B that are free of the device's 8.0 GiB; most of it is");
  expect_line("gives=1000", "a card of the stand-in does not give the ");
  expect_line("gives=1000", "of 8.0 GiB are free; rank 0 needs ");
  expect_line("gives=1000", " bytes: weights ");
}

TEST_F(Cuda, FewerCardsThanRanks) {
  std::filesystem::remove_all(files.folder("run"));
  const Ended e = train("devices=2", "parallel.transport=auto", "env SLURM_LOCALID=2");
  EXPECT_EQ(e.code, 1);
  EXPECT_NE(
      e.err.find("this machine has 2 devices, but this is its rank 2 (from 0): start at most 2 ranks per machine"),
      std::string::npos)
      << e.err;
  EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
}

// The list gives the reason, and is not an error.
TEST_F(Cuda, TheListOfDevices) {
  const auto said = [&](const std::string& wrong) {
    const Ended e = run_kintsugi(
        files.file("."), "devices",
        "export KINTSUGI_CUDA_MODULE=" KINTSUGI_STANDINS "/kintsugi_cuda.so KINTSUGI_STANDIN_CUDA='" + wrong + "'");
    EXPECT_EQ(e.code, 0) << e.err;
    return e.out.substr(e.out.find("cuda"));
  };
  EXPECT_NE(said("").find("a card of the stand-in"), std::string::npos) << said("");
  EXPECT_NE(said("driver=0").find("not available: this machine has no driver"), std::string::npos);
  EXPECT_NE(said("major=7").find("is of generation 7.0"), std::string::npos) << said("major=7");
}

// Xid errors as reported by CUDA, at the start and during a wait of a step.
TEST_F(Cuda, ACardThatFails) {
  for (const int after : {0, 2, 3}) {
    const auto fails = [&](int error) { return fmt::format("fails={} after={}", error, after); };
    expect_line(fails(214), "cudaErrorECCUncorrectable); the card lost bits");
    expect_line(fails(999),
                "cudaErrorUnknown); the card does not answer any more, as when it fell off the bus (Xid 79");
    expect_line(fails(719), "cudaErrorLaunchFailure); Xid lines of `dmesg` say whether it is the card");
  }
}

}  // namespace
}  // namespace kintsugi::tests::cuda_test
