#include "app/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kintsugi/base/processor.h"
#include "kintsugi/kernels/host/peak.h"

namespace kintsugi::app {

// CMakeLists.txt defines the texts in capitals.
std::string version_text() {
  const base::Processor processor = base::this_processor();
  const int64_t cores = base::usable_cores();
  return fmt::format(
      "kintsugi {}\n"
      "build:     {}, {}\n"
      "features:  {}\n"
      "libraries: {}\n"
      "processor: {}, {} core{} usable\n"
      "units:     {}\n"
      "kernels:   {} (Highway), oneDNN",
      KINTSUGI_VERSION, KINTSUGI_BUILD_TYPE, KINTSUGI_COMPILER, KINTSUGI_FEATURES, KINTSUGI_LIBRARIES,
      processor.name.empty() ? "unnamed" : processor.name, cores, cores == 1 ? "" : "s",
      processor.units.empty() ? "none known" : fmt::format("{}", fmt::join(processor.units, " ")),
      kernels::host::simd_target());
}

}  // namespace kintsugi::app
