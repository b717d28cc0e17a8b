// Messages about a GPU that fails.
#include "kintsugi/device/cuda/failures.h"

#include <gtest/gtest.h>

namespace kintsugi::device::failures_test {
namespace {

bool says(cudaError_t error, std::string_view word) {
  return advice_for(error).find(word) != std::string_view::npos;
}

TEST(CudaFailures, SayWhatHelps) {
  EXPECT_TRUE(says(cudaErrorECCUncorrectable, "on another card"));
  EXPECT_TRUE(says(cudaErrorNvlinkUncorrectable, "on another card"));
  EXPECT_TRUE(says(cudaErrorUnknown, "Xid 79"));
  EXPECT_TRUE(says(cudaErrorNoDevice, "started anew"));
  EXPECT_TRUE(says(cudaErrorDevicesUnavailable, "another process"));
  EXPECT_TRUE(says(cudaErrorMemoryAllocation, "train.micro_batch"));
  EXPECT_TRUE(says(cudaErrorIllegalAddress, "Xid lines"));
  EXPECT_TRUE(says(cudaErrorNoKernelImageForDevice, "KINTSUGI_CUDA_ARCHITECTURES"));
  EXPECT_EQ(advice_for(cudaErrorInvalidValue), "");
  for (int error = 0; error < 1000; ++error)
    EXPECT_EQ(advice_for(static_cast<cudaError_t>(error)).find('\n'), std::string_view::npos);
}

}  // namespace
}  // namespace kintsugi::device::failures_test
