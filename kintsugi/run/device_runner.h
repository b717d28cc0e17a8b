// Runs a program on a device. The inputs of a step are staged in one copy, then everything is enqueued in program order
// (program::DeviceOrder); a captured list is launched as a graph from the second run on.
#pragma once

#include <memory>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/device_groups.h"
#include "kintsugi/comm/step_capture.h"
#include "kintsugi/run/bound_program.h"
#include "kintsugi/run/device_side.h"
#include "kintsugi/run/device_store.h"
#include "kintsugi/run/device_times.h"
#include "kintsugi/run/enqueuer.h"
#include "kintsugi/run/groups.h"
#include "kintsugi/run/runner.h"

namespace kintsugi::run {

struct Place;

class DeviceRunner : public Runner {
 public:
  // The arguments except `place` must outlive this. Throws UserError if the device cannot allocate the memory of the
  // program.
  DeviceRunner(const program::Program& p, const kernels::KernelSet& kernels, base::ThreadTeam& team,
               const Place& place);
  ~DeviceRunner() override;

  std::byte* memory() const override { return side_->memory(); }
  int64_t bytes() const override { return side_->bytes(); }
  DeviceSide* device() const override { return side_.get(); }
  bool captured(program::Step step) const override { return state_of(bound_->list(step)).captured; }

  void read(const std::byte* from, std::span<std::byte> to) const override { side_->read(from, to); }
  void write(std::byte* to, std::span<const std::byte> from) override { side_->write(to, from); }
  void read_file(int64_t offset, std::span<std::byte> to) const override { store_->read(offset, to); }
  void write_file(int64_t offset, std::span<const std::byte> from) const override { store_->write(offset, from); }
  void read(std::span<const std::byte* const> from, std::span<double> to) const override { side_->read(from, to); }
  void ask(std::span<const std::byte* const> from) override { side_->ask(from); }
  void answer(std::span<double> to) override { side_->answer(to); }
  tensor::View on_host(const tensor::View& view) const override;
  std::byte* input_address(const program::CallList& list, const program::Call& call,
                           program::BufferId buffer) const override;

  // Inputs of all calls are filled first; then the host continues while the device works. A list that is observed is
  // enqueued instruction by instruction (program::in_place), and the host waits for its end if times are recorded.
  void run(program::Step step, kernels::Numbers& numbers, const Filler& filler, const Probe& probe) override;

 private:
  struct List {
    program::DeviceOrder in_place;         // for observed runs
    program::DeviceOrder by_launch;        // the same with joined launches
    int64_t runs = 0;                      // number of runs that were not observed
    bool captured = false;                 // at the second of these
    std::unique_ptr<device::Graph> graph;  // null also if another rank launches it
  };

  std::unique_ptr<comm::Communicator> make_group(const Place& place, std::span<const int> ranks,
                                                 const comm::GroupOptions& options, const program::OpenTransfers& open);
  void prepare(const kernels::KernelSet& kernels);
  List& state_of(const BoundList& list) const;
  comm::StepWay way_of(const BoundList& list, List& state, const Probe& probe) const;
  void enqueue(const BoundList& list, const program::DeviceOrder& order, kernels::Numbers& numbers, const Probe& probe);
  void take_times(const BoundList& list, const program::DeviceOrder& order, profile::StepTimes& times);

  const program::Program& p_;
  base::ThreadTeam& team_;
  const int rank_;
  const bool tf32_;
  const comm::Exchange exchange_;
  std::unique_ptr<DeviceSide> side_;
  std::unique_ptr<DeviceStore> store_;
  std::unique_ptr<DeviceTimes> times_;     // once times were recorded
  mutable std::vector<std::byte> values_;  // scratch of on_host()
  std::unique_ptr<Groups> groups_;         // destroyed before the memory
  std::unique_ptr<BoundProgram> bound_;
  OpenTransfer<DeviceTransfer> open_;
  std::unique_ptr<comm::StepCapture> capture_;  // null: nothing is captured
  mutable std::vector<List> lists_;             // parallel to the program's lists
};

}  // namespace kintsugi::run
