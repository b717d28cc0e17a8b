// An emulated device: its memory is host memory, and a stream does its work as late as possible, when a thread waits
// for it. Results that nobody waited for are therefore missing, as on a real device. Any two accesses to the same
// memory must be ordered by streams and events; otherwise the second is an error that names both; see access_order.h.
//
// Streams of several threads may wait for each other. All share one lock.
//
// KINTSUGI_EMULATE in the environment injects failures for tests: "memory=N" limits device memory to N bytes;
// "pinned=N" limits pinned host memory; "launches=N" rejects launches after N kernels; "fails_after=N" makes every wait
// an error after N pieces of work, as of a device that fell off the bus; "hangs_after=N" silently stops work after N
// pieces, as of a kernel that never ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/device/device.h"

namespace kintsugi::device {

std::unique_ptr<Device> emulated_device();

namespace emulate {

// For tests: live bytes allocated by all emulated devices of the process.
struct Allocated {
  int64_t device = 0, pinned = 0;
};
Allocated allocated();

// For tests: the number of waits for events, by streams and by the host, since the start (captured waits count once,
// not per launch); how many were redundant; and the index of a wait to suppress, from the start (-1: none).
struct Waits {
  int64_t all = 0, known = 0;
};
Waits waits();
void leave_out_wait(int64_t number);

// For tests: records, from start_log() to take_log(), what each stream is given, in the order in which streams were
// created: the announcements of kernels and copies, and "launch", "record" and "wait".
void start_log();
std::vector<std::vector<std::string>> take_log();

}  // namespace emulate
}  // namespace kintsugi::device
