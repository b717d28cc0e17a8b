#include "kintsugi/jobs/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"

namespace kintsugi::jobs {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string reasons(const std::vector<Suspect>& excluded) {
  std::string text;
  for (const Suspect& s : excluded) text += fmt::format("; {}: {}", s.node, base::one_line(s.why, 120));
  return text;
}

}  // namespace

Placement place(const JobNodes& nodes, const std::vector<Suspect>& excluded, int64_t ranks, int64_t per_node,
                bool shrink) {
  Placement p;
  p.ranks = ranks;
  if (nodes.all.empty()) return p;
  const auto is_excluded = [&](const std::string& node) {
    return std::ranges::any_of(excluded, [&](const Suspect& s) { return s.node == node; });
  };
  std::vector<std::string> up, good;
  for (const std::string& node : nodes.all) {
    if (contains(nodes.down, node)) continue;
    up.push_back(node);
    if (!is_excluded(node)) good.push_back(node);
  }
  const auto needed = static_cast<size_t>((ranks + per_node - 1) / per_node);
  if (good.empty() || (!shrink && good.size() < needed && up.size() >= needed)) good = up;
  if (good.empty()) throw base::UserError("launch", "no node of the job is left{}", reasons(excluded));
  if (good.size() < needed && !shrink)
    throw base::UserError("launch",
                          "{} of the {} that the run needs are left; launch.shrink = true continues on fewer{}",
                          base::counted(std::ssize(good), "node"), needed, reasons(excluded));
  for (const std::string& node : nodes.all) {
    if (!contains(good, node)) {
      p.left_out.push_back(node);
    } else if (p.used.size() < needed) {
      p.used.push_back(node);
    } else {
      p.spare.push_back(node);
    }
  }
  p.ranks = std::min(ranks, std::ssize(p.used) * per_node);
  p.fewer = p.ranks < ranks;
  return p;
}

std::string placed_command(const std::string& command, const launch::Process& process, const Placement& p,
                           int64_t per_node, const std::string& host_file) {
  const auto nodes = std::max<int64_t>(1, p.used.empty() ? (p.ranks + per_node - 1) / per_node : std::ssize(p.used));
  std::string text = command;
  const std::array<std::pair<std::string_view, std::string>, 3> places = {{
      {"{nodes}", fmt::format("{}", nodes)},
      {"{ranks}", fmt::format("{}", p.ranks)},
      {"{hosts}", join_nodes(p.used)},
  }};
  for (const auto& [name, value] : places)
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  if (p.left_out.empty() && p.spare.empty() && !p.fewer) return text;
  switch (process.scheduler) {
    case launch::Scheduler::slurm:
      // Later options of srun replace earlier ones. A list of nodes alone is a least one. The step before may hold its
      // cores until Slurm gives up the lost node: this one shares them.
      if (text.starts_with("srun ") || text.find("/srun ") != text.npos)
        text += fmt::format(" --nodes={} --ntasks={} --nodelist={} --overlap", nodes, p.ranks, join_nodes(p.used));
      return text;
    case launch::Scheduler::flux:
      return text + fmt::format(" --requires=host:{}", join_nodes(p.used));
    case launch::Scheduler::pbs: {
      std::string lines;
      for (const std::string& node : p.used)
        for (int64_t i = 0; i < per_node; ++i) lines += node + "\n";
      base::write_file_atomically(host_file, lines);
      // The script's shell has replaced $PBS_NODEFILE already.
      if (const size_t option = text.find("hostfile "); option != text.npos) {
        const size_t begin = option + 9;
        text.replace(begin, std::min(text.find(' ', begin), text.size()) - begin, host_file);
      }
      return text;
    }
    case launch::Scheduler::kubernetes:
    case launch::Scheduler::none:
      return text;
  }
  return text;
}

}  // namespace kintsugi::jobs
