// Buckets: parameters of one layer with equal dtype, decay, layout and trainability, stored consecutively so that they
// are gathered, reduced and updated together. A bucket is [shard flat]: `shard` counts the blocks formed by the layout
// of its parameters (tensor and expert splits), `flat` the elements of a block, with each parameter aligned to kBlock.
// ZeRO splits flat (Rajbhandari et al. 2020, section 5).
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/lower/partition/choose.h"

namespace kintsugi::lower {

constexpr int64_t kBlock = 1024;  // elements

struct Member {
  graph::StateId weight = graph::kNone;
  int64_t first = 0;     // offset of its block in flat
  int64_t elements = 0;  // of its block
};

struct Bucket {
  std::string name;  // name of its first parameter, and how many follow: "layer0.ffn.up.weight+1"
  int layer = 0;
  Layout layout;               // of its parameters
  Layout gradient;             // of its accumulator, [shard flat]
  Layout arriving;             // of a gradient before the plan splits it, [shard flat]
  std::vector<int> uses = {};  // for a bucket of a single shared weight: the layers that read it
  std::vector<Member> members;
  tensor::Shape shape;  // [shard flat], whole

  std::vector<Factor> shard() const;                   // factors that split `shard`
  Layout flat_layout(std::vector<Factor> flat) const;  // [shard flat] with flat split over these
};

// The location of a state of a parameter (the weight, its gradient, an optimizer state).
struct Place {
  int bucket = -1;
  size_t member = 0;
  graph::StateId state = graph::kNone;  // state of the whole bucket, in Buckets::states
};

struct Buckets {
  std::vector<Bucket> list;
  graph::StateTable states;                          // those of the model, followed by those of buckets
  std::unordered_map<graph::StateId, Place> places;  // of the states of parameters
  // [state of a bucket]: the states in it, ascending.
  std::unordered_map<graph::StateId, std::vector<graph::StateId>> parts;
};

// How the graphs use the weights.
struct Uses {
  std::map<graph::StateId, Layout> arrivals;       // factors over which gradients are partial; empty without training
  std::map<graph::StateId, std::set<int>> layers;  // that read it; several: it gets its own bucket

  bool shared(graph::StateId weight) const { return layers.contains(weight) && layers.at(weight).size() > 1; }
};

// Whether a state has an element for each block of its weight (tensor/state_blocks.h).
bool in_state_blocks(const graph::StateTable& states, graph::StateId state);

Buckets make_buckets(const graph::StateTable& states, const Uses& uses, const plan::Plan& plan);

// The update on buckets: applies an operation on states of parameters once per bucket.
graph::Graph update_of_buckets(const graph::Graph& update, const Buckets& buckets);

}  // namespace kintsugi::lower
