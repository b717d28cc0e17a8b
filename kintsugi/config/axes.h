// The mesh axes, one row each: their keys in [parallel], the default order of nearness, and the constraints that a size
// imposes on the settings. plan/axes defines what each axis splits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::config {

struct Parallel;
struct Settings;
struct Given;

struct Axis {
  std::string_view name = {};  // in the mesh, and of its key in [parallel]
  int64_t (*size)(const Parallel&) = nullptr;
  void (*set_size)(Parallel&, int64_t) = nullptr;
  // The default mesh_order sorts axes by nearness, the nearest innermost. Axes missing from mesh_order are placed just
  // outside those that are nearer.
  int nearness = 0;
  bool optional = false;     // in the mesh only if larger than 1; mesh_order may omit it
  bool cuts_layers = false;  // pipeline axis: its ranks are stages, which hold different layers
  // Its ranks also divide the samples of a step, together with the data axis.
  bool shares_samples = false;
  std::vector<std::string_view> divides = {};  // keys that must be multiples of the size: "train.global_batch"
  std::vector<std::string_view> keys = {};     // keys without effect if the size is 1
  void (*check)(const Given&) = nullptr;       // further constraints on the settings; throws UserError
  // Whether the run has something to divide among this many ranks, so that a search proposes it. Null: any number.
  bool (*fits)(const Settings&, int64_t size) = nullptr;
  std::string_view help = {}, others = {};  // of the key

  std::string key() const;  // "parallel.data"
};

// In the order of their keys.
const std::vector<Axis>& axes();
// The row of this member: axis_of(&Parallel::tensor).
const Axis& axis_of(int64_t Parallel::*size);

// In the order in which messages multiply their sizes: pipeline axes first.
std::vector<const Axis*> axes_of_product();
// Outermost first.
std::vector<const Axis*> axes_by_nearness();
const std::string& default_mesh_order();  // their names: "pipe data context expert space tensor"

// Number of ranks that divide the samples of a step.
int64_t data_ranks(const Parallel& parallel);
// The product of all sizes, at most 10^12.
int64_t ranks_of(const Parallel& parallel);

}  // namespace kintsugi::config
