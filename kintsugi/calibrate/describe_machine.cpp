#include "kintsugi/calibrate/describe_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/machine_memory.h"
#include "kintsugi/base/processor.h"

namespace kintsugi::calibrate {

using simulate::Cluster;
using simulate::MeasuredKernel;
using tensor::DType;

namespace {

constexpr double kLeastTime = 1e-7, kLeastShare = 0.01;  // minima accepted in a cluster file

// One device's fraction of the cores used by all devices.
CoreRates rates_of_device(const Devices& d, const std::vector<CoreRates>& cores) {
  const int all = std::min(d.ranks * d.threads, cores.back().cores);
  const auto found = std::ranges::find_if(cores, [&](const CoreRates& r) { return r.cores >= all; });
  const double part = static_cast<double>(all) / found->cores / d.ranks;
  return {.cores = d.threads, .fp32 = found->fp32 * part, .bf16 = found->bf16 * part, .memory = found->memory * part};
}

double share(double part, double all) {
  return std::clamp(part / all, kLeastShare, 1.0);
}

// The best rate of kernels with that name and type; 0: none.
double best_rate(const std::vector<MeasuredKernel>& kernels, std::string_view name, DType type) {
  double best = 0;
  for (const MeasuredKernel& m : kernels)
    if (m.key.kernel == name && m.key.type == type) best = std::max(best, m.key.flops / m.seconds);
  return best;
}

// Raises peaks to the rate of the fastest kernel.
void raise_peaks(Cluster& c, const std::vector<MeasuredKernel>& kernels) {
  c.products.share = kLeastShare;
  for (auto& [type, peak] : c.device.peak)
    if (const double rate = best_rate(kernels, "contract", type); rate > 0) {
      peak = std::max(peak, rate);
      c.products.share = std::max(c.products.share, share(rate, peak));
    }
}

void set_attention(Cluster& c, const std::vector<MeasuredKernel>& kernels) {
  const auto best = [&](std::string_view name) {
    double part = 0;
    for (const auto& [type, peak] : c.device.peak) part = std::max(part, best_rate(kernels, name, type) / peak);
    return std::clamp(part, kLeastShare, 1.0);
  };
  c.attention = {.forward = best("attention"), .backward = best("attention_grad")};
}

void set_memory(Cluster& c, const std::vector<MeasuredKernel>& kernels) {
  double bytes = 0, seconds = 0, least = 1e-3;
  for (const MeasuredKernel& m : kernels) {
    least = std::min(least, m.seconds);
    if (m.key.flops > 4 * m.key.bytes) continue;  // compute-bound
    bytes += m.key.bytes, seconds += m.seconds;
  }
  c.device.kernel_start = c.products.start = std::max(kLeastTime, least);
  if (seconds > 0) c.device.memory_share = share(bytes / seconds, c.device.memory_bandwidth);
}

}  // namespace

Cluster describe_machine(const Devices& d, const std::vector<CoreRates>& cores) {
  const base::Processor processor = base::this_processor();
  const std::string name = processor.name.empty() ? "processor" : processor.name;
  const base::MachineMemory memory = base::machine_memory();
  const int64_t all = memory.group > 0 ? std::min(memory.group, memory.machine) : memory.machine;
  const CoreRates rates = rates_of_device(d, cores);
  Cluster c;
  c.name = "this machine";
  c.nodes = 1;
  c.devices_per_node = d.ranks;
  c.device = {.name = d.threads == 1 ? fmt::format("core of {}", name) : fmt::format("{} cores of {}", d.threads, name),
              .threads = static_cast<double>(d.threads),
              .turns = std::max(1.0, static_cast<double>(d.ranks) * d.threads / cores.back().cores),
              .units = static_cast<double>(d.threads),
              .memory = static_cast<double>(all) / d.ranks,
              .memory_bandwidth = rates.memory,
              .kernel_start = kLeastTime,
              .peak = {{DType::f32, rates.fp32}, {DType::bf16, rates.bf16}}};
  c.products = {.share = 1, .depth = 0, .start = kLeastTime, .tiles = {{64, 64}}};
  c.attention = {.forward = 1, .backward = 1};
  // Until transfers are measured: two passes through memory.
  c.node = {.bandwidth = rates.memory / 2, .start = 1e-6, .step = kLeastTime, .overlap = 0};
  return c;
}

void add_kernels(Cluster& c, const std::vector<MeasuredKernel>& kernels) {
  for (const MeasuredKernel& m : kernels) c.measured.add(m);
  raise_peaks(c, c.measured.kernels);
  set_attention(c, c.measured.kernels);
  set_memory(c, c.measured.kernels);
}

void add_transfers(Cluster& c, const std::vector<CollectiveTime>& times) {
  double most = 0;
  for (const CollectiveTime& t : times) {
    if (t.ranks < 2) continue;
    if (t.operation == Operation::barrier) c.node.start = std::max(kLeastTime, t.seconds);
    const double sent = sent_bytes(t.operation, t.ranks, static_cast<double>(t.bytes));
    if (const auto collective = collective_of(t.operation))
      c.measured.add(simulate::MeasuredTransfer{*collective, t.ranks, sent, t.seconds});
    if (t.operation != Operation::all_reduce || sent <= most) continue;
    most = sent;
    c.node.bandwidth = sent / t.seconds;
  }
}

}  // namespace kintsugi::calibrate
