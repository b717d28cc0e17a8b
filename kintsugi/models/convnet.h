// Convolutional networks as data: a list of layers, from which one builder makes the graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kintsugi/models/builder.h"

namespace kintsugi::models {

// The same window along all spatial dims.
struct WindowSize {
  int64_t kernel = 1, stride = 1, padding = 0;
};

enum class Act : uint8_t { none, relu, leaky_relu, gelu };  // the slope of leaky_relu is 0.3

// A convolution with a bias, or with `norm` a batch norm in its place, or both, then an activation.
struct Convolve {
  std::string name;  // of its weights
  int64_t filters = 0;
  WindowSize window = {};
  bool norm = false;
  Act act = Act::relu;
  bool bias_and_norm = false;
};
struct MaxPool {
  WindowSize window = {};
};
// ReLU(branch(x) + x). Where the branch changes the shape, x goes through a convolution of its own, with a window of
// one position, the stride of the branch and a batch norm. The last of the branch has no activation.
struct Residual {
  std::string shortcut;  // name of that convolution
  std::vector<Convolve> branch = {};
};
// The mean over all positions.
struct GlobalMean {};
// Means over bins, to `size` positions along each spatial dim.
struct AdaptiveMean {
  int64_t size = 1;
};
// A layer norm over the channels of each position, or of a sample after a GlobalMean.
struct ChannelNorm {
  std::string name;
};
// Liu et al. 2022, "A ConvNet for the 2020s", section 2: a convolution of each channel by itself, a norm, two layers
// that widen and narrow, a learned scale, and x. Samples skip it with the share `drop` of model.drop_path.
struct NextBlock {
  std::string name;
  double drop = 0.0;
};
// Ronneberger et al. 2015: x is kept, until the Join of the same number puts it before what was made of it.
struct Keep {
  int number = 0;
};
struct Join {
  int number = 0;
};
// A transposed convolution with a bias, to twice the positions along each dim.
struct Upward {
  std::string name;
  int64_t filters = 0;
};
struct Drop {
  std::string key;
};
// A product with all that there is of a sample, a bias, an activation, then dropout.
struct Dense {
  std::string name;
  int64_t width = 0;
  Act act = Act::relu;
  bool drops = true;
};

using NetOperation = std::variant<Convolve, MaxPool, Residual, GlobalMean, AdaptiveMean, ChannelNorm, NextBlock, Keep,
                                  Join, Upward, Drop, Dense>;
using NetLayer = std::vector<NetOperation>;  // on one stage of a pipeline

// The images of [model], normalized, through the layers, and then, in a layer of its own, a product with the weights
// `head` to the classes or numbers: of a sample, or of each pixel. `limit`: numbers are limit * tanh of it; 0: they are
// it. UserError for an image that is smaller than a window.
//
// Dims: batch [depth] height width; channel and filter in turns, the channels of neighbouring convolutions, so that a
// rule which splits filter splits the one by its outputs and the next by its inputs; likewise ffn and embed of dense
// layers.
Trunk convnet(Builder& b, const std::vector<NetLayer>& layers, const std::string& head, double limit = 0.0);

// The images of [model] with channels last, normalized: [batch [depth] height width channel].
ValueId images(Builder& b);

}  // namespace kintsugi::models
