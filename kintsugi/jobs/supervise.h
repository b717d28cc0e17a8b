// Supervises a command: forwards signals and scans its errors as they pass.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::jobs {

struct Ended {
  int code = 0;                         // exit code; 128 plus the signal that ended it
  bool told = false;                    // it was asked to end, by a signal or after `stop_after`
  std::vector<std::string> lines = {};  // the last 200 lines of stderr that report an error
  std::string why = {};                 // the finding for which it was ended; ""
};

// Findings for which the command is ended at once: SIGTERM, after 3 s SIGKILL. "": none.
struct Watch {
  std::function<std::string()> look = {};                        // called about every second
  std::function<std::string(std::string_view line)> judge = {};  // for each line of stderr that reports an error
};

// "code 1", "signal 9"
std::string in_words(const Ended& ended);

// Whether a log line reports an error of a rank or its launcher.
bool reports_error(std::string_view line);

// Returns the program with which a shell command begins if PATH contains no such program; "" if it does, or if the
// command begins otherwise.
std::string missing_program(std::string_view command);

// Runs `command` with /bin/sh until it ends. Forwards SIGUSR1, SIGTERM, SIGINT and the time limit as SIGUSR1: srun and
// mpirun forward that to all ranks, which finish their step and save. Forwards a second SIGTERM or SIGINT as SIGTERM.
// Forwards its stderr line by line. `stop_after`: seconds; 0: no limit.
Ended supervise(const std::string& command, double stop_after, const Watch& watch = {});

}  // namespace kintsugi::jobs
