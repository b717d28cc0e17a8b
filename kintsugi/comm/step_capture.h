// A step that all ranks enqueue alike, captured on their devices and then launched again and again.
#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/device_groups.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

// What is done with a step.
enum class StepWay {
  enqueue,  // call by call
  capture,  // kept, and then launched
  launch,   // as it was kept
};

// Of one rank; all ranks of the world call each function together. A rank that does not come is named, after the time
// limit of the world.
class StepCapture {
 public:
  virtual ~StepCapture() = default;
  // The same on all ranks: what they ask for, or enqueue if they do not agree.
  virtual StepWay agree(StepWay own) = 0;
  // What is enqueued in between, in `compute` and by the groups of the way, is kept.
  virtual void begin() = 0;
  virtual std::unique_ptr<device::Graph> end() = 0;  // null: another rank launches it
  virtual void drop() {}                             // in place of end(), after an error: of this rank alone
  virtual void launch(device::Graph* graph) = 0;     // what end() gave
  virtual void progress() {}                         // Timeout if the device does not come to the end of a launch
};

// Of a way that is not by_host. Ranks that share a device have one graph, which rank 0 launches: their streams wait for
// each other within it. `world` null: one rank. World and stream outlive it. Makes a group of all ranks.
std::unique_ptr<StepCapture> step_capture(DeviceWay way, World* world, device::Device& device, device::Stream& compute,
                                          std::chrono::milliseconds time_limit);

}  // namespace kintsugi::comm
