// A command that is watched: signals are passed on to it, its errors are looked at as they pass.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::jobs {

struct Ended {
  int code = 0;                    // of its exit; 128 and the signal that ended it
  bool told = false;               // it was told to end: by a signal that came, or after `stop_after`
  std::vector<std::string> lines;  // of its errors, the last 200 that say one
};

// "code 1", "signal 9"
std::string in_words(const Ended& ended);

// Whether a line of a log reports an error of a rank or its launcher.
bool reports_error(std::string_view line);

// The program that the command of a shell begins with, if PATH has none of that name; "" if it has, or if the command
// begins otherwise.
std::string missing_program(std::string_view command);

// Runs `command` by /bin/sh until it ends. SIGUSR1, SIGTERM and SIGINT to this process, and the time limit, reach it as
// SIGUSR1: srun and mpirun pass that on to all ranks, which end their step and save. A second SIGTERM or SIGINT reaches
// it as SIGTERM. What it prints to stderr is passed on line by line. `stop_after`: seconds; 0: no limit.
Ended supervise(const std::string& command, double stop_after);

}  // namespace kintsugi::jobs
