// Lists of node names in the notation of schedulers, and the nodes that a job has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/launch/process.h"

namespace kintsugi::jobs {

// "n[1-3,07],gpu4" -> n1 n2 n3 n07 gpu4, without duplicates, in order. Throws UserError for unbalanced brackets, a
// range that ends before it begins, or more than 100,000 names.
std::vector<std::string> expand_nodes(std::string_view list);

// Throws UserError "[where] ..." if a host file or list of nodes that a command or a directive names ("--hostfile
// hosts",
// "--nodelist=n[1-3]") has a host twice, or if that file cannot be read. Names with variables of the shell are not
// checked.
void require_distinct_hosts(std::string_view where, std::string_view command);

// "n1,n2,n3"
std::string join_nodes(const std::vector<std::string>& nodes);

// The nodes of a job at this moment.
struct JobNodes {
  std::vector<std::string> all;   // empty: unknown
  std::vector<std::string> down;  // those of them that the scheduler does not use
};

// The commands that print the nodes of a job, and those of them that are down, one list per line; "" if the scheduler
// has none.
std::string nodes_command(const launch::Process& process);
std::string down_command(const launch::Process& process, const std::string& nodes);

// Runs these commands, each for at most 10 s; if the first fails, the nodes are those of the environment.
JobNodes nodes_of_job(const launch::Process& process);

// "scancel 13"; "" if the scheduler has none.
std::string cancel_command(const launch::Process& process, const std::string& job);

// Prints something if the scheduler is ending the job of this process, which only the user or a limit can be the reason
// for; "" if the scheduler has no such command.
std::string ending_command(const launch::Process& process);

// Standard output of a command run by /bin/sh; nothing if it fails.
std::string output_of(const std::string& command);

}  // namespace kintsugi::jobs
