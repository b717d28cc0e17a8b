#include "kintsugi/jobs/node_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"

namespace kintsugi::jobs {
namespace {

constexpr size_t kMostNodes = 100'000;

[[noreturn]] void fail_list(std::string_view list) {
  throw base::UserError("launch", "the list of nodes \"{}\" is not like n[1-3,7],m4", base::one_line(list, 80));
}

// Splits at commas outside brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at <= list.size(); ++at) {
    if (at == list.size() || (list[at] == ',' && depth == 0)) {
      if (at > begin) parts.push_back(list.substr(begin, at - begin));
      begin = at + 1;
    } else if (list[at] == '[') {
      if (++depth > 1) fail_list(list);
    } else if (list[at] == ']') {
      if (--depth < 0) fail_list(list);
    }
  }
  if (depth != 0) fail_list(list);
  return parts;
}

int64_t number_in(std::string_view text, std::string_view list) {
  int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size() || number < 0) fail_list(list);
  return number;
}

// One part, with any number of brackets; each range keeps the digits of its first number.
// Names that were seen before go to `twice`.
void expand_part(const std::string& begun, std::string_view part, std::string_view list, std::set<std::string>& seen,
                 std::vector<std::string>& nodes, std::string& twice) {
  const size_t open = part.find('[');
  if (open == part.npos) {
    std::string name = begun + std::string(part);
    if (!seen.insert(name).second) {
      if (twice.empty()) twice = std::move(name);
      return;
    }
    if (nodes.size() >= kMostNodes)
      throw base::UserError("launch", "the list of nodes \"{}\" has more than {}", base::one_line(list, 80),
                            kMostNodes);
    nodes.push_back(std::move(name));
    return;
  }
  const size_t close = part.find(']', open);
  const std::string_view rest = part.substr(close + 1);
  for (const std::string_view range : parts_of(part.substr(open + 1, close - open - 1))) {
    const size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash), last = dash == range.npos ? first : range.substr(dash + 1);
    const int64_t from = number_in(first, list), to = number_in(last, list);
    if (to < from || to - from >= static_cast<int64_t>(kMostNodes)) fail_list(list);
    for (int64_t n = from; n <= to; ++n)
      expand_part(fmt::format("{}{}{:0{}}", begun, part.substr(0, open), n, first.size()), rest, list, seen, nodes,
                  twice);
  }
}

std::vector<std::string> expand_list(std::string_view list, std::string& twice) {
  std::vector<std::string> nodes;
  std::set<std::string> seen;
  for (const std::string_view part : parts_of(list)) expand_part("", part, list, seen, nodes, twice);
  return nodes;
}

// The words of a command, at spaces and the first "=" of an option.
std::vector<std::string> option_words(std::string_view command) {
  std::vector<std::string> words;
  for (size_t at = 0; at < command.size();) {
    const size_t end = std::min(command.find(' ', at), command.size());
    const std::string_view word = command.substr(at, end - at);
    const size_t equals = word.starts_with('-') ? word.find('=') : word.npos;
    if (!word.empty()) words.emplace_back(word.substr(0, equals));
    if (equals != word.npos) words.emplace_back(word.substr(equals + 1));
    at = end + 1;
  }
  return words;
}

// Of mpirun and mpiexec: a host per line, then its slots.
void require_distinct_lines(std::string_view where, const std::string& path) {
  const std::string text = base::read_file(path);
  std::map<std::string, int> lines;
  int line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    std::string host = text.substr(at, end - at);
    at = end + 1;
    host.erase(0, host.find_first_not_of(" \t"));
    host.resize(std::min(host.find_first_of(" \t\r#:"), host.size()));
    if (host.empty()) continue;
    if (const auto [first, is_new] = lines.emplace(host, line); !is_new)
      throw base::UserError(where, "{}:{}: host {} is there already, in line {}; give it once, with slots=2", path,
                            line, base::one_line(host, 60), first->second);
  }
}

// Lines of any lists.
std::vector<std::string> nodes_in(std::string_view text) {
  std::string list;
  for (const char c : text) list += c == '\n' || c == ' ' ? ',' : c;
  return expand_nodes(list);
}

}  // namespace

std::vector<std::string> expand_nodes(std::string_view list) {
  std::string ignored;
  return expand_list(list, ignored);
}

void require_distinct_hosts(std::string_view where, std::string_view command) {
  constexpr std::array<std::string_view, 4> kFiles = {"--hostfile", "-hostfile", "--machinefile", "-machinefile"};
  constexpr std::array<std::string_view, 2> kLists = {"--nodelist", "-w"};
  const std::vector<std::string> words = option_words(command);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& value = words[i + 1];
    if (value.find_first_of("$`'\"{") != value.npos) continue;
    if (std::ranges::find(kFiles, words[i]) != kFiles.end() ||
        (words[i] == "-f" && words[0].find("mpi") != std::string::npos))  // MPICH's
      require_distinct_lines(where, value);
    if (std::ranges::find(kLists, words[i]) == kLists.end()) continue;
    std::string twice;
    expand_list(value, twice);
    if (!twice.empty())
      throw base::UserError(where, "{} {}: host {} is there twice", words[i], base::one_line(value, 80), twice);
  }
}

std::string join_nodes(const std::vector<std::string>& nodes) {
  return fmt::format("{}", fmt::join(nodes, ","));
}

std::string nodes_command(const launch::Process& p) {
  switch (p.scheduler) {
    case launch::Scheduler::slurm:
      return fmt::format("squeue --noheader --jobs={} --format=%N", p.job);
    case launch::Scheduler::flux:
      return "flux hostlist avail";
    case launch::Scheduler::pbs:
    case launch::Scheduler::kubernetes:
    case launch::Scheduler::none:
      return "";
  }
  return "";
}

std::string down_command(const launch::Process& p, const std::string& nodes) {
  if (p.scheduler != launch::Scheduler::slurm || nodes.empty()) return "";
  // A trailing * means that the node does not respond.
  return fmt::format(
      "sinfo --noheader --Node --nodes={} --format='%N %T' | "
      "awk '$2 ~ /^(down|drained|draining|fail|failing|error|unknown)|\\*$/ {{ print $1 }}'",
      nodes);
}

JobNodes nodes_of_job(const launch::Process& p) {
  JobNodes nodes;
  if (const std::string command = nodes_command(p); !command.empty())
    nodes.all = nodes_in(output_of("timeout 10 " + command));
  if (nodes.all.empty()) nodes.all = nodes_in(p.hosts);
  if (const std::string command = down_command(p, join_nodes(nodes.all)); !command.empty())
    nodes.down = nodes_in(output_of("timeout 10 " + command));
  return nodes;
}

std::string cancel_command(const launch::Process& p, const std::string& job) {
  switch (p.scheduler) {
    case launch::Scheduler::slurm:
      return "scancel " + job;
    case launch::Scheduler::pbs:
      return "qdel " + job;
    case launch::Scheduler::flux:
      return "flux --parent cancel " + job;
    case launch::Scheduler::kubernetes:
    case launch::Scheduler::none:
      return "";
  }
  return "";
}

std::string ending_command(const launch::Process& p) {
  return p.scheduler == launch::Scheduler::slurm
             ? fmt::format("scontrol show job {} | grep -o -m 1 -E 'JobState=(CANCELLED|COMPLETING)'", p.job)
             : "";
}

std::string output_of(const std::string& command) {
  std::FILE* const pipe = ::popen((command + " 2>/dev/null").c_str(), "re");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> buffer{};
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
  return ::pclose(pipe) == 0 ? text : "";
}

}  // namespace kintsugi::jobs
