// Time on a stage that runs kernels, with transfers that nothing else disturbs.
#pragma once

#include <vector>

#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/transfer_costs.h"

namespace kintsugi::search {

class Clock {
 public:
  // The cluster must outlive it.
  Clock(const simulate::Cluster& cluster, int queues) : cluster_(cluster), free_(static_cast<size_t>(queues), 0) {}

  double now = 0;

  // Kernels are slower while bytes flow.
  void run(double seconds);
  // Transfers of a queue run one after another. Returns the completion time.
  double transfer(int queue, const simulate::TransferTime& time);

 private:
  struct Flow {
    double begin = 0, end = 0, slowdown = 1;
  };

  const simulate::Cluster& cluster_;
  std::vector<Flow> flows_;
  std::vector<double> free_;  // [queue]: when it becomes free
};

}  // namespace kintsugi::search
