// Instructions in flight: started and not yet waited for. Indexed by the memory that they touch, so that conflicts are
// found without scanning all of them.
#pragma once

#include <map>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

class UnderWay {
 public:
  // `p` must outlive it, with unchanged buffers.
  explicit UnderWay(const Program& p);

  // Adds an instruction and returns its number, higher than all before.
  int add(const Instruction& i);
  // Removes and returns the instruction.
  Instruction remove(int number);

  const Instruction& operator[](int number) const { return list_.at(number); }
  // All of them, in the order added.
  const std::map<int, Instruction>& list() const { return list_; }
  // Numbers of those that touch a root that `i` touches, including its workspace, ascending.
  std::vector<int> near(const Instruction& i) const;

 private:
  std::vector<BufferId> touched_by(const Instruction& i) const;  // roots, without duplicates

  const Program& p_;
  int next_ = 0;
  std::map<int, Instruction> list_;
  std::vector<std::vector<int>> by_root_;  // [root]
};

}  // namespace kintsugi::program
