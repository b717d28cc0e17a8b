// A device without a device: its memory is the host's, and a stream does its work as late as it may, when somebody
// waits for it. So what was not waited for is not there, as on a real one. And any two accesses to the same memory must
// have an order by streams and events, or the second is an error that names both; see access_order.h.
//
// Streams of several threads may wait for each other. All of them share one lock.
//
// KINTSUGI_EMULATE in the environment makes it fail, for tests: "memory=N", no more than N bytes of its memory;
// "pinned=N", of pinned memory of the host; "launches=N", after N kernels none is launched any more; "fails_after=N",
// after N pieces of work everything that waits is an error, as of a device that has fallen off the bus;
// "hangs_after=N", after N nothing is done any more, and nobody told, as of a kernel that never ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/device/device.h"

namespace kintsugi::device {

std::unique_ptr<Device> emulated_device();

namespace emulate {

// For tests: the bytes that all emulated devices of the process gave and were not given back.
struct Allocated {
  int64_t device = 0, pinned = 0;
};
Allocated allocated();

// For tests: the waits for events, of streams and of the host, since the start (of what is captured once, not at each
// launch); those that waited for nothing that was not known to be done; and the one that is left out, counted from the
// start (-1: none).
struct Waits {
  int64_t all = 0, known = 0;
};
Waits waits();
void leave_out_wait(int64_t number);

// For tests: from start_log() to take_log(), what each stream is given, in the order in which streams were made: what
// kernels and copies announce, and "launch", "record" and "wait".
void start_log();
std::vector<std::vector<std::string>> take_log();

}  // namespace emulate
}  // namespace kintsugi::device
