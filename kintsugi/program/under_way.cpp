#include "kintsugi/program/under_way.h"

#include <algorithm>

#include "kintsugi/program/order.h"

namespace kintsugi::program {

UnderWay::UnderWay(const Program& p) : p_(p), by_root_(p.buffers.size()) {}

std::vector<BufferId> UnderWay::touched_by(const Instruction& i) const {
  std::vector<BufferId> roots = roots_of(p_, i);
  if (i.workspace != kNoBuffer && !std::binary_search(roots.begin(), roots.end(), p_.root(i.workspace)))
    roots.push_back(p_.root(i.workspace));
  return roots;
}

int UnderWay::add(const Instruction& i) {
  const int number = next_++;
  for (BufferId root : touched_by(i)) by_root_[static_cast<size_t>(root)].push_back(number);
  list_.emplace(number, i);
  return number;
}

Instruction UnderWay::remove(int number) {
  const auto at = list_.find(number);
  Instruction i = std::move(at->second);
  list_.erase(at);
  for (BufferId root : touched_by(i)) std::erase(by_root_[static_cast<size_t>(root)], number);
  return i;
}

std::vector<int> UnderWay::near(const Instruction& i) const {
  std::vector<int> numbers;
  if (list_.empty()) return numbers;
  for (BufferId root : touched_by(i)) {
    const std::vector<int>& list = by_root_[static_cast<size_t>(root)];
    numbers.insert(numbers.end(), list.begin(), list.end());
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace kintsugi::program
