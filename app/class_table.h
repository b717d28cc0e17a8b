// What a model says of images with known classes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kintsugi::app {

struct RankedClass {
  int64_t number = 0;
  double probability = 0;
};

// The `count` largest of the logits' softmax, the largest first; of equal ones the first class.
std::vector<RankedClass> best_classes(std::span<const float> logits, int64_t count);

// counts[label][predicted], of images with a label; the shares of those whose label is the best, and among the best
// five.
struct Confusion {
  std::vector<std::vector<int64_t>> counts;
  int64_t labelled = 0, first = 0, among_five = 0;

  explicit Confusion(int64_t classes);
  void add(int32_t label, std::span<const float> logits);  // label -1: unknown, and not counted
  // A line for each class with an image: its number, how many images it has, the share that is found, and the classes
  // that others of them are taken for, the most frequent first. With `all`, a column for each class instead.
  std::string table(bool all) const;
};

}  // namespace kintsugi::app
