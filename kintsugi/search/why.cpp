#include "kintsugi/search/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <vector>

#include "kintsugi/base/format.h"

namespace kintsugi::search {

namespace {

std::string memory_text(double bytes) {
  return base::format_bytes(static_cast<uint64_t>(bytes));
}

// The share of the step, averaged over stages, that waits for transfers over an axis, alone or with others.
double exposed(const simulate::Simulated& r, std::string_view axis) {
  double sum = 0;
  for (size_t a = 0; a < r.axes.size(); ++a)
    if (r.axes[a].find(axis) != std::string::npos)
      for (const simulate::StageTime& t : r.stages) sum += t.exposed[a];
  return sum / static_cast<double>(r.stages.size()) / r.seconds;
}

double bubble(const simulate::Simulated& r) {
  double sum = 0;
  for (const simulate::StageTime& t : r.stages) sum += t.bubble;
  return sum / static_cast<double>(r.stages.size()) / r.seconds;
}

std::string per_cent(double share) {
  return share < 0.005 ? "less than 1% of the step" : fmt::format("{:.0f}% of the step", 100 * share);
}

std::string zero_text(const Candidate& c) {
  const std::string_view what = c.zero == 1   ? "the optimizer"
                                : c.zero == 2 ? "gradients and the optimizer"
                                              : "weights, gradients and the optimizer";
  return fmt::format("split {} (ZeRO-{})", what, c.zero);
}

}  // namespace

std::string why(const Tried& best, int64_t states, const simulate::Cluster& cluster, int64_t limit) {
  const Candidate& c = best.candidate;
  const auto all = static_cast<double>(states);
  const double times = all / static_cast<double>(limit);
  std::string text = fmt::format("why: weights, gradients and optimizer of the model are {}, ", memory_text(all));
  text += times > 1 ? fmt::format("{:.1f} times the memory of a device", times)
                    : fmt::format("{:.0f}% of the memory of a device", 100 * times);
  std::vector<std::string> parts;
  if (c.tensor() > 1)
    parts.push_back(fmt::format("tensor {} splits each layer {}, for {}", c.tensor(),
                                c.tensor() <= cluster.devices_per_node ? "within a node" : "across nodes",
                                per_cent(exposed(best.time, "tensor"))));
  if (c.context() > 1)
    parts.push_back(fmt::format("context {} splits the tokens of a sample, for {}", c.context(),
                                per_cent(exposed(best.time, "context"))));
  if (c.space() > 1)
    parts.push_back(
        fmt::format("space {} splits each image, for {}", c.space(), per_cent(exposed(best.time, "space"))));
  if (c.expert() > 1)
    parts.push_back(fmt::format("expert {} splits the experts and the batch, for {}", c.expert(),
                                per_cent(exposed(best.time, "expert"))));
  if (c.pipe() > 1)
    parts.push_back(fmt::format("pipe {} splits the layers, for {} of bubble and {} of messages", c.pipe(),
                                per_cent(bubble(best.time)), per_cent(exposed(best.time, "pipe"))));
  if (c.data() > 1)
    parts.push_back(fmt::format("data {} splits the batch{}, for {}", c.data(),
                                c.zero > 0 ? fmt::format(", and its ranks {}", zero_text(c)) : "",
                                per_cent(exposed(best.time, "data"))));
  if (c.recompute != config::Recomputed::nothing)
    parts.push_back(fmt::format("{} computed again, as activations would not fit or leave no room for a faster layout",
                                c.recompute == config::Recomputed::layers ? "layers are" : "attention is"));
  if (c.data() == 1 && c.zero > 0) parts.push_back(fmt::format("these ranks {}", zero_text(c)));
  if (c.offload.optimizer || c.offload.activations)
    parts.push_back(fmt::format("{} to files, for {}",
                                !c.offload.activations ? "the optimizer goes"
                                : c.offload.optimizer  ? "the optimizer and activations go"
                                                       : "activations go",
                                per_cent(exposed(best.time, "file"))));
  if (parts.empty()) parts.push_back("one device holds and computes all of it");
  return text + fmt::format("; {}", fmt::join(parts, "; ")) + ".";
}

std::string nothing_fits(const Found& found, const simulate::Cluster& cluster, int64_t devices, int64_t limit) {
  if (!found.smallest)
    return fmt::format(
        "none of {} layouts of {} devices suits the model and its global_batch: data must divide "
        "global_batch, pipe is at most the layers, and tensor and context need dims that large",
        found.counts.all, devices);
  const std::string least = memory_text(static_cast<double>(found.smallest->bytes));
  std::string text = fmt::format(
      "no layout of {} devices fits into {}: the least found that a rank needs is {}, with {}; devices of {} would do",
      devices, memory_text(static_cast<double>(limit)), least, in_words(found.smallest->candidate), least);
  if (found.enough_devices > 0) text += fmt::format(", or {} devices", base::group_digits(found.enough_devices));
  if (found.enough_devices > cluster.devices())
    text += fmt::format(", of which {} has {}", cluster.name, base::group_digits(cluster.devices()));
  return text;
}

}  // namespace kintsugi::search
