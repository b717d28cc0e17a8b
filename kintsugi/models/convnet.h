// Convolutional networks as data: a list of layers, from which one builder makes the graph.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kintsugi/models/builder.h"

namespace kintsugi::models {

// The same window along height and width.
struct WindowSize {
  int64_t kernel = 1, stride = 1, padding = 0;
};

// A convolution with a bias, or with `norm` a batch norm in its place, then ReLU unless it is not `active`.
struct Convolve {
  std::string name;  // of its weights
  int64_t filters = 0;
  WindowSize window = {};
  bool norm = false;
  bool active = true;
};
struct MaxPool {
  WindowSize window = {};
};
// ReLU(branch(x) + x). Where the branch changes the shape, x goes through a convolution of its own, with a window of
// one position, the stride of the branch and a batch norm. The last of the branch is not active.
struct Residual {
  std::string shortcut;  // name of that convolution
  std::vector<Convolve> branch = {};
};
// The mean over all positions.
struct GlobalMean {};
// A product with all that there is of a sample, a bias, ReLU, then dropout.
struct Dense {
  std::string name;
  int64_t width = 0;
};

using NetOperation = std::variant<Convolve, MaxPool, Residual, GlobalMean, Dense>;
using NetLayer = std::vector<NetOperation>;  // on one stage of a pipeline

// The images of [model], normalized, through the layers, and then, in a layer of its own, a product with the weights
// `head` to the classes or numbers. UserError for an image that is smaller than a window.
//
// Dims: batch height width; channel and filter in turns, the channels of neighbouring convolutions, so that a rule
// which splits filter splits the one by its outputs and the next by its inputs; likewise ffn and embed of dense layers.
Trunk convnet(Builder& b, const std::vector<NetLayer>& layers, const std::string& head);

}  // namespace kintsugi::models
