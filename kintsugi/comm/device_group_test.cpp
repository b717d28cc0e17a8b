#include <gtest/gtest.h>

#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/device_harness.h"

namespace kintsugi::comm::device_group_test {
namespace {

// Ranks that share a device see what the others ask for.
TEST(OnOneDevice, CallsThatDoNotMatch) {
  const Texts said = on_devices(2, [](World& world) {
    const auto group = world.group(cases::all_ranks(2));
    std::vector<std::byte> x(8), y(16);
    group->wait(world.rank() == 0 ? group->all_reduce(x, x, tensor::DType::f32, Reduction::sum)
                                  : group->all_gather(x, y));
    return std::string();
  });
  EXPECT_NE((said[0] + said[1]).find("calls all_reduce of 8 bytes (sum of fp32), another all_gather"),
            std::string::npos)
      << said[0] << "\n"
      << said[1];
}

}  // namespace
}  // namespace kintsugi::comm::device_group_test
