// Predictions for images with known classes.
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

// The `count` largest softmax probabilities in descending order; ties by class.
std::vector<RankedClass> best_classes(std::span<const float> logits, int64_t count);

// counts[label][predicted], over images with a label; top-1 and top-5 accuracy.
struct Confusion {
  std::vector<std::vector<int64_t>> counts;
  int64_t labelled = 0, first = 0, among_five = 0;

  explicit Confusion(int64_t classes);
  void add(int32_t label, std::span<const float> logits);  // label -1: unknown, and not counted
  // A line per class with images: its number, the number of images, the accuracy, and the classes predicted instead,
  // most frequent first. With `all`, a column per class instead.
  std::string table(bool all) const;
};

}  // namespace kintsugi::app
