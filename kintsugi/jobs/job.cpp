#include "kintsugi/jobs/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::jobs {
namespace {

using base::UserError;

std::optional<int64_t> digits(std::string_view text) {
  int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.size() > 8 || end.ec != std::errc() || end.ptr != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

// "1:30:00", "30:00" (minutes and seconds)
std::optional<int64_t> clock_seconds(std::string_view text) {
  int64_t seconds = 0;
  int parts = 0;
  for (size_t at = 0; at <= text.size(); ++parts) {
    const size_t end = std::min(text.find(':', at), text.size());
    const auto part = digits(text.substr(at, end - at));
    if (!part || (parts > 0 && *part >= 60)) return std::nullopt;
    seconds = 60 * seconds + *part;
    at = end + 1;
  }
  return parts == 2 || parts == 3 ? std::optional(seconds) : std::nullopt;
}

std::optional<int64_t> parse_time(std::string_view text) {
  constexpr int64_t kDay = 24 * 3600;
  if (const size_t dash = text.find('-'); dash != text.npos) {
    const auto days = digits(text.substr(0, dash));
    const auto rest = clock_seconds(text.substr(dash + 1));
    if (!days || !rest || *rest >= kDay) return std::nullopt;
    return *days * kDay + *rest;
  }
  if (text.find(':') != text.npos) return clock_seconds(text);
  int64_t unit = 60;
  if (text.ends_with('h')) unit = 3600;
  if (text.ends_with('s')) unit = 1;
  if (text.ends_with('h') || text.ends_with('m') || text.ends_with('s')) text.remove_suffix(1);
  const auto number = digits(text);
  return number ? std::optional(*number * unit) : std::nullopt;
}

const Partition* partition_of(const Job& job) {
  const std::string& name = job.partition.empty() ? job.site.partition : job.partition;
  if (job.site.partitions.empty()) return nullptr;
  if (name.empty()) return &job.site.partitions.front();
  const auto found = std::ranges::find(job.site.partitions, name, &Partition::name);
  if (found != job.site.partitions.end()) return &*found;
  std::vector<std::string> names;
  for (const Partition& p : job.site.partitions) names.push_back(p.name);
  throw UserError("job", "--partition {}: {} has no such partition; there are {}", base::one_line(name, 60),
                  job.site.title, fmt::join(names, ", "));
}

std::string nodes_in_words(int64_t nodes) {
  return fmt::format("{} node{}", nodes, nodes == 1 ? "" : "s");
}

void check_limits(const Job& job, const Partition& p) {
  const int64_t nodes = job.nodes + job.spares;
  if (nodes < p.least_nodes)
    throw UserError("job", "--nodes {}: partition {} of {} takes at least {}", nodes, p.name, job.site.title,
                    p.least_nodes);
  if (p.limits.empty()) return;
  const auto limit = std::ranges::find_if(p.limits, [&](const Limit& l) { return nodes <= l.nodes; });
  if (limit == p.limits.end())
    throw UserError("job", "--nodes {}: partition {} of {} gives at most {}", nodes, p.name, job.site.title,
                    p.limits.back().nodes);
  if (static_cast<double>(job.seconds) <= 3600 * limit->hours) return;
  std::string more;
  for (const Limit& l : p.limits)
    if (more.empty() && static_cast<double>(job.seconds) <= 3600 * l.hours)
      more = fmt::format("; more than {} may run that long", nodes_in_words((&l - 1)->nodes));
  throw UserError("job", "--time {}: partition {} of {} lets {} run {} at most{}", time_text(job.seconds), p.name,
                  job.site.title, nodes_in_words(nodes), time_text(static_cast<int64_t>(3600 * limit->hours)), more);
}

void check_devices(const Job& job, const Partition* p) {
  if (!job.needs_nvidia) return;
  const int64_t devices = p && p->devices >= 0 ? p->devices : job.site.devices;
  const bool known = (p && p->devices >= 0) || !job.site.vendor.empty();
  if (!known) return;
  if (devices == 0 && p && p->devices == 0)
    throw UserError("job", "parallel.device = \"cuda\": nodes of partition {} of {} have no devices", p->name,
                    job.site.title);
  if (job.site.vendor != "nvidia")
    throw UserError("job", "parallel.device = \"cuda\": the devices of {} are {}'s; set parallel.device = \"cpu\"",
                    job.site.title, job.site.vendor);
  if (devices > 0 && job.ranks_per_node() > devices)
    throw UserError("job", "{} ranks on a node that has {} devices; take more nodes, or fewer ranks",
                    job.ranks_per_node(), devices);
}

}  // namespace

int64_t seconds_of(std::string_view text) {
  const std::optional<int64_t> seconds = parse_time(text);
  constexpr int64_t kMost = int64_t{3600} * 24 * 365;
  if (!seconds || *seconds < 60 || *seconds > kMost)
    throw UserError("job",
                    "--time {} is not a time from a minute to a year; write 90 (minutes), 1:30:00, 2-12:00:00 "
                    "(days) or 2h",
                    base::one_line(text, 40));
  return *seconds;
}

std::string time_text(int64_t seconds) {
  const int64_t days = seconds / 86400;
  const std::string clock = fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return days > 0 ? fmt::format("{}-{}", days, clock) : clock;
}

void check(const Job& job) {
  if (job.ranks % job.nodes != 0) {
    const int64_t less = std::max<int64_t>(1, job.ranks / job.nodes) * job.nodes;
    if (job.ranks < job.nodes)
      throw UserError("job", "--nodes {}: the run has {} rank{}; --ranks {} gives one to each node", job.nodes,
                      job.ranks, job.ranks == 1 ? "" : "s", job.nodes);
    throw UserError("job", "--nodes {}: {} ranks do not divide among them; nearest: {}, {}", job.nodes, job.ranks, less,
                    less + job.nodes);
  }
  if (job.least_nodes > job.nodes)
    throw UserError("job", "--least-nodes {} is more than --nodes {}", job.least_nodes, job.nodes);
  if (job.least_nodes > 0 && job.site.scheduler != launch::Scheduler::slurm)
    throw UserError("job", "--least-nodes needs Slurm, which takes a range of nodes; {} does not", job.site.title);
  if (job.guard && again_of_guard(job).empty())
    throw UserError("job", "--guard needs a scheduler with dependencies between jobs; {} has none", job.site.title);
  if (job.site.ranks > 0 && job.ranks_per_node() > job.site.ranks)
    throw UserError("job", "{} ranks on a node; a node of {} has places for {}: take {}", job.ranks_per_node(),
                    job.site.title, job.site.ranks, nodes_in_words((job.ranks + job.site.ranks - 1) / job.site.ranks));
  if (job.seconds <= job.save_seconds)
    throw UserError("job", "--time {}: the run ends {} s before the limit, which leaves no time to train",
                    time_text(job.seconds), job.save_seconds);
  const Partition* const partition = partition_of(job);
  if (partition) check_limits(job, *partition);
  check_devices(job, partition);
  if (job.site.scheduler == launch::Scheduler::kubernetes && job.site.image.empty())
    throw UserError("job", "{} needs the name of a container image: site.image, in a copy of the site's file",
                    job.site.title);
}

std::string_view submit_program(launch::Scheduler scheduler) {
  switch (scheduler) {
    case launch::Scheduler::none:
      return "";
    case launch::Scheduler::slurm:
      return "sbatch";
    case launch::Scheduler::pbs:
      return "qsub";
    case launch::Scheduler::flux:
      return "flux";
    case launch::Scheduler::kubernetes:
      return "kubectl";
  }
  return "";
}

}  // namespace kintsugi::jobs
