// Captures a step that all ranks enqueue alike as a graph, and launches it repeatedly.
#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/device_groups.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

// How a step is executed.
enum class StepWay {
  enqueue,  // call by call
  capture,  // captured, then launched
  launch,   // the captured graph is launched again
};

// The capture of one rank; every function is collective over the world. A rank that does not call is named after the
// time limit of the world.
class StepCapture {
 public:
  virtual ~StepCapture() = default;
  // The mode for all ranks: what they request, or `enqueue` if they disagree.
  virtual StepWay agree(StepWay own) = 0;
  // Starts capturing the work that is enqueued on `compute` and by the device groups, until end().
  virtual void begin() = 0;
  virtual std::unique_ptr<device::Graph> end() = 0;  // null: another rank launches the graph
  virtual void drop() {}                             // replaces end() after an error; not collective
  virtual void launch(device::Graph* graph) = 0;     // the result of end()
  virtual void progress() {}                         // throws Timeout if a launch does not complete on the device
};

// `way` must not be by_host. Ranks that share a device have one graph, which rank 0 launches; their streams wait for
// each other within it. `world` may be null for a single rank; it and `compute` must outlive the result. Creates a
// group of all ranks.
std::unique_ptr<StepCapture> step_capture(DeviceWay way, World* world, device::Device& device, device::Stream& compute,
                                          std::chrono::milliseconds time_limit);

}  // namespace kintsugi::comm
