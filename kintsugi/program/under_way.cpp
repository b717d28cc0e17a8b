#include "kintsugi/program/under_way.h"

#include <algorithm>

namespace kintsugi::program {
namespace {

template <typename T>
void make_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

UnderWay::UnderWay(const Program& p) : p_(p), by_root_(p.buffers.size()) {}

std::vector<BufferId> UnderWay::roots_of(const Instruction& i) const {
  std::vector<BufferId> roots;
  for (const std::vector<BufferId>* operands : {&i.ins, &i.outs})
    for (BufferId b : *operands) roots.push_back(p_.root(b));
  if (i.workspace != kNoBuffer) roots.push_back(p_.root(i.workspace));
  make_unique(roots);
  return roots;
}

int UnderWay::add(const Instruction& i) {
  const int number = next_++;
  for (BufferId root : roots_of(i)) by_root_[static_cast<size_t>(root)].push_back(number);
  list_.emplace(number, i);
  return number;
}

Instruction UnderWay::remove(int number) {
  const auto at = list_.find(number);
  Instruction i = std::move(at->second);
  list_.erase(at);
  for (BufferId root : roots_of(i)) std::erase(by_root_[static_cast<size_t>(root)], number);
  return i;
}

std::vector<int> UnderWay::near(const Instruction& i) const {
  std::vector<int> numbers;
  for (BufferId root : roots_of(i)) {
    const std::vector<int>& list = by_root_[static_cast<size_t>(root)];
    numbers.insert(numbers.end(), list.begin(), list.end());
  }
  make_unique(numbers);
  return numbers;
}

}  // namespace kintsugi::program
