// Convolutional networks as data: a list of layers, from which one builder creates the graph.
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

enum class Act : uint8_t { none, relu, leaky_relu, gelu };  // leaky_relu has slope 0.3

// A convolution with a bias, or with `norm` a batch norm instead, or both, then an activation.
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
// ReLU(branch(x) + x). Where the branch changes the shape, projects x by a convolution with a window of one position,
// the stride of the branch and a batch norm. The last operation of the branch has no activation.
struct Residual {
  std::string shortcut;  // name of that convolution
  std::vector<Convolve> branch = {};
};
// Global average pooling.
struct GlobalMean {};
// Adaptive average pooling to `size` positions along each spatial dim.
struct AdaptiveMean {
  int64_t size = 1;
};
// A layer norm over the channels of each position, or of a sample after a GlobalMean.
struct ChannelNorm {
  std::string name;
  double epsilon = 1e-6;
};
// Liu et al. 2022, "A ConvNet for the 2020s", section 2: a depthwise convolution, a norm, two layers that expand and
// contract, a learned scale, and a residual connection. Stochastic depth at the fraction `drop` of model.drop_path.
struct NextBlock {
  std::string name;
  double drop = 0.0;
};
// Ronneberger et al. 2015: saves x for a skip connection; the Join of the same number concatenates it in front of its
// input.
struct Keep {
  int number = 0;
};
struct Join {
  int number = 0;
};
// A transposed convolution with a bias that doubles the positions along each dim.
struct Upward {
  std::string name;
  int64_t filters = 0;
};
struct Drop {
  std::string key;
};
// A fully connected layer over the whole sample with a bias, an activation, then dropout.
struct Dense {
  std::string name;
  int64_t width = 0;
  Act act = Act::relu;
  bool drops = true;
};

using NetOperation = std::variant<Convolve, MaxPool, Residual, GlobalMean, AdaptiveMean, ChannelNorm, NextBlock, Keep,
                                  Join, Upward, Drop, Dense>;
using NetLayer = std::vector<NetOperation>;  // on one pipeline stage

// Feeds the images of [model], normalized, through the layers and then, in a layer of its own, the head with the
// weights `head` that produces classes or numbers: per sample, or per pixel. `limit`: numbers are limit * tanh of the
// head's output; 0: the output itself. Throws UserError for an image smaller than a window.
//
// Dims: batch [depth] height width. Channels of adjacent convolutions alternate between `channel` and `filter`, so that
// a rule that splits filter splits one by outputs and the next by inputs; likewise ffn and embed for fully connected
// layers.
Trunk convnet(Builder& b, const std::vector<NetLayer>& layers, const std::string& head, double limit = 0.0);

// The images of [model], channels last, normalized: [batch [depth] height width channel].
ValueId images(Builder& b);

}  // namespace kintsugi::models
