// Instructions that are under way: started, and not yet waited for. Found by the memory that they touch, so that the
// conflicts of an instruction are found without a search through all of them.
#pragma once

#include <map>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

class UnderWay {
 public:
  // `p` outlives it; its buffers stay as they are.
  explicit UnderWay(const Program& p);

  // A number for the instruction, higher than those before it.
  int add(const Instruction& i);
  // The instruction, which is under way no longer.
  Instruction remove(int number);

  const Instruction& operator[](int number) const { return list_.at(number); }
  // All of them, in the order in which they were added.
  const std::map<int, Instruction>& list() const { return list_; }
  // Those that touch a root that `i` touches, its workspace included, in that order.
  std::vector<int> near(const Instruction& i) const;

 private:
  std::vector<BufferId> touched_by(const Instruction& i) const;  // roots, each once

  const Program& p_;
  int next_ = 0;
  std::map<int, Instruction> list_;
  std::vector<std::vector<int>> by_root_;  // by buffer, of roots alone
};

}  // namespace kintsugi::program
