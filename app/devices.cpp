#include <fmt/format.h>

#include <cstdio>

#include "app/fold.h"
#include "app/ranks.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/device/device.h"

namespace kintsugi::app {
namespace {

std::string memory_of(const device::Properties& p) {
  const auto bytes = [](int64_t n) { return base::format_bytes(static_cast<uint64_t>(n)); };
  return fmt::format("{} of {} free{}", bytes(p.free), bytes(p.memory),
                     p.context == 0 ? "" : fmt::format(", {} taken by being opened", bytes(p.context)));
}

void print_cuda() {
  try {
    const int count = device::open_device("cuda")->count();
    for (int number = 0; number < count; ++number) {
      const device::Properties p = device::open_device("cuda", number)->properties();
      write_out("cuda      {}: {}, {} multiprocessors of generation {}.{}, {}\n", number, p.name, p.processors, p.major,
                p.minor, memory_of(p));
    }
  } catch (const base::UserError& error) {
    const std::string_view what = error.what();
    const size_t at = what.find("] ");
    const std::string why(at == what.npos ? what : what.substr(at + 2));
    write_out("cuda      {}\n", fold("not available: " + why, kColumns, 10));
  }
}

}  // namespace

void add_devices(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("devices", "Lists the devices of this machine, and why one cannot be used");
  verb.footer(
      "[parallel] device in run.toml selects the device: cpu, cuda, or auto (a GPU if one is usable). Tests also\nuse "
      "reference, slow and simple kernels on the CPU, and emulated, which runs GPU kernels thread by thread\non the "
      "CPU.");
  verb.run([] {
    require_one_process("devices");
    const base::Processor processor = base::this_processor();
    const int64_t cores = base::usable_cores();
    write_out("cpu       {}, {} core{} usable\n", processor.name.empty() ? "unnamed" : processor.name, cores,
              cores == 1 ? "" : "s");
    write_out("emulated  on the processor\n");
    print_cuda();
  });
}

}  // namespace kintsugi::app
