// A program that rewards answers: it reads a line of JSON for each and prints a line with a number.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::train {

class RewardProgram {
 public:
  // Starts the program: a command, found in PATH, and its arguments. Throws UserError if it cannot be started.
  RewardProgram(std::vector<std::string> command, double timeout_seconds);
  ~RewardProgram();  // ends it
  RewardProgram(const RewardProgram&) = delete;
  RewardProgram& operator=(const RewardProgram&) = delete;

  // The number that it prints after reading `line`, which has no newline. Throws UserError if it ends, prints another
  // line than a finite number, or takes longer than the timeout.
  double ask(std::string_view line);

 private:
  std::string read_line();
  std::string end() const;  // how it ended

  std::vector<std::string> command_;
  double timeout_seconds_;
  mutable pid_t pid_ = -1;
  int socket_ = -1;
  std::string read_;  // beyond the last line
};

}  // namespace kintsugi::train
