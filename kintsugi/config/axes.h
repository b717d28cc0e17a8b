// The axes of the mesh, one row each: their keys in [parallel], the default nearness of their ranks, the conditions
// that a size puts on the settings. What each axis splits is in plan/axes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::config {

struct Parallel;
struct Given;

struct Axis {
  std::string_view name = {};  // in the mesh, and of its key in [parallel]
  int64_t (*size)(const Parallel&) = nullptr;
  void (*set_size)(Parallel&, int64_t) = nullptr;
  // The default of mesh_order has the axis of greatest nearness innermost. An axis that mesh_order leaves out is
  // placed just outside those that are nearer.
  int nearness = 0;
  bool optional = false;     // in the mesh only if its size is more than 1; mesh_order may leave it out
  bool cuts_layers = false;  // its ranks are the stages of a pipeline, which hold different layers
  // Its ranks share the samples of a step too, with those of the data axis.
  bool shares_samples = false;
  std::vector<std::string_view> divides = {};  // the keys that must be multiples of the size: "train.global_batch"
  std::vector<std::string_view> keys = {};     // keys that have no effect if the size is 1
  void (*check)(const Given&) = nullptr;       // further conditions on the settings: UserError if they do not hold
  std::string_view help = {}, others = {};     // of the key

  std::string key() const;  // "parallel.data"
};

// In the order of their keys.
const std::vector<Axis>& axes();

// In the order in which texts multiply their sizes: axes that cut layers first.
std::vector<const Axis*> axes_of_product();
// Outermost first.
std::vector<const Axis*> axes_by_nearness();
const std::string& default_mesh_order();  // their names: "pipe data context expert space tensor"

// Ranks among which the samples of a step are divided.
int64_t data_ranks(const Parallel& parallel);
// The product of all sizes, up to 10^12.
int64_t ranks_of(const Parallel& parallel);

}  // namespace kintsugi::config
