// Predicted classes of images, as `classify --report` leaves them in a run's folder and the page of the run shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::report {

inline constexpr std::string_view kPredictionsFile = "predictions.json";

struct PredictedClass {
  int64_t number = 0;
  double probability = 0;
};

struct PredictedImage {
  int64_t label = -1;                // -1: unknown
  std::vector<PredictedClass> best;  // the most probable first
  std::string bitmap;                // a small picture, a Windows bitmap in base64
};

struct Predictions {
  std::string checkpoint, images;  // what was classified, by which checkpoint
  int64_t labelled = 0, first = 0,
          five = 0;  // images with a label; those with it as the best class, among the best five
  std::vector<std::vector<int64_t>> counts = {};  // [label][predicted class], of images with a label
  std::vector<PredictedImage> samples = {};
};

std::string write_predictions(const Predictions& predictions);
// Throws UserError "[report] ..." that names the file for damaged text.
Predictions read_predictions(std::string_view name, std::string_view text);

// A grid of the samples, marking those with another class than their label, then the accuracy and the confusion matrix;
// of more than 20 classes, the most frequent confusions instead.
std::string html_predictions(const Predictions& predictions);

}  // namespace kintsugi::report
